//! `svc config`: stored settings of the client commands, and, below `server`, the settings of the service.

use std::{collections::BTreeMap, fmt::Display, io::Read as _, path::PathBuf};

use command::{Exit, UsageError, environment::Environment};
use engine::Settings;
use protocol::{ConfigPatch, ConfigSnapshot, ErrorCode, Method};
use serde_json::json;

use crate::{
    service::{
        Client, RemoteError, ServiceArgs,
        file::{ClientFile, Key},
    },
    table,
};

pub(crate) const EXAMPLES: &str = "Examples:
  svc config set url https://nas.example.com       for all commands that talk to a service
  svc config set token - < key.txt                 read from standard input, so that nobody sees it
  svc config server list
  svc config server set max_concurrent_tasks=3 speed_limit_bytes=2097152

Flags win over the environment, that over this file.";

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
    /// Print a value; the access key only as far as to recognise it
    Get {
        /// Which
        key: Key,
    },
    /// Remember a value
    Set {
        /// Which
        key: Key,
        /// What, - to read it from standard input
        value: String,
    },
    /// Forget a value
    Unset {
        /// Which
        key: Key,
    },
    /// Print all values
    List,
    /// Print where the file is
    Path,
    /// The settings of the service itself
    #[command(subcommand)]
    Server(ServerCommand),
}

#[derive(Debug, clap::Subcommand)]
enum ServerCommand {
    /// Print all settings
    List,
    /// Print a setting
    Get {
        /// Which
        key: String,
    },
    /// Change settings, all of them or none
    Set {
        /// Which, and what
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse_pair)]
        pairs: Vec<(String, String)>,
    },
    /// Set settings back to their defaults, all of them or none
    Unset {
        /// Which
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
    },
}

/// Parses `name=value`; the name must not be empty.
pub fn parse_pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(key, _)| !key.is_empty());
    let (key, value) = pair.ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
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
        ConfigCommand::Server(command) => server(args, command, environment).await,
    }
}

fn get(args: &ConfigArgs, key: Key) -> anyhow::Result<Exit> {
    let value = ClientFile::read()?.shown(key);
    let value = value.ok_or_else(|| unknown("value", key.name()))?;
    args.service.print_done(&value, &value)
}

fn unknown(what: &'static str, name: &str) -> RemoteError {
    let names = vec![name.to_owned()];
    RemoteError::Unknown { what, names }
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

async fn server(args: &ConfigArgs, command: &ServerCommand, environment: &Environment) -> anyhow::Result<Exit> {
    let mut client = args.service.connect(environment).await?;
    match command {
        ServerCommand::List => {
            let config: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
            let rows = config.values.iter().map(|(key, value)| [key.clone(), value.clone()]);
            args.service.print(&config, || table::lines(["KEY", "VALUE"], rows))
        }
        ServerCommand::Get { key } => {
            let mut config: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
            let value = config.values.remove(key).ok_or_else(|| unknown("setting", key))?;
            args.service.print_done(&value, &value)
        }
        ServerCommand::Set { pairs } => patch(args, &mut client, pairs).await,
        ServerCommand::Unset { keys } => {
            let usual = Settings::default();
            // An empty setting of another component means disabled or automatic.
            let default = |key: &String| (key.clone(), usual.value(key).unwrap_or_default());
            let pairs: Vec<_> = keys.iter().map(default).collect();
            patch(args, &mut client, &pairs).await
        }
    }
}

/// Changes settings. After a conflict with another client, retries once with the current settings.
async fn patch(args: &ConfigArgs, client: &mut Client, pairs: &[(String, String)]) -> anyhow::Result<Exit> {
    let mut was_tried = false;
    let changed: ConfigSnapshot = loop {
        let now: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
        let patch = ConfigPatch {
            expected_revision: now.revision,
            values: pairs.iter().cloned().collect(),
        };
        match client.call(Method::ConfigPatch, &patch).await {
            Err(RemoteError::Call(error)) if !was_tried && error.application_code() == Some(ErrorCode::Conflict) => {
                was_tried = true;
            }
            outcome => break outcome?,
        }
    };
    let value = |(key, _): &(String, String)| Some((key.clone(), changed.values.get(key)?.clone()));
    let values: BTreeMap<_, _> = pairs.iter().filter_map(value).collect();
    let record = json!({ "revision": changed.revision, "values": values });
    args.service.print(&record, || assignments(&values))
}

fn assignments<K: Display>(values: &BTreeMap<K, String>) -> Vec<String> {
    values.iter().map(|(key, value)| format!("{key} = {value}")).collect()
}
