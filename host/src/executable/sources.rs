//! `svc market`: sources of plugins, for their users and maintainers.

use std::fmt::Write as _;

use clap::Subcommand as _;
use command::{Exit, environment::Environment};

use super::plugin::with_facilities;

pub(super) const EXAMPLES: &str = "Examples:
  svc market list                                  what there is; our own plugins need no network
  svc market install open-directory                shows what it may do, and asks
  svc market sources add 'svc://market?url=https://plugins.example.org/&key=RW…'
  svc market update                                every plugin that has a newer version

To maintain a source:
  svc market init site/ --id example --name \"Example plugins\" --keys keys/
  svc market add site/ acme@acme-1.2.0.zip --key keys/index.key
  svc market publish site/ --key keys/timestamp.key

Passphrases of keys are asked for on the terminal, or taken from SVC_KEY_PASSPHRASE or the first
line of the file that SVC_KEY_PASSPHRASE_FILE names.";

/// A command about sources of plugins.
#[derive(Debug, clap::Subcommand)]
pub(super) enum MarketCommand {
    #[command(flatten)]
    User(cli::MarketCommand),
    #[command(flatten)]
    Maintainer(market_tool::command::MarketCommand),
}

pub(super) fn run(command: MarketCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        MarketCommand::User(command) => cli::run_market(command, environment),
        MarketCommand::Maintainer(command) => {
            with_facilities(environment, |facilities| author::maintain(command, facilities))
        }
    }
}

/// The help template, which separates the commands of users and maintainers.
pub(super) fn help_template() -> String {
    let users = cli::MarketCommand::augment_subcommands(clap::Command::new("market"));
    let maintainers = market_tool::command::MarketCommand::augment_subcommands(clap::Command::new("market"));
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, commands) in [
        ("Plugins of a service", users),
        ("Maintaining a source, without a service", maintainers),
    ] {
        let _infallible = write!(text, "\n{heading}:\n");
        for command in commands.get_subcommands() {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _infallible = writeln!(text, "  {:<10}{about}", command.get_name());
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_under_one_heading_of_the_help() {
        let whole = MarketCommand::augment_subcommands(clap::Command::new("market"));
        let help = help_template();
        for command in whole.get_subcommands() {
            let line = format!("\n  {:<10}", command.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{}", command.get_name());
        }
    }
}
