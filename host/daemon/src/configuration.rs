//! The configuration as clients see it: the engine's settings and the keys of `keys`, under one revision.

pub(crate) mod keys;
pub(crate) mod schema;
pub(crate) mod torrents;

use std::{collections::BTreeMap, sync::Arc};

use engine::{Engine, Settings, VersionedSettings};
use hooks::{Endpoint, Endpoints, InvalidEndpoints};
use protocol::{ConfigPatch, ConfigSnapshot, ErrorCode, Reason, RpcError};
use store::{SealError, Store, Vault};
use tokio::sync::{Mutex, watch};

use crate::{
    configuration::torrents::TorrentSettings,
    refusal::{Refuse as _, invalid, unknown_queue},
    rows,
};

/// Write-only: snapshots show a placeholder.
pub(crate) const PASSWORD: &str = "proxy_password";

/// The stored values of the keys that are not the engine's.
#[derive(Debug, Default)]
pub(crate) struct OwnKeys {
    revision: u64,
    values: BTreeMap<String, String>,
    endpoints: Endpoints,
}

/// Why the configuration cannot be read.
#[derive(Debug)]
pub(crate) enum LoadError {
    Read(store::ReadError),
    /// The endpoints of webhooks cannot be decrypted.
    Sealed(SealError),
}

/// What of the own keys a patch changes.
#[derive(Debug, Default)]
struct OwnChanges {
    values: BTreeMap<String, String>,
    endpoints: Option<Endpoints>,
}

#[derive(Debug)]
pub(crate) struct Configuration {
    store: Store,
    vault: Arc<Vault>,
    engine: Engine,
    /// Serializes patches: a patch is checked against the revision and then saved.
    patching: Mutex<()>,
    own: watch::Sender<Arc<OwnKeys>>,
    /// The endpoints of `own`, for the task that delivers to them.
    endpoints: watch::Sender<Endpoints>,
    /// What `own` says of tools.
    tools: watch::Sender<tools::Settings>,
    /// What `own` says of torrents.
    torrents: watch::Sender<TorrentSettings>,
}

impl Configuration {
    /// The stored choices of tools, for what starts before the rest of the configuration can be used.
    pub(crate) async fn stored_tools(store: &Store) -> Result<watch::Sender<tools::Settings>, store::ReadError> {
        let (_, values) = rows::load_config(store).await?;
        Ok(watch::Sender::new(chosen_tools(&values)))
    }

    /// The stored settings of torrents, for the same reason.
    pub(crate) async fn stored_torrents(store: &Store) -> Result<TorrentSettings, store::ReadError> {
        let (_, values) = rows::load_config(store).await?;
        Ok(TorrentSettings::stored(&values))
    }

    /// `tools` is what [`Configuration::stored_tools`] gave.
    pub(crate) async fn load(
        store: Store,
        vault: Arc<Vault>,
        engine: Engine,
        tools: watch::Sender<tools::Settings>,
    ) -> Result<Self, LoadError> {
        let (revision, values) = rows::load_config(&store).await.map_err(LoadError::Read)?;
        let stored = rows::load_endpoints(&store, Arc::clone(&vault)).await;
        let endpoints = stored.map_err(LoadError::Read)?.map_err(LoadError::Sealed)?;
        let endpoints = checked(&endpoints);
        Ok(Self {
            store,
            vault,
            engine,
            patching: Mutex::new(()),
            endpoints: watch::Sender::new(endpoints.clone()),
            tools,
            torrents: watch::Sender::new(TorrentSettings::stored(&values)),
            own: watch::Sender::new(Arc::new(OwnKeys {
                revision,
                values,
                endpoints,
            })),
        })
    }

    /// The endpoints of webhooks, now and later.
    pub(crate) fn endpoints(&self) -> watch::Receiver<Endpoints> {
        self.endpoints.subscribe()
    }

    /// The settings of torrents, now and later.
    pub(crate) fn torrents(&self) -> watch::Receiver<TorrentSettings> {
        self.torrents.subscribe()
    }

    pub(crate) fn snapshot(&self) -> ConfigSnapshot {
        self.snapshot_with(&self.engine.settings())
    }

