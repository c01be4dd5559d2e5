//! `svc config server`: the settings of a service: those of its daemon, and the agent's switches.

mod network;
mod switch;

use std::collections::BTreeMap;

use agent::{Edition, fresh_switches};
use command::{Exit, UsageError, environment::Environment};
use protocol::{
    ConfigPatch, ConfigSchema, ConfigSnapshot, ErrorCode, Method, SettingDto, SettingKind,
    agent::{GatewayPatch, GatewayStatusDto, Preferences, PreferencesPatch, PreferencesPatched},
};
use serde::{Serialize, de::DeserializeOwned};
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
    /// Say what settings do, and what they may be
    Describe {
        /// Part of a name, or of a meaning; without it, all
        #[arg(value_name = "WORD")]
        word: Option<String>,
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

/// What answers calls: a service.
trait Calls {
    /// Calls a method.
    async fn call<R: DeserializeOwned>(&mut self, method: Method, params: &impl Serialize) -> Result<R, RemoteError>;
}

impl Calls for Client {
    async fn call<R: DeserializeOwned>(&mut self, method: Method, params: &impl Serialize) -> Result<R, RemoteError> {
        self.call(method, params).await
    }
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
        ServerCommand::Describe { word } => describe(service, &mut client, word.as_deref()).await,
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
                    Some(Switch::Preference(preference)) => {
                        change
                            .preferences
                            .insert(preference.name.to_owned(), serde_json::Value::Null);
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

/// Prints what settings are.
async fn describe(service: &ServiceArgs, client: &mut Client, word: Option<&str>) -> anyhow::Result<Exit> {
    let ConfigSchema { mut settings } = client.ask(Method::ConfigSchema).await?;
    let of_agent: ConfigSchema = client.ask(Method::GatewaySchema).await?;
    let named = of_agent.settings.into_iter().filter_map(|setting| {
        let key = switch::name_of(&setting.key)?.to_owned();
        Some(SettingDto { key, ..setting })
    });
    let of_desktop: ConfigSchema = client.ask(Method::PreferencesSchema).await?;
    settings.extend(named.chain(of_desktop.settings));
    if let Some(word) = word.map(str::to_lowercase) {
        settings.retain(|setting| setting.key.contains(&word) || setting.meaning.to_lowercase().contains(&word));
    }
    let rows = settings.iter().map(|setting| {
        let allowed = match (setting.min, setting.max) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ if setting.kind == SettingKind::Switch => "true or false".to_owned(),
            _ => setting.choices.join(", "),
        };
        [
            setting.key.clone(),
            setting.default.clone(),
            allowed,
            setting.meaning.clone(),
        ]
    });
    service.print(&settings, || {
        table::lines(["KEY", "DEFAULT", "ALLOWED", "MEANING"], rows)
    })
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
            Some(Switch::Preference(preference)) => {
                let value = preference.read(value).map_err(refuse)?;
                self.preferences.insert(preference.name.to_owned(), value);
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
    let needs_restart = make(client, change, keys.clone()).await?;
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

/// Makes a change, all of it or none; whether some of it takes effect when the service is started again.
async fn make(
    client: &mut impl Calls,
    change: Change,
    keys: impl Iterator<Item = &String>,
) -> Result<bool, RemoteError> {
    // The agent's part is taken back if the daemon refuses its own. The other way round would not do, because what the
    // daemon had cannot be set again: its secrets are masked where they are read.
    let status: GatewayStatusDto = client.call(Method::GatewayGet, &json!({})).await?;
    let preferences: Preferences = client.call(Method::PreferencesGet, &json!({})).await?;
    let undo = undo(keys, &status, &preferences);
    let is_for_daemon = change.is_for_daemon();
    let needs_restart = patch_gateway(client, change.switches).await?;
    let made = async {
        patch_preferences(client, change.preferences).await?;
        if is_for_daemon {
            patch(client, change.daemon).await?;
        }
        Ok(needs_restart)
    };
    let made = made.await;
    if made.is_err() {
        let gateway = patch_gateway(client, undo.switches).await.map(drop);
        let preferences = patch_preferences(client, undo.preferences).await;
        for error in [gateway, preferences].into_iter().filter_map(Result::err) {
            command::note(&format!("some settings stay changed: {error}"));
        }
    }
    made
}

/// What gives the agent's settings of these names the values back that they have, as they are stored.
fn undo<'k>(keys: impl Iterator<Item = &'k String>, status: &GatewayStatusDto, preferences: &Preferences) -> Change {
    let mut undo = Change::default();
    for key in keys {
        match Switch::named(key) {
            Some(Switch::Gateway(switch)) => {
                let _is_its_own = (switch.set)(&mut undo.switches, &(switch.get)(status));
            }
            Some(Switch::Preference(preference)) => {
                // What is null is removed.
                let value = preferences.values.get(preference.name).cloned().unwrap_or_default();
                undo.preferences.insert(preference.name.to_owned(), value);
            }
            None => {}
        }
    }
    undo
}

/// Changes switches of the agent; whether some of them take effect when it is started again.
async fn patch_gateway(client: &mut impl Calls, switches: GatewayPatch) -> Result<bool, RemoteError> {
    if switches == GatewayPatch::default() {
        return Ok(false);
    }
    let status: GatewayStatusDto = client.call(Method::GatewayPatch, &switches).await?;
    Ok(status.restart_required)
}

async fn patch_preferences(
    client: &mut impl Calls,
    values: BTreeMap<String, serde_json::Value>,
) -> Result<(), RemoteError> {
    if values.is_empty() {
        return Ok(());
    }
    let patch = PreferencesPatch { values, sync: true };
    client
        .call(Method::PreferencesPatch, &patch)
        .await
        .map(|_: PreferencesPatched| ())
}

/// Changes settings of the daemon. After a conflict with another client, retries once with the current revision.
async fn patch(client: &mut impl Calls, mut patch: ConfigPatch) -> Result<(), RemoteError> {
    let mut was_tried = false;
    loop {
        let now: ConfigSnapshot = client.call(Method::ConfigGet, &json!({})).await?;
        patch.expected_revision = now.revision;
        let patched: Result<ConfigSnapshot, _> = client.call(Method::ConfigPatch, &patch).await;
        match patched {
            Err(RemoteError::Call(error)) if !was_tried && error.application_code() == Some(ErrorCode::Conflict) => {
                was_tried = true;
            }
            outcome => return outcome.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::RpcError;

    use super::*;

    /// A service that refuses one method, and what it was told to change.
    struct Scripted {
        refused: Method,
        preferences: serde_json::Value,
        told: Vec<(Method, serde_json::Value)>,
    }

    impl Calls for Scripted {
        async fn call<R: DeserializeOwned>(
            &mut self,
            method: Method,
            params: &impl Serialize,
        ) -> Result<R, RemoteError> {
            let answer = match method {
                Method::GatewayGet | Method::GatewayPatch => json!(GatewayStatusDto::default()),
                Method::PreferencesGet => json!({ "revision": 1, "values": self.preferences }),
                Method::PreferencesPatch => json!({ "ok": true, "revision": 2 }),
                Method::ConfigGet | Method::ConfigPatch => json!({ "revision": 7, "values": {} }),
                _ => panic!("{method:?}"),
            };
            if matches!(method, Method::GatewayPatch | Method::PreferencesPatch) {
                self.told.push((method, json!(params)));
            }
            if method == self.refused {
                return Err(RpcError::invalid_params("no").into());
            }
            Ok(serde_json::from_value(answer).unwrap())
        }
    }

    async fn refuse(refused: Method, preferences: serde_json::Value) -> Vec<(Method, serde_json::Value)> {
        let mut service = Scripted {
            refused,
            preferences,
            told: Vec::new(),
        };
        let pairs = [
            ("local_server_cors_allow_all", "true"),
            ("silent_download_enabled", "true"),
            ("silent_skip_selection", "true"),
            ("max_concurrent_tasks", "4"),
        ];
        let mut change = Change::default();
        for (key, value) in pairs {
            change.set(key, value).unwrap();
        }
        let keys = pairs.map(|(key, _)| key.to_owned());
        assert!(make(&mut service, change, keys.iter()).await.is_err());
        service.told
    }

    #[tokio::test]
    async fn what_is_refused_in_part_leaves_every_setting_as_it_is_stored() {
        // As older user interfaces store it, and not at all.
        let stored = json!({ "silent_download_enabled": "yes" });
        for refused in [Method::PreferencesPatch, Method::ConfigPatch] {
            let told = refuse(refused, stored.clone()).await;
            let [
                (_, switched),
                _,
                (Method::GatewayPatch, gateway),
                (Method::PreferencesPatch, preferences),
            ] = &told[..]
            else {
                panic!("{told:?}")
            };
            assert_eq!(
                (&switched["corsEnabled"], &gateway["corsEnabled"]),
                (&json!(true), &json!(false))
            );
            let before = json!({ "silent_download_enabled": "yes", "silent_skip_selection": null });
            assert_eq!(preferences["values"], before);
        }
        let told = refuse(Method::GatewayPatch, stored).await;
        assert_eq!(told.len(), 1, "nothing has changed that could be taken back");
    }
}
