//! What is stored, as it is in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use protocol::{LinkDeviceInfo, LinkRow, LinkRows};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::MutexGuard;

use super::{
    Change, Link,
    clock::{lock, unix_now},
};
use crate::{
    constants::{DELIVERY_SECS, MAX_DELIVERIES, MAX_DEVICES, QUOTA_SECS},
    crypto::{
        identity::{Fingerprint, Identity},
        random, read_base64, write_base64,
    },
    device::Device,
    discovery::Snapshot,
    error::Unavailable,
    outbox::{Entry, Outbox},
    replay::Replay,
};

const IDENTITY: &str = "identity";
const SEED: &str = "seed";
const DEVICE: &str = "device";
const OUTBOX: &str = "outbox";
const NONCE: &str = "nonce";
const DELIVERED: &str = "delivered";

/// What is on the disk.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) identity: Arc<Identity>,
    pub(super) devices: BTreeMap<Fingerprint, Device>,
    pub(super) outbox: Outbox,
    pub(super) replay: Replay,
    delivered: BTreeMap<(Fingerprint, String), (i64, String)>,
}

/// The lock with what is known in it.
pub(super) struct Open<'a> {
    guard: MutexGuard<'a, Option<Known>>,
    /// A commit was begun and has not succeeded.
    is_uncertain: bool,
}

impl Open<'_> {
    pub(super) fn known(&mut self) -> &mut Known {
        self.guard
            .as_mut()
            .expect("it is loaded before this is made, and dropped with it")
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.is_uncertain {
            *self.guard = None;
        }
    }
}

fn text(value: &impl Serialize) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn read<T: DeserializeOwned>(row: &LinkRow) -> Option<T> {
    let read = serde_json::from_str(row.value.as_deref()?);
    read.inspect_err(|error| tracing::warn!(kind = row.kind, %error, "a stored record of the device link is damaged"))
        .ok()
}

fn row(kind: &str, key: impl Into<String>, value: Option<String>, until: Option<i64>) -> LinkRow {
    LinkRow {
        kind: kind.to_owned(),
        key: key.into(),
        value,
        until,
    }
}

/// The row of a device; without a record, its removal.
pub(super) fn device_row(fingerprint: &Fingerprint, device: Option<&Device>) -> LinkRow {
    row(DEVICE, fingerprint.as_str(), device.and_then(text), None)
}

/// The row of a waiting download; without an entry, its removal.
pub(super) fn outbox_row(id: &str, entry: Option<&Entry>) -> LinkRow {
    row(OUTBOX, id, entry.and_then(text), entry.map(Entry::expires_at))
}

/// The row of a used nonce.
pub(super) fn nonce_row(device: &Fingerprint, nonce: &str, until: i64) -> LinkRow {
    row(NONCE, format!("{device}:{nonce}"), Some(String::new()), Some(until))
}

fn delivered_row(device: &Fingerprint, id: &str, value: Option<String>, until: i64) -> LinkRow {
    row(DELIVERED, format!("{device}:{id}"), value, Some(until))
}

fn split(key: &str) -> Option<(Fingerprint, String)> {
    let (device, rest) = key.split_once(':')?;
    Some((Fingerprint::read(device)?, rest.to_owned()))
}

impl Known {
    fn read(identity: Identity, rows: &[LinkRow], now: i64) -> Self {
        let mut known = Self {
            identity: Arc::new(identity),
            devices: BTreeMap::new(),
            outbox: Outbox::default(),
            replay: Replay::default(),
            delivered: BTreeMap::new(),
        };
        for row in rows {
            match row.kind.as_str() {
                DEVICE => {
                    if let (Some(fingerprint), Some(device)) = (Fingerprint::read(&row.key), read(row)) {
                        known.devices.insert(fingerprint, device);
                    }
                }
                OUTBOX => {
                    if let Some(entry) = read(row) {
                        known.outbox.put(row.key.clone(), entry);
                    }
                }
                NONCE => {
                    if let (Some((device, nonce)), Some(until)) = (split(&row.key), row.until) {
                        known.replay.restore(device, nonce, until);
                    }
                }
                DELIVERED => {
                    if let (Some(key), Some(task), Some(until)) = (split(&row.key), row.value.clone(), row.until) {
                        known.delivered.insert(key, (until, task));
                    }
                }
                _ => {}
            }
        }
        known.replay.forget(now);
        known.outbox.expire(now);
        known
    }

    /// A paired device that did not end the pairing.
    pub(super) fn paired(&self, device: &Fingerprint) -> Option<&Device> {
        self.devices.get(device).filter(|record| !record.is_revoked)
    }

    /// The task that a delivery became.
    pub(super) fn delivered(&self, device: &Fingerprint, id: &str) -> Option<String> {
        let key = (device.clone(), id.to_owned());
        self.delivered.get(&key).map(|(_, task)| task.clone())
    }

    /// How many downloads of a device were taken within the last [`QUOTA_SECS`].
    pub(super) fn received(&self, device: &Fingerprint, now: i64) -> usize {
        let first = (device.clone(), String::new());
        let of_device = self.delivered.range(first..).take_while(|((of, _), _)| of == device);
        // Each is remembered for the same time from when it was taken.
        of_device
            .filter(|(_, (until, _))| until - DELIVERY_SECS > now - QUOTA_SECS)
            .count()
    }

