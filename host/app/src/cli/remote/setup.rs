//! `svc setup`: the first access key of a new service.

use ::http::Method;
use agent::AccessKey;
use serde::Deserialize;
use serde_json::json;

use super::{Exit, RemoteError, ServiceArgs, Target, file::ClientFile, http, print_json, print_lines};
use crate::{cli::UsageError, environment::Environment};

pub(super) const EXAMPLES: &str = "Examples:
  svc setup                                        make a key, show it once, and remember it for the next commands
  svc setup --token-file key.txt                   set this key
  svc setup --url http://nas:17800 --code ABCDE-FGHIJ
                                                   from another machine: the code is shown where the service was started";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SetupArgs {
    /// Set-up code that the service showed at its start; needed from another machine
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
    /// Do not remember the key for the next commands
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

pub(super) async fn run(args: &SetupArgs, environment: &Environment) -> anyhow::Result<Exit> {
    let given = args.service.given_key(environment)?;
    let target = args.service.target_with(given.clone())?;
    let given = given.map(|key| AccessKey::new(key.expose())).transpose();
    let given = given.map_err(|weak| UsageError::new("the access key given", weak.to_string()))?;
    let is_made_up = given.is_none();
    check(args, &target).await?;
    let key = given.map_or_else(AccessKey::random, Ok)?;
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
    tell(args, &target, is_made_up.then_some(&key))
}

/// Whether there is anything to set up, and whether it can be done from here.
async fn check(args: &SetupArgs, target: &Target) -> anyhow::Result<()> {
    let answer = http::send(target, Method::GET, "/api/v1/setup/status", None).await?;
    if answer.status == ::http::StatusCode::NOT_FOUND {
        let message =
            "it is no server that is set up over the network; a desktop makes its key when it is first needed";
        return Err(refusal(target, answer.status, message.to_owned()).into());
    }
    if !answer.status.is_success() {
        return Err(refused(target, &answer).into());
    }
    let status: Status = answer.read(target)?;
    if !status.setup_required {
        let message = "it has an access key already; only who knows it can set another".to_owned();
        return Err(refusal(target, ::http::StatusCode::CONFLICT, message).into());
    }
    if status.code_required && args.code.is_none() {
        return Err(UsageError::new("--code", "write the code that the service showed where it was started").into());
    }
    Ok(())
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

/// A key that was made up is shown here, and never again.
fn tell(args: &SetupArgs, target: &Target, made_up: Option<&AccessKey>) -> anyhow::Result<Exit> {
    let saved = (!args.no_save).then(ClientFile::path).transpose()?;
    if args.service.json {
        return print_json(&json!({
            "url": target.address.to_string(),
            "token": made_up.map(AccessKey::expose),
            "savedIn": saved,
        }));
    }
    let mut lines = vec![format!("The service at {} has its access key now.", target.address)];
    lines.extend(made_up.map(|key| format!("Access key: {}", key.expose())));
    lines.extend(saved.map(|path| format!("The commands of svc find it in {}.", path.display())));
    print_lines(lines)
}
