//! `svc config server`: the settings of a service: those of its daemon, and the agent's switches.

mod network;
mod switch;

use std::collections::BTreeMap;

use agent::{Edition, fresh_switches};
use command::{Exit, UsageError, environment::Environment};
use protocol::{
    ConfigPatch, ConfigSnapshot, ErrorCode, Method,
    agent::{GatewayPatch, GatewayStatusDto, PreferencesPatch, PreferencesPatched},
};
use serde_json::json;

use self::switch::Switch;
use super::value::{assignments, parse_pair, unknown};
use crate::{
    service::{Client, RemoteError, ServiceArgs},
    table,
};

#[derive(Debug, clap::Subcommand)]
pub(super) enum ServerCommand {
    /// Print all settings
    List,
    /// Print a setting
    Get {
        /// Name of the setting
        key: String,
    },
    /// Change settings: all of them, or none if one is refused
    Set {
        /// Names of settings, and their values
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse_pair)]
        pairs: Vec<(String, String)>,
    },
    /// Restore the defaults of settings: of all of them, or of none if one is refused
    Unset {
        /// Names of settings
        #[arg(value_name = "KEY", required = true)]
        keys: Vec<String>,
    },
    /// Print the proxy of the service's system, or test a proxy from there
    Proxy {
        /// The proxy to test: whether it answers. Without it, the system's own is printed
        #[arg(value_name = "PROXY", value_hint = clap::ValueHint::Url)]
        proxy: Option<String>,
        /// What is requested through it [default: a page on the Internet that exists for tests]
        #[arg(value_name = "URL", requires = "proxy", value_hint = clap::ValueHint::Url)]
        target: Option<String>,
    },
    /// Print of how many hosts the service has learned how many connections they allow
    HostLimits {
        /// Forget them, so that downloads try again
        #[arg(long)]
        forget: bool,
    },
}

/// A change of settings, by the process that stores them.
#[derive(Debug, Default)]
struct Change {
    daemon: ConfigPatch,
    switches: GatewayPatch,
    preferences: BTreeMap<String, serde_json::Value>,
}

pub(super) async fn run(
    service: &ServiceArgs,
    command: &ServerCommand,
    environment: &Environment,
) -> anyhow::Result<Exit> {
    let mut client = service.connect(environment).await?;
    match command {
        ServerCommand::List => {
            let config = all(&mut client).await?;
            let rows = config.values.iter().map(|(key, value)| [key.clone(), value.clone()]);
            service.print(&config, || table::lines(["KEY", "VALUE"], rows))
        }
        ServerCommand::Get { key } => {
            let value = all(&mut client).await?.values.remove(key);
            let value = value.ok_or_else(|| unknown("setting", key))?;
            service.print_done(&value, &value)
        }
        ServerCommand::Set { pairs } => {
            let mut change = Change::default();
            for (key, value) in pairs {
                change.set(key, value)?;
            }
            let keys = pairs.iter().map(|(key, _)| key);
            apply(service, &mut client, change, keys).await
        }
        ServerCommand::Unset { keys } => {
            let now: GatewayStatusDto = client.ask(Method::GatewayGet).await?;
            let edition = if now.port_editable {
                Edition::Desktop
            } else {
                Edition::Headless
            };
            let usual = fresh_switches(edition);
            let mut change = Change::default();
            for key in keys {
                match Switch::named(key) {
                    Some(Switch::Gateway(switch)) => change.set(key, &(switch.get)(&usual))?,
                    Some(Switch::Preference(name)) => {
                        change.preferences.insert(name.to_owned(), serde_json::Value::Null);
                    }
                    None => change.daemon.unset.push(key.clone()),
                }
            }
            apply(service, &mut client, change, keys.iter()).await
        }
        ServerCommand::Proxy { proxy: None, .. } => network::system_proxy(service, &mut client).await,
        ServerCommand::Proxy {
            proxy: Some(proxy),
            target,
        } => network::test_proxy(service, &mut client, proxy, target.as_deref()).await,
        ServerCommand::HostLimits { forget } => network::host_limits(service, &mut client, *forget).await,
    }
}