    /// As [`Configuration::snapshot`], with engine settings of the same moment as the rest of a snapshot.
    pub(crate) fn snapshot_with(&self, settings: &VersionedSettings) -> ConfigSnapshot {
        let own = Arc::clone(&self.own.borrow());
        let of_engine = Settings::keys().filter_map(|key| {
            let value = settings.settings.value(key)?;
            let is_hidden = key == PASSWORD && !value.is_empty();
            Some((
                key.to_owned(),
                if is_hidden { protocol::MASKED.to_owned() } else { value },
            ))
        });
        ConfigSnapshot {
            revision: revision(settings, &own),
            values: of_engine
                .chain(keys::with_defaults(&own.values))
                .chain([(keys::WEBHOOK_ENDPOINTS.to_owned(), own.endpoints.shown())])
                .collect(),
        }
    }

    /// Whether a flag of `keys` is set.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        keys::value(&self.own.borrow().values, key) == "true"
    }

    /// What follows finished downloads, unless their queue says otherwise.
    pub(crate) fn post_chain(&self) -> String {
        keys::value(&self.own.borrow().values, keys::POST_CHAIN).to_owned()
    }

    /// Applies all of `patch` or nothing: everything is validated before anything is saved.
    pub(crate) async fn patch(&self, patch: ConfigPatch) -> Result<ConfigSnapshot, RpcError> {
        let _turn = self.patching.lock().await;
        let present = self.engine.settings();
        let own = Arc::clone(&self.own.borrow());
        let now = revision(&present, &own);
        if patch.expected_revision != now {
            let message = format!("the configuration is at revision {now} now");
            return Err(RpcError::application(ErrorCode::Conflict, message)
                .with_field("expectedRevision")
                .with_revision(now));
        }
        refuse_unknown(patch.unset.iter().chain(patch.values.keys()))?;
        let mut settings = Settings::clone(&present.settings);
        let mut changed = OwnChanges::default();
        let usual = Settings::default();
        for key in patch.unset {
            if let Some(value) = usual.value(&key) {
                settings.set(&key, &value).refused()?;
            } else {
                let value = keys::default(&key);
                changed.set(key, &value, &own)?;
            }
        }
        for (key, value) in patch.values {
            if key == PASSWORD && value.trim() == protocol::MASKED {
                continue;
            }
            if Settings::has_key(&key) {
                settings.set(&key, &value).refused()?;
            } else {
                changed.set(key, &value, &own)?;
            }
        }
        settings.validate().refused()?;
        let mut values = own.values.clone();
        values.extend(changed.values.clone());
        TorrentSettings::stored(&values)
            .validate()
            .map_err(|error| keys::torrents_refused("bt_port_end", &error))?;
        if let Some(endpoints) = &changed.endpoints {
            self.check_queues(endpoints, &own.endpoints).await?;
        }
        changed.values.retain(|key, value| own.values.get(key) != Some(value));
        changed.endpoints.take_if(|endpoints| *endpoints == own.endpoints);
        if !changed.values.is_empty() || changed.endpoints.is_some() {
            self.save_own(&own, changed).await?;
        }
        if settings != *present.settings {
            let saved = self.engine.change_settings(Some(present.revision), settings).await;
            if saved.is_err() {
                self.restore_own(&own).await;
            }
            saved.refused()?;
        }
        Ok(self.snapshot())
    }

    /// A webhook may subscribe only to a queue that exists. What was stored before its queue was deleted may
    /// stay as it is: other webhooks can be changed all the same.
    async fn check_queues(&self, endpoints: &Endpoints, before: &Endpoints) -> Result<(), RpcError> {
        let is_stored = |endpoint: &Endpoint| {
            let known = before.get(&endpoint.id);
            known.is_some_and(|known| known.queue == endpoint.queue)
        };
        let changed = endpoints.iter().filter(|endpoint| !is_stored(endpoint));
        let named = changed
            .map(|endpoint| (endpoint.id.clone(), endpoint.queue.as_str()))
            .collect();
        let Some((endpoint, why)) = unknown_queue(&self.engine, named).await? else {
            return Ok(());
        };
        let field = "queueId";
        let refused = InvalidEndpoints::Field { endpoint, field, why };
        Err(invalid(keys::WEBHOOK_ENDPOINTS, refused.to_string()))
    }

    async fn save_own(&self, before: &OwnKeys, changed: OwnChanges) -> Result<(), RpcError> {
        let revision = before.revision + 1;
        let exposed = changed.endpoints.as_ref().map(Endpoints::exposed);
        rows::save_config(
            &self.store,
            Arc::clone(&self.vault),
            revision,
            changed.values.clone(),
            exposed,
        )
        .await
        .map_err(|error| RpcError::application(ErrorCode::Unavailable, error.to_string()))?;
        let mut values = before.values.clone();
        values.extend(changed.values);
        let endpoints = changed.endpoints.unwrap_or_else(|| before.endpoints.clone());
        self.endpoints.send_if_modified(|known| {
            let is_changed = *known != endpoints;
            known.clone_from(&endpoints);
            is_changed
        });
        self.tools.send_replace(chosen_tools(&values));
        let of_torrents = TorrentSettings::stored(&values);
        self.torrents.send_if_modified(|known| {
            let is_changed = *known != of_torrents;
            known.clone_from(&of_torrents);
            is_changed
        });
        self.own.send_replace(Arc::new(OwnKeys {
            revision,
            values,
            endpoints,
        }));
        Ok(())
    }

    /// Rolls back when the engine's half of a patch failed. The revision grows all the same: a client may have read the
    /// value in between.
    async fn restore_own(&self, before: &OwnKeys) {
        let present = Arc::clone(&self.own.borrow());
        if present.revision == before.revision {
            return;
        }
        let restored = OwnChanges {
            values: keys::with_defaults(&before.values).collect(),
            endpoints: Some(before.endpoints.clone()),
        };
        if self.save_own(&present, restored).await.is_err() {
            tracing::error!("a half of a refused configuration change could not be taken back");
        }
    }
}

