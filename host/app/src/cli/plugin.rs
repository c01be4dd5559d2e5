//! `svc plugin`: the plugins of a service, and the tools of those who write them.

mod build;
mod dev;
mod inspect;
mod lint;
mod new;
mod pack;
mod test;
mod workshop;

use market_tool::command::AuthorCommand;

use super::{Exit, market, remote};
use crate::environment::Environment;

pub(super) use workshop::Workshop;

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin install site.zip                      then see what it asks for and agree to it:
  svc plugin consent site@author
  svc plugin consent site@author DIGEST
  svc plugin settings site@author quality=hd
  svc plugin rollback site@author                  the version before, if the new one does not work

A plugin is named as \"svc plugin list\" shows it.

To write one:
  svc plugin new my-site                           a folder to begin with; --lang js needs no compiler
  svc plugin test my-site                          play its recorded calls in the sandbox
  svc plugin dev my-site                           run it in your service and load every change
  svc plugin pack my-site                          the ZIP that others install
  svc plugin keygen me.key                         once; the public key goes into plugin.json
  svc plugin sign my-site@me-1.0.0.zip --key me.key
                                                   for a source; \"svc market\" has the other side";

/// A command about plugins.
#[derive(Debug, clap::Subcommand)]
pub(super) enum PluginCommand {
    #[command(flatten)]
    Installed(remote::PluginCommand),
    /// Make the folder of a new plugin
    #[command(after_help = new::EXAMPLES)]
    New(new::NewArgs),
    /// Build a plugin's component, and show what it can do
    #[command(after_help = build::EXAMPLES)]
    Build(build::BuildArgs),
    /// Run a plugin from its folder in a service, and load every change
    #[command(after_help = dev::EXAMPLES)]
    Dev(dev::DevArgs),
    /// Play a plugin's recorded calls in the sandbox, or record one
    #[command(after_help = test::EXAMPLES)]
    Test(test::TestArgs),
    /// Look for what users of a plugin would stumble over
    #[command(after_help = lint::EXAMPLES)]
    Lint(lint::LintArgs),
    /// Make the ZIP of a plugin that others install
    #[command(after_help = pack::EXAMPLES)]
    Pack(pack::PackArgs),
    /// Show what users of a plugin will be asked to allow, as its code shows it
    #[command(after_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    #[command(flatten)]
    Signing(AuthorCommand),
}

/// Carries out the command.
pub(super) fn run(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let command = match command {
        PluginCommand::Installed(command) => return remote::run_plugin(command, environment),
        PluginCommand::New(args) => return new::run(&args),
        PluginCommand::Signing(command) => return market::author(command, environment),
        command => command,
    };
    remote::runtime()?.block_on(async {
        match command {
            PluginCommand::Build(args) => build::run(&args, environment).await,
            PluginCommand::Dev(args) => Box::pin(dev::run(&args, environment)).await,
            PluginCommand::Test(args) => test::run(&args, environment).await,
            PluginCommand::Lint(args) => lint::run(&args, environment).await,
            PluginCommand::Pack(args) => pack::run(&args, environment).await,
            PluginCommand::Inspect(args) => inspect::run(&args, environment).await,
            PluginCommand::Installed(_) | PluginCommand::New(_) | PluginCommand::Signing(_) => {
                unreachable!("they ran above")
            }
        }
    })
}

/// What a plugin said, line by line: the breaks of a trace were escaped with everything else that moves a cursor.
fn broken(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end_matches("\\n").split("\\n")
}
