//! `svc secrets`: the key that a service seals its secrets with.

use command::{Exit, amount, environment::Environment};
use protocol::{Method, VaultRotated};

use crate::service::ServiceArgs;

pub(crate) const EXAMPLES: &str = "Examples:
  svc secrets rotate        after somebody may have seen vault.key, for example in a backup

Logins, cookies, tokens of plugins and what was given with downloads are stored sealed. A backup of the
database opens with the key of its time: keep vault.key apart from it.";

#[derive(Debug, clap::Args)]
pub struct SecretsArgs {
    #[command(subcommand)]
    command: SecretsCommand,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum SecretsCommand {
    /// Make a new key and seal every stored secret with it; downloads go on
    Rotate,
}

pub(crate) async fn run(args: &SecretsArgs, environment: &Environment) -> anyhow::Result<Exit> {
    match args.command {
        SecretsCommand::Rotate => {
            let mut client = args.service.connect(environment).await?;
            let rotated: VaultRotated = client.ask(Method::VaultRotate).await?;
            let text = format!("sealed {} with a new key", amount::counted(rotated.values, "value"));
            args.service.print_done(&rotated, &text)
        }
    }
}
