//! `svc plugin`: the plugins of a service.

use super::{Exit, remote};
use crate::environment::Environment;

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin install site.zip                      then see what it asks for and agree to it:
  svc plugin consent site@author
  svc plugin consent site@author DIGEST
  svc plugin settings site@author quality=hd
  svc plugin rollback site@author                  the version before, if the new one does not work

A plugin is named as \"svc plugin list\" shows it.";

/// A command about plugins.
#[derive(Debug, clap::Subcommand)]
pub(super) enum PluginCommand {
    #[command(flatten)]
    Installed(remote::PluginCommand),
}

/// Carries out the command.
pub(super) fn run(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        PluginCommand::Installed(command) => remote::run_plugin(command, environment),
    }
}
