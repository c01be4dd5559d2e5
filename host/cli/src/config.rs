//! `svc config`: stored settings of the client commands, and, below `server`, the settings of the service.

mod server;
mod value;

use std::{collections::BTreeMap, io::Read as _, path::PathBuf};

use command::{Exit, UsageError, environment::Environment};
use serde_json::json;

pub use self::value::parse_pair;
use self::value::{assignments, unknown};
use crate::service::{
    ServiceArgs,
    file::{ClientFile, Key},
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc config set url https://nas.example.com       for all commands that talk to a service
  svc config set token - < key.txt                 read from standard input, so that nobody sees it
  svc config server list                           all settings of the service
  svc config server set max_concurrent_tasks=3 speed_limit_bytes=2097152
  svc config server set local_server_port=18000 local_server_lan_enabled=true
  svc config server unset max_concurrent_tasks     its default again
  svc config server proxy socks5://10.0.0.1:1080   whether that proxy answers the service

Options of a command win over environment variables, and these over the stored settings. The access key of the service \
has a command of its own, svc key.";

/// The longest value from standard input.
const MAX_VALUE_BYTES: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
    #[command(flatten)]
    service: ServiceArgs,
}

#[derive(Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Print a stored setting; of the access key, only its beginning
    Get {
        /// Name of the setting
        key: Key,
    },
    /// Store a setting
    Set {
        /// Name of the setting
        key: Key,
        /// Its value, - to read it from standard input
        value: String,
    },
    /// Remove a stored setting
    Unset {
        /// Name of the setting
        key: Key,
    },
    /// Print all stored settings
    List,
    /// Print the path of the file that stores them
    Path,
    /// Show or change the settings of the service
    #[command(subcommand)]
    Server(server::ServerCommand),
}

pub(crate) async fn run(args: &ConfigArgs, environment: &Environment) -> anyhow::Result<Exit> {
    match &args.command {
        ConfigCommand::Get { key } => get(args, *key),
        ConfigCommand::Set { key, value } => {
            let value = if value == "-" { read_value()? } else { value.clone() };
            change(args, |file| file.set(*key, &value), &format!("{} is set", key.name()))
        }
        ConfigCommand::Unset { key } => {
            let forget = |file: &mut ClientFile| {
                file.unset(*key);
                Ok(())
            };
            change(args, forget, &format!("{} is forgotten", key.name()))
        }
        ConfigCommand::List => {
            let file = ClientFile::read()?;
            let shown = |key: Key| Some((key.name(), file.shown(key)?));
            let values: BTreeMap<_, _> = Key::ALL.into_iter().filter_map(shown).collect();
            args.service.print(&values, || assignments(&values))
        }
        ConfigCommand::Path => {
            let path: PathBuf = ClientFile::path()?;
            args.service.print_done(&path, &path.display().to_string())
        }
        ConfigCommand::Server(command) => server::run(&args.service, command, environment).await,
    }
}

fn get(args: &ConfigArgs, key: Key) -> anyhow::Result<Exit> {
    let value = ClientFile::read()?.shown(key);
    let value = value.ok_or_else(|| unknown("value", key.name()))?;
    args.service.print_done(&value, &value)
}

fn change(
    args: &ConfigArgs,
    change: impl FnOnce(&mut ClientFile) -> Result<(), UsageError>,
    sentence: &str,
) -> anyhow::Result<Exit> {
    let mut file = ClientFile::read()?;
    change(&mut file)?;
    file.write()?;
    let path = ClientFile::path()?;
    args.service.print_done(&json!({ "savedIn": path }), sentence)
}

/// Reads a value from standard input.
pub fn read_value() -> anyhow::Result<String> {
    let mut value = String::new();
    std::io::stdin().take(MAX_VALUE_BYTES).read_to_string(&mut value)?;
    Ok(value.trim().to_owned())
}