    /// Remembers a delivery; gives the rows.
    pub(super) fn remember(&mut self, device: &Fingerprint, id: &str, task: &str, now: i64) -> Vec<LinkRow> {
        self.delivered.retain(|_, (until, _)| *until > now);
        let mut rows = Vec::new();
        let of_device: BTreeSet<_> = self
            .delivered
            .iter()
            .filter(|((of, _), _)| of == device)
            .map(|((_, id), (until, _))| (*until, id.clone()))
            .collect();
        if of_device.len() >= MAX_DELIVERIES
            && let Some((until, oldest)) = of_device.into_iter().next()
        {
            self.delivered.remove(&(device.clone(), oldest.clone()));
            rows.push(delivered_row(device, &oldest, None, until));
        }
        let until = now + DELIVERY_SECS;
        let key = (device.clone(), id.to_owned());
        self.delivered.insert(key, (until, task.to_owned()));
        rows.push(delivered_row(device, id, Some(task.to_owned()), until));
        rows
    }

    /// Puts a device; gives the rows. A record that ended its pairing makes room if there is none, else an error.
    pub(super) fn put_device(
        &mut self,
        fingerprint: &Fingerprint,
        device: Device,
    ) -> Result<Vec<LinkRow>, Unavailable> {
        let mut rows = Vec::new();
        if !self.devices.contains_key(fingerprint) && self.devices.len() >= MAX_DEVICES {
            let revoked = self.devices.iter().filter(|(_, record)| record.is_revoked);
            let oldest = revoked
                .min_by_key(|(_, record)| record.last_seen_at)
                .map(|(of, _)| of.clone());
            let Some(oldest) = oldest else {
                return Err(Unavailable(format!(
                    "{MAX_DEVICES} devices are paired already; remove some"
                )));
            };
            self.devices.remove(&oldest);
            rows.push(device_row(&oldest, None));
        }
        rows.push(device_row(fingerprint, Some(&device)));
        self.devices.insert(fingerprint.clone(), device);
        Ok(rows)
    }
}

impl Link {
    /// What is stored; reads it first if it is not known.
    pub(super) async fn open(&self) -> Result<Open<'_>, Unavailable> {
        let mut guard = self.0.known.lock().await;
        if guard.is_none() {
            let rows = self.0.service.load().await?;
            let identity = self.identity_in(&rows).await?;
            let known = Known::read(identity, &rows, unix_now());
            let own = self.0.identity.get_or_init(|| Arc::clone(&known.identity));
            if own.fingerprint() != known.identity.fingerprint() {
                return Err(Unavailable(
                    "this device has another key now; restart the service".to_owned(),
                ));
            }
            *guard = Some(known);
        }
        Ok(Open {
            guard,
            is_uncertain: false,
        })
    }

    /// The stored identity; a first one is stored before it is used.
    async fn identity_in(&self, rows: &[LinkRow]) -> Result<Identity, Unavailable> {
        let stored = rows.iter().find(|row| row.kind == IDENTITY && row.key == SEED);
        if let Some(stored) = stored {
            let seed = stored.value.as_deref().and_then(read_base64);
            let damaged =
                || Unavailable("the stored key of the device link is damaged; restore it from a backup".into());
            return Ok(Identity::from_seed(&seed.ok_or_else(damaged)?));
        }
        let seed = random::<32>().map_err(|error| Unavailable(error.to_string()))?;
        let rows = vec![row(IDENTITY, SEED, Some(write_base64(&seed)), None)];
        self.0.service.commit(LinkRows { rows, now: unix_now() }).await?;
        Ok(Identity::from_seed(&seed))
    }

    /// Stores rows that were applied to what is known. If that fails, or the caller goes away meanwhile, what is known is
    /// read again before its next use.
    pub(super) async fn commit(&self, open: &mut Open<'_>, rows: Vec<LinkRow>) -> Result<(), Unavailable> {
        if rows.is_empty() {
            return Ok(());
        }
        open.is_uncertain = true;
        self.0.service.commit(LinkRows { rows, now: unix_now() }).await?;
        open.is_uncertain = false;
        Ok(())
    }

    /// The paired devices as their owner sees them.
    pub(super) fn views(&self, known: &Known) -> Vec<LinkDeviceInfo> {
        let (online, now) = (lock(&self.0.online), unix_now());
        let paired = known.devices.iter().filter(|(_, device)| !device.is_revoked);
        let show = |(fingerprint, device): (&Fingerprint, &Device)| {
            let queued = known.outbox.waiting(fingerprint).len();
            let received = known.received(fingerprint, now);
            device.view(fingerprint, online.contains(fingerprint), queued, received)
        };
        paired.map(show).collect()
    }

    /// Publishes the paired devices.
    pub(super) fn publish_devices(&self, known: &Known) {
        self.0.service.publish(Change::Devices(self.views(known)));
    }

    /// Publishes the devices nearby.
    pub(super) fn publish_discovered(&self, snapshot: &Snapshot) {
        self.0.service.publish(Change::Discovered(snapshot.view()));
    }
}
