//! What this device's owner does with paired devices.

use std::sync::Arc;

use mdns_sd::{Receiver, ServiceEvent};
use protocol::{
    LinkDeviceInfo, LinkDevicePatch, LinkDeviceTaskRequest, LinkDiscoveredPeer, LinkDispatched, LinkOutboxEntry,
    LinkQueued,
};
use tokio::time::{Duration, timeout};
use uuid::Uuid;

use super::{
    Link,
    clock::{lock, unix_now},
    exchange::Call,
    rounds::Sent,
    stored,
};
use crate::{
    constants::{INFO_TIMEOUT, MAX_DAILY_TASKS, UNPAIR_PATH},
    crypto::identity::{Fingerprint, Identity},
    discovery::{SearchEvent, search_event},
    error::LinkError,
    message::{Invalid, Task, Unpair},
    outbox::Entry,
};

/// How long removing a device waits for that device to hear of it.
const NOTICE_TIME: Duration = Duration::from_secs(4);

impl Link {
    /// Announces this device, if it is allowed to and others can connect.
    pub(super) fn announce(&self, identity: &Identity) {
        let config = &self.0.config;
        let Some(interfaces) = self.0.service.interfaces().filter(|_| config.is_reachable()) else {
            return;
        };
        let mut nearby = lock(&self.0.nearby);
        let announced = nearby.mdns.announce(
            identity.fingerprint(),
            &config.about,
            config.only_address(),
            config.listener.port(),
            interfaces,
        );
        drop(nearby);
        if let Err(error) = announced {
            tracing::warn!(%error, "other devices do not find this one; they can pair by its address");
        }
    }

    /// Stops announcing this device. A code that was made can still be used.
    pub fn stop_announcing(&self) {
        lock(&self.0.nearby).mdns.withdraw();
    }

    /// Ends announcing and searching, at the end of the service.
    pub fn stop(&self) {
        lock(&self.0.nearby).mdns.stop();
    }

    /// The devices nearby.
    pub fn discovered(&self) -> Vec<LinkDiscoveredPeer> {
        lock(&self.0.nearby).snapshot.view()
    }

    /// Begins a search, or begins it again.
    pub async fn search(&self) -> Result<(), LinkError> {
        let identity = Arc::clone(&self.open().await?.known().identity);
        let Some(interfaces) = self.0.service.interfaces() else {
            let why =
                "searching is switched off (SVC_MDNS, link_mdns or the device link itself); give the address instead";
            return Err(LinkError::NoDiscovery(why.to_owned()));
        };
        let mut nearby = lock(&self.0.nearby);
        nearby.snapshot.clear();
        self.publish_discovered(&nearby.snapshot);
        let begun = nearby.mdns.search(interfaces);
        drop(nearby);
        let events = begun.map_err(|error| LinkError::NoDiscovery(error.to_string()))?;
        if let Some(events) = events {
            self.spawn(self.clone().follow_search(events, identity));
        }
        Ok(())
    }

    async fn follow_search(self, events: Receiver<ServiceEvent>, identity: Arc<Identity>) {
        loop {
            match search_event(events.recv_async().await.ok()) {
                SearchEvent::Added(announced) => {
                    let Ok(mut open) = self.open().await else { continue };
                    let known = open.known();
                    let mut nearby = lock(&self.0.nearby);
                    let is_paired = |device: &Fingerprint| known.paired(device).is_some();
                    if nearby.snapshot.add(announced, identity.fingerprint(), is_paired) {
                        self.publish_discovered(&nearby.snapshot);
                    }
                }
                SearchEvent::Removed(instance) => {
                    let mut nearby = lock(&self.0.nearby);
                    if nearby.snapshot.remove(&instance) {
                        self.publish_discovered(&nearby.snapshot);
                    }
                }
                SearchEvent::Ignored => {}
                SearchEvent::Ended => return,
            }
        }
    }

    /// Ends a search. What it found stays listed.
    pub fn stop_search(&self) {
        lock(&self.0.nearby).mdns.stop_search();
    }

    fn read_fingerprint(text: &str) -> Result<Fingerprint, LinkError> {
        Fingerprint::read(text).ok_or(LinkError::UnknownDevice)
    }

    /// Changes a device's record.
    pub async fn update(&self, fingerprint: &str, patch: &LinkDevicePatch) -> Result<LinkDeviceInfo, LinkError> {
        let fingerprint = Self::read_fingerprint(fingerprint)?;
        if patch.daily_tasks.is_some_and(|number| number > MAX_DAILY_TASKS) {
            return Err(Invalid(format!("dailyTasks must be a number from 0 to {MAX_DAILY_TASKS}")).into());
        }
        let mut open = self.open().await?;
        let known = open.known();
        known.paired(&fingerprint).ok_or(LinkError::UnknownDevice)?;
        let mut rows = Vec::new();
        if let Some(device) = known.devices.get_mut(&fingerprint) {
            device.patch(patch);
            rows.push(stored::device_row(&fingerprint, Some(device)));
        }
        self.commit(&mut open, rows).await?;
        let known = open.known();
        self.publish_devices(known);
        let views = self.views(known);
        let view = views.into_iter().find(|view| view.fingerprint == fingerprint.as_str());
        view.ok_or(LinkError::UnknownDevice)
    }

