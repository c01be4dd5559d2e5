//! Requests of paired devices.

use ring::digest::{SHA256, digest};
use uuid::Uuid;

use super::{
    Delivery, Link, NotTaken,
    clock::{lock, unix_now},
    stored::{self, Known},
};
use crate::{
    constants::{INFO_PATH, MAX_ADDRESSES, MAX_DIR_BYTES, MAX_NONCES, TASKS_PATH, UNPAIR_PATH},
    crypto::{
        identity::Fingerprint,
        random,
        seal::{Envelope, Keys},
    },
    device::Device,
    error::{PlaneError, Unavailable},
    message::{Info, Invalid, Task, TaskCreated, Unpair},
    plane::{Headers, Unauthorized, authenticated, shaped},
    replay::Used,
};

/// How old the stored time of the last call may be, in seconds: one write a minute, not one a call.
const SEEN_SECS: i64 = 60;

impl From<Unavailable> for PlaneError {
    fn from(Unavailable(why): Unavailable) -> Self {
        Self::Unavailable(why)
    }
}

impl From<Unauthorized> for PlaneError {
    fn from(reason: Unauthorized) -> Self {
        Self::Unauthorized(reason)
    }
}

impl From<Invalid> for PlaneError {
    fn from(Invalid(what): Invalid) -> Self {
        Self::Body(what)
    }
}

