//! Asks the paired devices whether they are there, and sends what waits for them.

use std::time::Instant;

use futures_util::{
    StreamExt as _,
    future::{BoxFuture, join_all},
    stream::FuturesUnordered,
};
use jiff::Timestamp;
use protocol::LinkDeviceInfo;
use tokio::time::{Duration, timeout};

use super::{
    Link,
    clock::{lock, unix_ms, unix_now},
    exchange::{Call, Failure},
    stored,
};
use crate::{
    constants::{DISPATCH_TIMEOUT, INFO_PATH, INFO_TIMEOUT, LOOK_INTERVAL, POLL_INTERVAL, ROUND_TIMEOUT, TASKS_PATH},
    crypto::identity::Fingerprint,
    device::{Device, Place},
    error::Unavailable,
    message::{Info, TaskCreated},
    wake::Watch,
};

/// How soon what is stored is asked for again; a daemon starts within a second.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// What became of a download that was sent.
pub(super) enum Sent {
    /// It is a task there.
    Created(String),
    /// The device refuses it, and will.
    Refused(String),
    /// The device does not take it as coming from this one, now.
    Unauthorized(String),
    /// The device does not take it, since the clocks of the two differ too much.
    ClockSkew(String),
    /// The device is away.
    Away(String),
}

impl Link {
    /// Asks all devices, now and then.
    pub(super) fn poll(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut watch = Watch::new(Instant::now(), unix_ms());
            loop {
                let round = self.round().await;
                if let Err(error) = &round {
                    tracing::debug!(%error, "the paired devices are not known yet");
                }
                lock(&self.0.nearby).snapshot.forget(Instant::now());
                // What another device or this one's user did may be a reason not to wait.
                let pause = if round.is_ok() { POLL_INTERVAL } else { RETRY_INTERVAL };
                if self.rest(pause, &mut watch).await {
                    tracing::debug!("the machine slept; announcing and asking again");
                    self.announce_and_search_again().await;
                }
            }
        })
    }

    /// Waits until it is time for the next round. Gives whether the machine slept meanwhile: then it is time at once, because
    /// devices, addresses and networks may be others.
    async fn rest(&self, pause: Duration, watch: &mut Watch) -> bool {
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_woken = timeout(left.min(LOOK_INTERVAL), self.0.wake.notified()).await.is_ok();
            if watch.has_slept(Instant::now(), unix_ms()) {
                return true;
            }
            if is_woken || Instant::now() >= until {
                return false;
            }
        }
    }

    /// Others may have forgotten this device, and this one what it found, while the machine slept.
    async fn announce_and_search_again(&self) {
        let (is_announced, is_searching) = {
            let nearby = lock(&self.0.nearby);
            (nearby.mdns.is_announced(), nearby.mdns.is_searching())
        };
        if let Some(identity) = self.0.identity.get().filter(|_| is_announced) {
            self.announce(identity);
        }
        if is_searching {
            self.stop_search();
            if let Err(error) = self.search().await {
                tracing::warn!(%error, "the search for devices ended with the machine's sleep");
            }
        }
    }

    async fn round(&self) -> Result<(), Unavailable> {
        self.refresh().await?;
        let mut open = self.open().await?;
        let known = open.known();
        known.replay.forget(unix_now());
        known.outbox.expire(unix_now());
        let online = lock(&self.0.online).clone();
        let waiting = online
            .into_iter()
            .filter(|device| !known.outbox.waiting(device).is_empty());
        let waiting: Vec<Fingerprint> = waiting.collect();
        drop(open);
        let mut sends: FuturesUnordered<_> = waiting.into_iter().map(|device| self.send_waiting(device)).collect();
        while sends.next().await.is_some() {}
        Ok(())
    }

    /// Asks all paired devices at once, and gives them with what is known now.
    pub async fn refresh(&self) -> Result<Vec<LinkDeviceInfo>, Unavailable> {
        let mut open = self.open().await?;
        let paired = open.known().devices.iter().filter(|(_, device)| !device.is_revoked);
        let devices: Vec<_> = paired.map(|(of, device)| (of.clone(), device.clone())).collect();
        drop(open);
        let asked = join_all(devices.iter().map(|(fingerprint, device)| async move {
            let is_there = timeout(ROUND_TIMEOUT, self.ask_info(fingerprint, device)).await;
            (fingerprint, is_there.unwrap_or(false))
        }));
        let mut is_changed = false;
        for (fingerprint, is_there) in asked.await {
            if !is_there {
                is_changed |= lock(&self.0.online).remove(fingerprint);
            }
        }
        let mut open = self.open().await?;
        let views = self.views(open.known());
        if is_changed {
            self.publish_devices(open.known());
        }
        Ok(views)
    }

    async fn ask_info(&self, fingerprint: &Fingerprint, device: &Device) -> bool {
        let peer = device.places.first().and_then(Place::ip);
        let Ok(plain) = serde_json::to_vec(&self.own_info(peer)) else {
            return false;
        };
        let call = Call {
            path: INFO_PATH,
            plain: &plain,
            limit: INFO_TIMEOUT,
        };
        match self.exchange(fingerprint, device, &call).await {
            Ok((answer, place)) => match Info::read(&answer) {
                Ok(info) => self.learn(fingerprint, &info, Some(&place)).await.is_ok(),
                Err(error) => {
                    tracing::debug!(%error, device = device.name, "the device says nonsense of itself");
                    true
                }
            },
            // It is the device, and does not know this request.
            Err(Failure::Later {
                status: 404 | 405 | 501,
                ..
            }) => true,
            Err(error) => {
                tracing::debug!(?error, device = device.name, "the device is not there");
                false
            }
        }
    }

    /// Sends a download.
    pub(super) async fn send(&self, fingerprint: &Fingerprint, device: &Device, plain: &[u8]) -> Sent {
        let name = &device.name;
        let call = Call {
            path: TASKS_PATH,
            plain,
            limit: DISPATCH_TIMEOUT,
        };
        match self.exchange(fingerprint, device, &call).await {
            Ok((answer, _)) => match serde_json::from_slice::<TaskCreated>(&answer) {
                Ok(TaskCreated { task_id }) => Sent::Created(task_id),
                Err(_) => Sent::Refused("its answer names no task".to_owned()),
            },
            Err(Failure::Away(why)) => Sent::Away(why),
            Err(Failure::Later { status, message }) if message.is_empty() => {
                Sent::Away(format!("{name} answers with status {status}"))
            }
            Err(Failure::Later { status, message }) => {
                Sent::Away(format!("{name} answers with status {status}: {message}"))
            }
            Err(Failure::Forged(why)) => Sent::Unauthorized(format!(
                "{name} cannot have answered: {why}; pair again if this stays so"
            )),
            Err(Failure::Refused(message)) => Sent::Refused(message),
            Err(Failure::Unauthorized { reason, server_time }) => match (reason.as_str(), server_time) {
                ("clockSkew", Some(theirs)) => {
                    let own = unix_now();
                    Sent::ClockSkew(format!(
                        "the clocks differ by {} s: {name} says {}, this device {}; set both, at most two minutes apart",
                        theirs.abs_diff(own),
                        date(theirs),
                        date(own),
                    ))
                }
                ("notPaired", _) => Sent::Unauthorized(format!(
                    "{name} says that it is not paired with this device; pair again"
                )),
                _ => Sent::Unauthorized(format!(
                    "{name} does not accept this device's key; pair again if this stays so"
                )),
            },
        }
    }

    /// Sends what waits for a device, oldest first, until one is not taken.
    pub(super) async fn send_waiting(&self, fingerprint: Fingerprint) {
        if !lock(&self.0.sending).insert(fingerprint.clone()) {
            return;
        }
        let sending = Sending {
            link: self,
            fingerprint: &fingerprint,
        };
        if let Err(error) = self.send_all(&fingerprint).await {
            tracing::warn!(%error, "the outbox could not be changed");
        }
        drop(sending);
    }

    async fn send_all(&self, fingerprint: &Fingerprint) -> Result<(), Unavailable> {
        loop {
            let mut open = self.open().await?;
            let known = open.known();
            let id = known.outbox.waiting(fingerprint).into_iter().next();
            let (Some(id), Some(device)) = (id, known.paired(fingerprint).cloned()) else {
                return Ok(());
            };
            let Some(entry) = known.outbox.get(&id).cloned() else {
                return Ok(());
            };
            drop(open);
            let Ok(plain) = serde_json::to_vec(&entry.task) else {
                return Ok(());
            };
            let sent = self.send(fingerprint, &device, &plain).await;
            let mut open = self.open().await?;
            let known = open.known();
            // Its owner may have removed it meanwhile.
            let Some(mut entry) = known.outbox.remove(&id) else {
                continue;
            };
            let (row, is_over) = match sent {
                Sent::Created(task) => {
                    tracing::info!(device = device.name, task, "a waiting download was delivered");
                    (stored::outbox_row(&id, None), false)
                }
                Sent::Refused(why) => {
                    entry.error = if why.is_empty() { "refused".to_owned() } else { why };
                    entry.last_error.clone_from(&entry.error);
                    let row = stored::outbox_row(&id, Some(&entry));
                    known.outbox.put(id, entry);
                    (row, false)
                }
                Sent::Unauthorized(why) | Sent::ClockSkew(why) | Sent::Away(why) => {
                    entry.attempts = entry.attempts.saturating_add(1);
                    entry.last_error = why;
                    let row = stored::outbox_row(&id, Some(&entry));
                    known.outbox.put(id, entry);
                    (row, true)
                }
            };
            self.commit(&mut open, vec![row]).await?;
            self.publish_devices(open.known());
            if is_over {
                return Ok(());
            }
        }
    }
}

/// A device whose outbox is being sent.
struct Sending<'a> {
    link: &'a Link,
    fingerprint: &'a Fingerprint,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        lock(&self.link.0.sending).remove(self.fingerprint);
    }
}

/// A time as people read it, in UTC.
fn date(unix: i64) -> String {
    let time = Timestamp::from_second(unix);
    time.map_or_else(
        |_| unix.to_string(),
        |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}