    /// Removes a device with its key and what waits for it, then lets the device know, if it is there.
    pub async fn remove(&self, fingerprint: &str) -> Result<(), LinkError> {
        let fingerprint = Self::read_fingerprint(fingerprint)?;
        let mut open = self.open().await?;
        let known = open.known();
        let device = known.devices.remove(&fingerprint).ok_or(LinkError::UnknownDevice)?;
        let mut rows = vec![stored::device_row(&fingerprint, None)];
        for id in known.outbox.of_device(&fingerprint) {
            known.outbox.remove(&id);
            rows.push(stored::outbox_row(&id, None));
        }
        self.commit(&mut open, rows).await?;
        lock(&self.0.online).remove(&fingerprint);
        self.publish_devices(open.known());
        drop(open);
        // Nothing is sent to a device that ended the pairing itself.
        if !device.is_revoked {
            let link = self.clone();
            let notice = self.finished(async move {
                let plain = serde_json::to_vec(&Unpair { v: 2 }).unwrap_or_default();
                let call = Call {
                    path: UNPAIR_PATH,
                    plain: &plain,
                    limit: INFO_TIMEOUT,
                };
                let notified = link.exchange(&fingerprint, &device, &call).await;
                if let Err(error) = notified {
                    tracing::debug!(
                        ?error,
                        device = device.name,
                        "the device does not know yet that it was removed"
                    );
                }
            });
            // It goes on if it takes longer.
            let _in_time = timeout(NOTICE_TIME, notice).await;
        }
        Ok(())
    }

    /// Sends a download to a device; if it is away, it waits in the outbox.
    pub async fn dispatch(
        &self,
        fingerprint: &str,
        request: LinkDeviceTaskRequest,
    ) -> Result<LinkDispatched, LinkError> {
        let id = Uuid::new_v4().simple().to_string();
        let task = Task::of(request, id.clone())?;
        let unknown = || LinkError::NotPaired("there is no paired device of this fingerprint".to_owned());
        let fingerprint = Fingerprint::read(fingerprint).ok_or_else(unknown)?;
        let mut open = self.open().await?;
        let device = open.known().paired(&fingerprint).cloned().ok_or_else(unknown)?;
        drop(open);
        let plain = serde_json::to_vec(&task).unwrap_or_default();
        let link = self.clone();
        self.finished(async move {
            match link.send(&fingerprint, &device, &plain).await {
                Sent::Created(task_id) => Ok(LinkDispatched::Created { task_id }),
                Sent::Refused(why) => Err(LinkError::PeerRefused(why)),
                Sent::Unauthorized(why) => Err(LinkError::NotPaired(why)),
                Sent::ClockSkew(why) => Err(LinkError::ClockSkew(why)),
                // It may have arrived although no answer came: the id makes a second delivery the same one.
                Sent::Away(why) => {
                    tracing::debug!(why, "a download waits for its device");
                    link.queue(&fingerprint, (id, task), why).await
                }
            }
        })
        .await?
    }

    async fn queue(
        &self,
        fingerprint: &Fingerprint,
        (id, task): (String, Task),
        why: String,
    ) -> Result<LinkDispatched, LinkError> {
        let now = unix_now();
        let mut entry = Entry {
            fingerprint: fingerprint.as_str().to_owned(),
            task,
            created_at: now,
            attempts: 1,
            error: String::new(),
            last_error: why,
            sequence: 0,
        };
        let mut open = self.open().await?;
        let known = open.known();
        if known.paired(fingerprint).is_none() {
            return Err(LinkError::NotPaired("the device was removed meanwhile".to_owned()));
        }
        known.outbox.check_room(now)?;
        entry.sequence = known.outbox.next_sequence();
        let rows = vec![stored::outbox_row(&id, Some(&entry))];
        known.outbox.put(id.clone(), entry);
        self.commit(&mut open, rows).await?;
        lock(&self.0.online).remove(fingerprint);
        self.publish_devices(open.known());
        Ok(LinkDispatched::Queued(LinkQueued { queued: true, id }))
    }

    /// What waits for devices, and what they refused.
    pub async fn outbox(&self) -> Result<Vec<LinkOutboxEntry>, LinkError> {
        let mut open = self.open().await?;
        let known = open.known();
        known.outbox.expire(unix_now());
        let name = |fingerprint: &str| {
            let fingerprint = Fingerprint::read(fingerprint);
            let device = fingerprint.and_then(|fingerprint| known.devices.get(&fingerprint));
            device.map(|device| device.name.clone()).unwrap_or_default()
        };
        Ok(known.outbox.view(name))
    }

    /// Removes one of them.
    pub async fn remove_queued(&self, id: &str) -> Result<(), LinkError> {
        let mut open = self.open().await?;
        let known = open.known();
        known.outbox.remove(id).ok_or(LinkError::UnknownEntry)?;
        self.commit(&mut open, vec![stored::outbox_row(id, None)]).await?;
        self.publish_devices(open.known());
        Ok(())
    }
}
