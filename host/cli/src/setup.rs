//! `svc setup`: sets the first access key of a service.

use ::http::Method;
use agent::AccessKey;
use command::{Exit, UsageError, environment::Environment};
use protocol::agent::{GatewayPatch, GatewayStatusDto};
use serde::Deserialize;
use serde_json::json;

use crate::service::{Client, RemoteError, ServiceArgs, Target, file::ClientFile, http};

pub(crate) const EXAMPLES: &str = "Examples:
  svc setup                                        generate a key, and show it once
  svc setup --token-file key.txt                   set this key
  svc setup --url http://nas:17800 --code ABCDE-FGHIJ   from another machine

The code is printed by the service when it starts. The commands of this user remember the key. On a desktop, all other \
programs need it from then on.";

#[derive(Debug, clap::Args)]
pub struct SetupArgs {
    /// Set-up code that the service printed at its start; needed from another machine
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Do not store the key for later commands
    #[arg(long)]
    no_save: bool,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    setup_required: bool,
    code_required: bool,
}

/// How a service without a key gets its first one.
enum Way {
    /// A server has a set-up endpoint.
    Server,
    /// A desktop accepts a settings change from its own user.
    Desktop,
}

pub(crate) async fn run(args: &SetupArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let given = args.service.given_key(environment)?;
    let target = args.service.target_with(None)?;
    let given = given.map(|key| AccessKey::new(key.expose())).transpose();
    let given = given.map_err(|weak| UsageError::new("the access key given", weak.to_string()))?;
    let is_made_up = given.is_none();
    let way = check(args, &target).await?;
    let key = given.map_or_else(AccessKey::random, Ok)?;
    match way {
        Way::Server => {
            let body = json!({ "token": key.expose(), "code": args.code });
            let answer = http::send(&target, Method::POST, "/api/v1/setup", Some(&body)).await?;
            if !answer.status.is_success() {
                return Err(refused(&target, &answer).into());
            }
            if !args.no_save {
                let mut file = ClientFile::read()?;
                file.url = Some(target.address.to_string());
                file.token = Some(key.expose().to_owned());
                file.write()?;
            }
        }
        Way::Desktop => set_on_desktop(&target, &key).await?,
    }
    print_result(args, &target, &way, is_made_up.then_some(&key))
}

/// Whether the service needs a key, and how it can be set from here.
async fn check(args: &SetupArgs, target: &Target) -> anyhow::Result<Way> {
    let answer = http::send(target, Method::GET, "/api/v1/setup/status", None).await?;
    if answer.status == ::http::StatusCode::NOT_FOUND {
        return Ok(Way::Desktop);
    }
    if !answer.status.is_success() {
        return Err(refused(target, &answer).into());
    }
    let status: Status = answer.read(target)?;
    if !status.setup_required {
        return Err(has_key(target).into());
    }
    if status.code_required && args.code.is_none() {
        return Err(UsageError::new("--code", "write the code that the service showed where it was started").into());
    }
    Ok(Way::Server)
}

async fn set_on_desktop(target: &Target, key: &AccessKey) -> Result<(), RemoteError> {
    let mut client = Client::connect(target).await?;
    let now: GatewayStatusDto = client.ask(protocol::Method::GatewayGet).await?;
    if now.user_token_configured {
        return Err(has_key(target));
    }
    let patch = GatewayPatch {
        user_token: Some(key.expose().to_owned()),
        ..GatewayPatch::default()
    };
    let _set: GatewayStatusDto = client.call(protocol::Method::GatewayPatch, &patch).await?;
    Ok(())
}

fn has_key(target: &Target) -> RemoteError {
    let message = "it has an access key already; only a client with that key can set another".to_owned();
    refusal(target, ::http::StatusCode::CONFLICT, message)
}

fn refused(target: &Target, answer: &http::Answer) -> RemoteError {
    refusal(target, answer.status, http::message(&answer.body, answer.status))
}

fn refusal(target: &Target, status: ::http::StatusCode, message: String) -> RemoteError {
    RemoteError::Refused {
        address: target.address.to_string(),
        status: status.as_u16(),
        message,
    }
}

/// A generated key is printed here only.
fn print_result(args: &SetupArgs, target: &Target, way: &Way, made_up: Option<&AccessKey>) -> anyhow::Result<Exit> {
    let is_saved = matches!(way, Way::Server) && !args.no_save;
    let saved = is_saved.then(ClientFile::path).transpose()?;
    let record = json!({
        "url": target.address.to_string(),
        "token": made_up.map(AccessKey::expose),
        "savedIn": saved,
    });
    let mut lines = vec![format!("The service at {} has its access key now.", target.address)];
    lines.extend(made_up.map(|key| format!("Access key: {}", key.expose())));
    lines.extend(saved.map(|path| format!("The commands of svc find it in {}.", path.display())));
    if matches!(way, Way::Desktop) {
        lines.push("Other programs need it from now on; your own svc commands on this machine do not.".to_owned());
    }
    args.service.print(&record, || lines)
}
