//! `svc plugin`: plugins of a service, and tools for plugin authors.

use anyhow::Context as _;
use author::Facilities;
use command::{Exit, environment::Environment};
use plugin_host::market::Origins as _;

use crate::plugins::{self, Internet, proxies};

pub(super) const EXAMPLES: &str = "Examples:
  svc plugin install site.zip                      then see what it asks for and agree to it:
  svc plugin consent site@author
  svc plugin consent site@author DIGEST
  svc plugin settings site@author quality=hd
  svc plugin login site@author                     if its site has accounts; see: svc plugin login --help
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
    Installed(cli::PluginCommand),
    #[command(flatten)]
    Author(author::AuthorCommand),
}

pub(super) fn run(command: PluginCommand, environment: &Environment) -> anyhow::Result<Exit> {
    match command {
        PluginCommand::Installed(command) => cli::run_plugin(command, environment),
        PluginCommand::Author(command) => with_facilities(environment, |facilities| author::run(command, facilities)),
    }
}

/// Supplies sandbox and network access to the commands of authors and maintainers.
pub(super) fn with_facilities<T>(environment: &Environment, act: impl FnOnce(Facilities<'_>) -> T) -> T {
    let proxies = proxies(&environment.system_proxy);
    act(Facilities {
        environment,
        sandbox: &|cache_folder| {
            let svc = std::env::current_exe().context("cannot find this executable")?;
            Ok(plugins::sandbox(cache_folder, svc, environment.language.as_deref()))
        },
        origins: &|url| Internet.at(url, &proxies),
    })
}
