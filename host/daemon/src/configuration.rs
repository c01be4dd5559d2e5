//! The configuration as clients see it: the engine's settings and the keys of `keys`, under one revision.

pub(crate) mod keys;

use std::{collections::BTreeMap, sync::Arc};

use engine::{Engine, Settings, VersionedSettings};
use protocol::{ConfigPatch, ConfigSnapshot, ErrorCode, RpcError};
use store::Store;
use tokio::sync::{Mutex, watch};

use crate::{refusal::Refuse as _, rows, view::HIDDEN};

/// The engine's key whose value is never shown.
const PASSWORD: &str = "proxy_password";

/// The stored values of the keys that are not the engine's.
#[derive(Debug, Default)]
pub(crate) struct Others {
    revision: u64,
    values: BTreeMap<String, String>,
}

/// The configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    store: Store,
    engine: Engine,
    /// One patch at a time: it is checked against the revision, then saved.
    patching: Mutex<()>,
    others: watch::Sender<Arc<Others>>,
}

impl Configuration {
    pub(crate) async fn load(store: Store, engine: Engine) -> Result<Self, store::ReadError> {
        let (revision, values) = rows::load_config(&store).await?;
        Ok(Self {
            store,
            engine,
            patching: Mutex::new(()),
            others: watch::Sender::new(Arc::new(Others { revision, values })),
        })
    }

    /// All keys and values.
    pub(crate) fn snapshot(&self) -> ConfigSnapshot {
        self.snapshot_with(&self.engine.settings())
    }

    /// As [`Configuration::snapshot`], with the engine's part as it was at some moment.
    pub(crate) fn snapshot_with(&self, settings: &VersionedSettings) -> ConfigSnapshot {
        let others = Arc::clone(&self.others.borrow());
        let of_engine = Settings::KEYS.into_iter().filter_map(|key| {
            let value = settings.settings.value(key)?;
            let is_hidden = key == PASSWORD && !value.is_empty();
            Some((key.to_owned(), if is_hidden { HIDDEN.to_owned() } else { value }))
        });
        ConfigSnapshot {
            revision: revision(settings, &others),
            values: of_engine.chain(keys::with_defaults(&others.values)).collect(),
        }
    }

    /// Whether a flag of `keys` is set.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        keys::value(&self.others.borrow().values, key) == "true"
    }

    /// Changes all of what `patch` names, or nothing. Everything is checked before anything is saved.
    pub(crate) async fn patch(&self, patch: ConfigPatch) -> Result<ConfigSnapshot, RpcError> {
        let _turn = self.patching.lock().await;
        let present = self.engine.settings();
        let others = Arc::clone(&self.others.borrow());
        let now = revision(&present, &others);
        if patch.expected_revision != now {
            let message = format!("the configuration is at revision {now} now");
            return Err(RpcError::application(ErrorCode::Conflict, message)
                .with_field("expectedRevision")
                .with_revision(now));
        }
        let mut settings = Settings::clone(&present.settings);
        let mut changed = BTreeMap::new();
        for (key, value) in patch.values {
            if key == PASSWORD && value.trim() == HIDDEN {
                continue;
            }
            if Settings::KEYS.contains(&key.as_str()) {
                settings.set(&key, &value).refused()?;
            } else {
                let value = keys::check(&key, &value)?;
                changed.insert(key, value);
            }
        }
        settings.validate().refused()?;
        changed.retain(|key, value| others.values.get(key) != Some(value));
        if !changed.is_empty() {
            self.save_others(&others, changed).await?;
        }
        if settings != *present.settings {
            let saved = self.engine.change_settings(Some(present.revision), settings).await;
            if saved.is_err() {
                self.restore_others(&others).await;
            }
            saved.refused()?;
        }
        Ok(self.snapshot())
    }

    async fn save_others(&self, before: &Others, changed: BTreeMap<String, String>) -> Result<(), RpcError> {
        let revision = before.revision + 1;
        rows::save_config(&self.store, revision, changed.clone())
            .await
            .map_err(|error| RpcError::application(ErrorCode::Unavailable, error.to_string()))?;
        let mut values = before.values.clone();
        values.extend(changed);
        self.others.send_replace(Arc::new(Others { revision, values }));
        Ok(())
    }

    /// Takes back a change whose other half failed. The revision still grows: somebody may have seen it.
    async fn restore_others(&self, before: &Others) {
        let present = Arc::clone(&self.others.borrow());
        if present.revision == before.revision {
            return;
        }
        let restored = keys::with_defaults(&before.values).collect();
        if self.save_others(&present, restored).await.is_err() {
            tracing::error!("a half of a refused configuration change could not be taken back");
        }
    }
}

/// Grows whenever one of the two parts changes.
fn revision(settings: &VersionedSettings, others: &Others) -> u64 {
    settings.revision + others.revision
}
