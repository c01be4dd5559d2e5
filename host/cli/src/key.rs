//! `svc key`: the access key of a service.

use std::path::PathBuf;

use command::{Exit, environment::Environment};
use protocol::{
    Method,
    agent::{GatewayPatch, GatewayStatusDto, RevealedToken},
};
use serde_json::json;

use crate::{
    secret,
    service::{Client, ServiceArgs, file::ClientFile},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc key show                                     print the key
  svc key new                                      replace it by a generated one, and print that
  svc key set --from key.txt                       replace it by one of your own

A service without a key gets its first one by svc setup. When the key changes, other clients are disconnected and need the \
new one; if these commands had the old key stored, they store the new one.";

#[derive(Debug, clap::Args)]
pub struct KeyArgs {
    #[command(subcommand)]
    command: KeyCommand,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    /// Print the key
    Show,
    /// Replace the key by one of your own
    Set {
        /// File whose first line is the new key, - for standard input [default: asked for on a terminal, else standard input]
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        from: Option<PathBuf>,
    },
    /// Replace the key by a generated one, and print it
    #[command(visible_alias = "regenerate")]
    New,
    /// Remove the key; only on a desktop that no other machine can reach, where management and MCP go off with it
    Clear,
}

pub(crate) async fn run(args: &KeyArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let service = &args.service;
    let patch = match &args.command {
        KeyCommand::Show => {
            let RevealedToken { user_token } = service
                .connect(environment)
                .await?
                .ask(Method::GatewayRevealToken)
                .await?;
            let shown = if user_token.is_empty() {
                "there is no access key"
            } else {
                &user_token
            };
            return service.print_done(&json!({ "token": user_token }), shown);
        }
        KeyCommand::Set { from } => GatewayPatch {
            user_token: Some(
                secret::choose("--from", from.as_deref(), "New access key")?
                    .expose()
                    .to_owned(),
            ),
            ..GatewayPatch::default()
        },
        KeyCommand::New => GatewayPatch {
            regenerate_user_token: Some(true),
            ..GatewayPatch::default()
        },
        KeyCommand::Clear => GatewayPatch {
            user_token: Some(String::new()),
            ..GatewayPatch::default()
        },
    };
    let mut client = service.connect(environment).await?;
    let status: GatewayStatusDto = client.call(Method::GatewayPatch, &patch).await?;
    let RevealedToken { user_token } = client.ask(Method::GatewayRevealToken).await?;
    store(&client, &user_token)?;
    let is_made_up = patch.user_token.as_deref() != Some(user_token.as_str());
    let record = json!({
        "configured": status.user_token_configured,
        "token": is_made_up.then_some(&user_token),
    });
    service.print(&record, || {
        let sentence = if status.user_token_configured {
            "the access key is changed"
        } else {
            "the access key is removed"
        };
        let mut lines = vec![sentence.to_owned()];
        lines.extend((is_made_up && !user_token.is_empty()).then(|| format!("Access key: {user_token}")));
        lines
    })
}

/// Stores the new key, if the old one of this service was stored.
fn store(client: &Client, key: &str) -> anyhow::Result<()> {
    let mut file = ClientFile::read()?;
    if file.token.is_none() || file.url.as_deref() != Some(&client.target.address.to_string()) {
        return Ok(());
    }
    file.token = Some(key.to_owned()).filter(|key| !key.is_empty());
    file.write()
}