/// The id of the task that a delivery becomes: the same for the same sender and id.
fn task_id(from: &Fingerprint, id: &str) -> Uuid {
    if id.is_empty() {
        return Uuid::new_v4();
    }
    let hash = digest(&SHA256, format!("svc-link-task\n{from}\n{id}").as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_ref()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

/// What the remembered ids of downloads without an id begin with. No sender's id has a space.
const UNNAMED: &str = " ";

/// A download of a device that is being taken, and counts already.
struct Receiving {
    link: Link,
    from: Fingerprint,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let mut receiving = lock(&self.link.0.receiving);
        if let Some(begun) = receiving.get_mut(&self.from) {
            *begun = begun.saturating_sub(1);
            if *begun == 0 {
                receiving.remove(&self.from);
            }
        }
    }
}

/// Our own style of paths.
const PATH_STYLE: &str = if cfg!(windows) { "windows" } else { "posix" };

impl Link {
    /// Takes a request on one of the three routes of the data plane. Gives the sealed answer.
    pub async fn receive(&self, path: &str, headers: &Headers<'_>, body: &[u8]) -> Result<Vec<u8>, PlaneError> {
        let now = unix_now();
        let shaped = shaped(headers, now)?;
        let mut open = self.open().await?;
        let known = open.known();
        let identity = std::sync::Arc::clone(&known.identity);
        let device = known.devices.get(&shaped.device).cloned();
        let device = device.filter(|device| !device.is_revoked || path == UNPAIR_PATH);
        let device = device.ok_or(Unauthorized::NotPaired)?;
        let key = device.link_key().ok_or(Unauthorized::NotPaired)?;
        let keys = Keys::of(&key).map_err(|error| PlaneError::Unavailable(error.to_string()))?;
        let envelope = Envelope {
            method: "POST",
            path,
            sender: &shaped.device,
            receiver: identity.fingerprint(),
            nonce: shaped.nonce,
        };
        authenticated(&keys, &envelope, &shaped, body)?;
        let until = known.replay.take(now, shaped.seconds, &shaped.device, shaped.nonce);
        let until = until.map_err(|used| match used {
            Used::Replayed => PlaneError::Unauthorized(Unauthorized::Unauthorized),
            Used::TooMany => PlaneError::Unavailable(format!(
                "more than {MAX_NONCES} requests in four minutes; try again later"
            )),
        })?;
        // Stored before anything is done, so that a kill does not make the nonce usable again.
        let used = stored::nonce_row(&shaped.device, shaped.nonce, until);
        self.commit(&mut open, vec![used]).await?;
        drop(open);
        let plain = keys.open_request(&envelope, body);
        let plain = plain.map_err(|error| PlaneError::Body(error.to_string()))?;
        let answer = match path {
            TASKS_PATH => self.receive_task(&shaped.device, &device, &plain).await?,
            INFO_PATH => self.receive_info(&shaped.device, &plain).await?,
            _ => self.receive_unpair(&shaped.device, &plain).await?,
        };
        let random = random().map_err(|error| PlaneError::Unavailable(error.to_string()))?;
        Ok(keys.seal_response(&envelope, random, &answer))
    }

    async fn receive_task(&self, from: &Fingerprint, device: &Device, plain: &[u8]) -> Result<Vec<u8>, PlaneError> {
        let task = Task::read(plain)?;
        if !device.accepts_tasks {
            return Err(PlaneError::Declined(
                "the owner of this device does not take downloads from yours".to_owned(),
            ));
        }
        let task_id = task_id(from, &task.id).to_string();
        // Those without an id of their sender are remembered, too, because they count.
        let id = if task.id.is_empty() {
            format!("{UNNAMED}{task_id}")
        } else {
            task.id.clone()
        };
        let mut open = self.open().await?;
        if let Some(task_id) = open.known().delivered(from, &id) {
            return encode(&TaskCreated { task_id });
        }
        let place = self.place_within_quota(open.known(), from, device.daily_tasks)?;
        drop(open);
        let delivery = Delivery {
            task_id,
            task,
            from: from.clone(),
            device_name: device.name.clone(),
            allow_private: device.allow_private,
        };
        let link = self.clone();
        let from = from.clone();
        // The sender may go away; what was created must be remembered all the same.
        let taken = self.finished(async move {
            let task_id = link.0.service.deliver(delivery).await.map_err(|error| match error {
                NotTaken::Refused(why) => PlaneError::Body(why),
                NotTaken::Unavailable(why) => PlaneError::Unavailable(why),
            })?;
            let mut open = link.open().await?;
            let rows = open.known().remember(&from, &id, &task_id, unix_now());
            link.commit(&mut open, rows).await?;
            drop(place);
            drop(open);
            link.seen(&from).await?;
            Ok::<_, PlaneError>(task_id)
        });
        encode(&TaskCreated { task_id: taken.await?? })
    }

    /// A place for one more download of a device.
    fn place_within_quota(&self, known: &Known, from: &Fingerprint, most: u32) -> Result<Receiving, PlaneError> {
        let mut receiving = lock(&self.0.receiving);
        let begun = receiving.entry(from.clone()).or_default();
        let taken = known.received(from, unix_now()) + *begun;
        if u32::try_from(taken).is_ok_and(|taken| taken < most) {
            *begun += 1;
            return Ok(Receiving {
                link: self.clone(),
                from: from.clone(),
            });
        }
        if *begun == 0 {
            receiving.remove(from);
        }
        Err(PlaneError::TooMany(format!(
            "the owner of this device takes {most} downloads of yours in 24 hours; try again later, or have it raise \
             dailyTasks"
        )))
    }

    async fn receive_info(&self, from: &Fingerprint, plain: &[u8]) -> Result<Vec<u8>, PlaneError> {
        let info = Info::read(plain)?;
        self.learn(from, &info, None).await?;
        encode(&self.own_info(None))
    }

    async fn receive_unpair(&self, from: &Fingerprint, plain: &[u8]) -> Result<Vec<u8>, PlaneError> {
        Unpair::read(plain)?;
        let mut open = self.open().await?;
        let known = open.known();
        let mut rows = Vec::new();
        if let Some(device) = known.devices.get_mut(from).filter(|device| !device.is_revoked) {
            device.is_revoked = true;
            device.places.clear();
            tracing::info!(device = device.name, "the device ended the pairing");
            rows.push(stored::device_row(from, Some(device)));
            for id in known.outbox.of_device(from) {
                known.outbox.remove(&id);
                rows.push(stored::outbox_row(&id, None));
            }
        }
        self.commit(&mut open, rows).await?;
        lock(&self.0.online).remove(from);
        self.publish_devices(open.known());
        encode(&protocol::LinkOkResponse::OK)
    }

    /// Takes what a device said, authenticated; `place` is where it answered.
    pub(super) async fn learn(
        &self,
        fingerprint: &Fingerprint,
        info: &Info,
        place: Option<&crate::device::Place>,
    ) -> Result<(), Unavailable> {
        let mut open = self.open().await?;
        let now = unix_now();
        let is_new = lock(&self.0.online).insert(fingerprint.clone());
        let Some(device) = open.known().devices.get_mut(fingerprint) else {
            return Ok(());
        };
        let before = device.clone();
        device.learn(info);
        if let Some(place) = place {
            device.answered_at(place);
        }
        let is_changed = *device != before;
        if is_changed || now - device.last_seen_at >= SEEN_SECS {
            device.last_seen_at = now;
            let rows = vec![stored::device_row(fingerprint, Some(device))];
            self.commit(&mut open, rows).await?;
        }
        if is_changed || is_new {
            self.publish_devices(open.known());
        }
        if is_new {
            self.0.wake.notify_one();
        }
        Ok(())
    }

    async fn seen(&self, fingerprint: &Fingerprint) -> Result<(), Unavailable> {
        self.learn(fingerprint, &Info::default(), None).await
    }

    /// What this device says of itself to a paired one.
    pub(super) fn own_info(&self, peer: Option<std::net::IpAddr>) -> Info {
        let about = self.about();
        let mut addresses = self.addresses(peer);
        addresses.truncate(MAX_ADDRESSES);
        let mut default_save_dir = self.0.service.save_dir();
        if default_save_dir.len() > MAX_DIR_BYTES {
            default_save_dir.clear();
        }
        Info {
            v: 2,
            name: about.name.clone(),
            platform: about.platform.clone(),
            app_version: about.app_version.clone(),
            addresses,
            cloud_device_id: String::new(),
            default_save_dir,
            path_style: PATH_STYLE.to_owned(),
        }
    }
}

fn encode(answer: &impl serde::Serialize) -> Result<Vec<u8>, PlaneError> {
    serde_json::to_vec(answer).map_err(|error| PlaneError::Unavailable(error.to_string()))
}