impl OwnChanges {
    /// Takes a new value of a key, if the key allows it.
    fn set(&mut self, key: String, value: &str, own: &OwnKeys) -> Result<(), RpcError> {
        if key == keys::WEBHOOK_ENDPOINTS {
            let checked = Endpoints::check(value, &own.endpoints);
            self.endpoints = Some(checked.map_err(|error| invalid(&key, error.to_string()))?);
        } else {
            let value = keys::check(&key, value)?;
            self.values.insert(key, value);
        }
        Ok(())
    }
}

/// Which tools the stored values allow. A value of another version allows none.
fn chosen_tools(stored: &BTreeMap<String, String>) -> tools::Settings {
    let choice = |name| keys::value(stored, name).parse().unwrap_or_default();
    tools::Settings {
        ffmpeg: choice(keys::TOOL_FFMPEG),
        yt_dlp: choice(keys::TOOL_YT_DLP),
    }
}

/// Endpoints as they were stored.
fn checked(stored: &str) -> Endpoints {
    Endpoints::check(stored, &Endpoints::default()).unwrap_or_else(|error| {
        // Another version stored them. They stay stored until the setting is changed.
        tracing::warn!(%error, "the stored webhooks are not used");
        Endpoints::default()
    })
}

/// Names every key that does not exist, and those that do: the client may be made for another version or program.
fn refuse_unknown<'k>(keys: impl Iterator<Item = &'k String>) -> Result<(), RpcError> {
    let exists = |key: &str| Settings::has_key(key) || keys::names().any(|name| name == key);
    let unknown: Vec<&String> = keys.filter(|key| !exists(key)).collect();
    let Some(first) = unknown.first() else { return Ok(()) };
    let shown = |key: &str| {
        key.chars()
            .filter(|c| !c.is_control())
            .take(MAX_SHOWN_CHARS)
            .collect::<String>()
    };
    let named = unknown.iter().take(MAX_NAMED).map(|key| format!("\"{}\"", shown(key)));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match unknown.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let known: Vec<&str> = Settings::keys().chain(keys::names()).collect();
    let message = format!(
        "unknown setting {named}{more}; nothing was changed; the settings are {}",
        known.join(", ")
    );
    Err(invalid(&shown(first), message).with_reason(Reason::SettingUnknown))
}

/// Unknown keys that an error names, and how much of each: they are a client's text.
const MAX_NAMED: usize = 8;
const MAX_SHOWN_CHARS: usize = 64;

/// The sum of two counters that only grow, so it grows whenever either part changes.
fn revision(settings: &VersionedSettings, own: &OwnKeys) -> u64 {
    settings.revision + own.revision
}