/// The settings of daemon and agent together.
async fn all(client: &mut Client) -> Result<ConfigSnapshot, RemoteError> {
    let mut config: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
    let status = client.ask(Method::GatewayGet).await?;
    let preferences = client.ask(Method::PreferencesGet).await?;
    config.values.extend(switch::values(&status, &preferences));
    Ok(config)
}

impl Change {
    fn set(&mut self, key: &str, value: &str) -> Result<(), UsageError> {
        let refuse = |problem| UsageError::new(key, problem);
        match Switch::named(key) {
            Some(Switch::Gateway(switch)) => (switch.set)(&mut self.switches, value).map_err(refuse)?,
            Some(Switch::Preference(name)) => {
                let is_on = switch::boolean(value).map_err(refuse)?;
                self.preferences.insert(name.to_owned(), is_on.into());
            }
            None => {
                self.daemon.values.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn is_for_daemon(&self) -> bool {
        !(self.daemon.values.is_empty() && self.daemon.unset.is_empty())
    }
}

/// Changes settings, and prints what they are then.
async fn apply(
    service: &ServiceArgs,
    client: &mut Client,
    change: Change,
    keys: impl Iterator<Item = &String> + Clone,
) -> anyhow::Result<Exit> {
    // All or none: the agent's half is taken back if the daemon refuses its own. The other way round would not do, because
    // what the daemon had cannot be set again: its secrets are masked where they are read.
    let mut undo = Change::default();
    let status = client.ask(Method::GatewayGet).await?;
    let preferences = client.ask(Method::PreferencesGet).await?;
    let before: BTreeMap<_, _> = switch::values(&status, &preferences).collect();
    for key in keys.clone() {
        if let Some(value) = before.get(key) {
            undo.set(key, value)?;
        }
    }
    let is_for_daemon = change.is_for_daemon();
    let needs_restart = patch_agent(client, change.switches, change.preferences).await?;
    if is_for_daemon && let Err(refused) = patch(client, change.daemon).await {
        patch_agent(client, undo.switches, undo.preferences).await?;
        return Err(refused.into());
    }
    if needs_restart {
        command::note("port and network change when the service is started again");
    }
    let mut now = all(client).await?;
    let values: BTreeMap<_, _> = keys
        .filter_map(|key| Some((key.clone(), now.values.remove(key)?)))
        .collect();
    let record = json!({ "revision": now.revision, "values": values });
    service.print(&record, || assignments(&values))
}

/// Changes settings of the agent; whether some of them take effect when it is started again.
async fn patch_agent(
    client: &mut Client,
    switches: GatewayPatch,
    preferences: BTreeMap<String, serde_json::Value>,
) -> Result<bool, RemoteError> {
    let mut needs_restart = false;
    if switches != GatewayPatch::default() {
        let status: GatewayStatusDto = client.call(Method::GatewayPatch, &switches).await?;
        needs_restart = status.restart_required;
    }
    if !preferences.is_empty() {
        let patch = PreferencesPatch {
            values: preferences,
            sync: true,
        };
        let _: PreferencesPatched = client.call(Method::PreferencesPatch, &patch).await?;
    }
    Ok(needs_restart)
}

/// Changes settings of the daemon. After a conflict with another client, retries once with the current revision.
async fn patch(client: &mut Client, mut patch: ConfigPatch) -> Result<(), RemoteError> {
    let mut was_tried = false;
    loop {
        let now: ConfigSnapshot = client.ask(Method::ConfigGet).await?;
        patch.expected_revision = now.revision;
        match client.call::<ConfigSnapshot>(Method::ConfigPatch, &patch).await {
            Err(RemoteError::Call(error)) if !was_tried && error.application_code() == Some(ErrorCode::Conflict) => {
                was_tried = true;
            }
            outcome => return outcome.map(drop),
        }
    }
}
