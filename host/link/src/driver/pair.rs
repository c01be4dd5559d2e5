//! Pairing, from both sides.

use std::{sync::Arc, time::Instant};

use admission::throttle::Source;
use data_encoding::HEXLOWER;
use futures_util::future::BoxFuture;
use protocol::{
    LinkCodeResponse, LinkPairBeginResponse, LinkPairConfirmRequest, LinkPairFinishResponse, LinkPairRevealRequest,
    LinkPairingCode, LinkPairingRequestDto,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::oneshot,
    time::{Duration, Instant as Deadline},
};

use super::{
    Link,
    clock::{lock, unix_ms, unix_now},
};
use crate::{
    constants::{CODE_TTL, CONFIRM_TIMEOUT, PAIR_TIMEOUT},
    crypto::{identity::Identity, random},
    device::{Device, Place},
    error::{LinkError, Unavailable},
    message::Invalid,
    pairing::{
        NewDevice,
        hello::Hello,
        initiator::{self, InitiateError, Pending},
        refusal::Refusal,
        responder::{Confirmed, Effect, Fresh, Input, Reply},
    },
    peer::{PingError, read_address},
};

const HELLO_PATH: &str = "/api/v1/link/pair/hello";
const REVEAL_PATH: &str = "/api/v1/link/pair/reveal";
const CONFIRM_PATH: &str = "/api/v1/link/pair/confirm";

/// A pairing that began here and waits for this device's user.
#[derive(Debug)]
pub(super) struct Outgoing {
    pending: Pending,
    place: Place,
}

/// What a step gives.
struct Step {
    answer: Option<Result<Reply, Refusal>>,
    /// The answer follows here.
    wait: Option<oneshot::Receiver<Result<Reply, Refusal>>>,
    stores: Vec<(String, Box<NewDevice>)>,
}

fn read<T: DeserializeOwned>(body: &[u8], what: &str) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::BadPayload(format!("invalid link {what} payload: {error}")))
}

fn json(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages of the pairing always encode")
}

fn no_random(error: crate::crypto::NoRandom) -> Unavailable {
    Unavailable(error.to_string())
}

/// Six digits, all equally likely.
fn new_code() -> Result<String, Unavailable> {
    loop {
        let number = u32::from_le_bytes(random().map_err(no_random)?);
        // The rest of the division by 1,000,000 would make some codes likelier.
        if number < u32::MAX - u32::MAX % 1_000_000 {
            return Ok(format!("{:06}", number % 1_000_000));
        }
    }
}

fn fresh() -> Result<Fresh, Unavailable> {
    Ok(Fresh {
        session_id: HEXLOWER.encode(&random::<16>().map_err(no_random)?),
        ephemeral: random().map_err(no_random)?,
        nonce: random().map_err(no_random)?,
    })
}

impl Link {
    /// This device's key, read from what is stored if it is not known yet.
    async fn own(&self) -> Result<Arc<Identity>, Unavailable> {
        Ok(Arc::clone(&self.open().await?.known().identity))
    }

    /// Makes a code, and announces this device. The one before is void.
    async fn new_pairing_code(&self) -> Result<String, LinkError> {
        let (identity, code) = (self.own().await?, new_code()?);
        self.step(&identity, Input::NewCode(code.clone()));
        self.announce(&identity);
        Ok(code)
    }

    /// For `POST /api/v1/link/code`.
    pub async fn code(&self) -> Result<LinkCodeResponse, LinkError> {
        let ttl_seconds = CODE_TTL.as_secs();
        let code = self.new_pairing_code().await?;
        Ok(LinkCodeResponse { code, ttl_seconds })
    }

    /// For `agent.link.pairingCode`.
    pub async fn pairing_code(&self) -> Result<LinkPairingCode, LinkError> {
        let code = self.new_pairing_code().await?;
        let ttl = i64::try_from(CODE_TTL.as_millis()).unwrap_or(0);
        Ok(LinkPairingCode {
            code,
            expires_at_unix_ms: unix_ms() + ttl,
            addresses: self.addresses(None),
            fingerprint: self.fingerprint().map(ToString::to_string).unwrap_or_default(),
            device_name: self.about().name.clone(),
        })
    }

    /// What waits for this device's user.
    pub fn requests(&self) -> Vec<LinkPairingRequestDto> {
        lock(&self.0.pairing).responder.requests(Instant::now(), unix_ms())
    }

    /// Applies an input, and carries out what can be done at once.
    fn step(&self, identity: &Identity, input: Input) -> Step {
        let mut step = Step {
            answer: None,
            wait: None,
            stores: Vec::new(),
        };
        let mut pairing = lock(&self.0.pairing);
        let effects = pairing.responder.apply(Instant::now(), identity, input);
        let mut is_changed = false;
        for effect in effects {
            match effect {
                Effect::Answer(answer) => step.answer = Some(answer),
                Effect::Wait(session) => {
                    let (sender, receiver) = oneshot::channel();
                    pairing.waiting.insert(session, sender);
                    step.wait = Some(receiver);
                }
                Effect::Settle(session, answer) => {
                    if let Some(waiting) = pairing.waiting.remove(&session) {
                        let _the_other_device_left = waiting.send(answer);
                    }
                }
                Effect::Store(session, device) => step.stores.push((session, device)),
                Effect::RequestsChanged => is_changed = true,
            }
        }
        pairing.waiting.retain(|_, waiting| !waiting.is_closed());
        drop(pairing);
        self.0.deadlines.notify_one();
        if is_changed {
            self.publish_requests();
        }
        step
    }

    /// Applies an input of a request, and gives its answer.
    async fn take(&self, input: Input) -> Result<Reply, LinkError> {
        let identity = self.own().await?;
        let step = self.step(&identity, input);
        for (session_id, device) in step.stores {
            let link = self.clone();
            let identity = Arc::clone(&identity);
            // The request may be dropped, and the device must be stored, or reported as not stored, all the same.
            let storing = self.finished(async move {
                let stored = link.keep(*device, None).await;
                if let Err(error) = &stored {
                    tracing::warn!(%error, "a paired device could not be stored");
                }
                let is_stored = stored.is_ok();
                link.step(&identity, Input::Stored { session_id, is_stored });
            });
            storing.await?;
        }
        match (step.wait, step.answer) {
            (Some(wait), _) => Ok(wait.await.unwrap_or(Err(Refusal::SessionExpired))?),
            (None, answer) => Ok(answer.unwrap_or(Err(Refusal::SessionExpired))?),
        }
    }

    /// `POST /api/v1/link/pair/hello`
    pub async fn hello(&self, source: Source, body: &[u8]) -> Result<Reply, LinkError> {
        let hello = Box::new(Hello::read(body)?);
        let fresh = fresh()?;
        self.take(Input::Hello { source, hello, fresh }).await
    }

    /// `POST /api/v1/link/pair/reveal`
    pub async fn reveal(&self, body: &[u8]) -> Result<Reply, LinkError> {
        let reveal: LinkPairRevealRequest = read(body, "reveal")?;
        let session = reveal.session_id.clone();
        let reply = self.take(Input::Reveal(reveal)).await?;
        let shown = self
            .requests()
            .into_iter()
            .find(|request| request.session_id == session);
        if let Some(request) = shown {
            tracing::info!(device = request.peer_name, "a device asks to be paired");
        }
        Ok(reply)
    }

    /// `POST /api/v1/link/pair/confirm`
    pub async fn confirm(&self, body: &[u8]) -> Result<Confirmed, LinkError> {
        let LinkPairConfirmRequest { session_id, confirm } = read(body, "confirm")?;
        match self.take(Input::Confirm { session_id, confirm }).await? {
            Reply::Confirmed(confirmed) => Ok(confirmed),
            _ => Err(Refusal::SessionExpired.into()),
        }
    }

    /// This device's user answers a device that asks to be paired.
    pub async fn approve(&self, session_id: String, accept: bool) -> Result<(), LinkError> {
        self.take(Input::Decide { session_id, accept }).await.map(drop)
    }

    /// Lets pairings expire.
    pub(super) fn expire_pairings(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            loop {
                let next = lock(&self.0.pairing).responder.next_deadline();
                let changed = self.0.deadlines.notified();
                match next {
                    Some(next) => {
                        let left = next.saturating_duration_since(Instant::now());
                        // A deadline that is met exactly has expired.
                        let at = Deadline::now() + left + Duration::from_millis(1);
                        let _changed_or_expired = tokio::time::timeout_at(at, changed).await;
                    }
                    None => changed.await,
                }
                if let Some(identity) = self.0.identity.get() {
                    let is_due = |at: Instant| at <= Instant::now();
                    let next = lock(&self.0.pairing).responder.next_deadline();
                    if next.is_some_and(is_due) {
                        self.step(&Arc::clone(identity), Input::Tick);
                    }
                }
            }
        })
    }

    /// Stores a device with which a pairing ended well, then asks it about itself.
    async fn keep(&self, new: NewDevice, reached: Option<Place>) -> Result<(), LinkError> {
        let mut open = self.open().await?;
        let known = open.known();
        let mut device = Device::paired(&new, reached, unix_now());
        // What its owner set stays when the pairing is renewed.
        if let Some(before) = known.paired(&new.fingerprint) {
            device.accepts_tasks = before.accepts_tasks;
            device.allow_private = before.allow_private;
            device.daily_tasks = before.daily_tasks;
        }
        let rows = known.put_device(&new.fingerprint, device)?;
        self.commit(&mut open, rows).await?;
        lock(&self.0.online).insert(new.fingerprint.clone());
        self.publish_devices(open.known());
        drop(open);
        tracing::info!(device = new.about.name, "paired");
        let mut nearby = lock(&self.0.nearby);
        if nearby.snapshot.paired(&new.fingerprint) {
            self.publish_discovered(&nearby.snapshot);
        }
        drop(nearby);
        self.0.wake.notify_one();
        Ok(())
    }

    /// Asks an address which device it is.
    pub async fn probe(&self, host: &str, port: u16) -> Result<protocol::LinkDiscoveredPeer, LinkError> {
        let (host, place) = read_address(host, port).ok_or_else(bad_address)?;
        let pong = self.0.peers.ping(&place).await.map_err(|error| match error {
            PingError::Unreachable(unreachable) => LinkError::Unreachable(unreachable.to_string()),
            PingError::NotSvc => LinkError::NotSvc,
        })?;
        if let Some(fingerprint) = &pong.fingerprint {
            let mut nearby = lock(&self.0.nearby);
            nearby
                .snapshot
                .probed(place.address, fingerprint.clone(), Instant::now());
        }
        Ok(protocol::LinkDiscoveredPeer {
            fingerprint: pong.fingerprint.map(|fingerprint| fingerprint.to_string()),
            name: pong.about.name,
            platform: crate::pairing::hello::said(&pong.about.platform),
            host,
            port,
            app_version: crate::pairing::hello::said(&pong.about.app_version),
            source: protocol::LinkPeerSource::Manual,
        })
    }

    /// Begins a pairing from this side: the first two messages.
    pub async fn begin(&self, host: &str, port: u16, code: &str) -> Result<LinkPairBeginResponse, LinkError> {
        let (host, place) = read_address(host, port).ok_or_else(bad_address)?;
        let token = HEXLOWER.encode(&random::<16>().map_err(no_random)?);
        let identity = self.own().await?;
        if !lock(&self.0.pairing).outgoing.reserve(token.clone(), Instant::now()) {
            return Err(LinkError::TooManyPending);
        }
        // A request that is dropped frees its place like one that failed.
        let reserved = Reserved {
            link: self,
            token: Some(&token),
        };
        let expected = {
            let nearby = lock(&self.0.nearby);
            nearby.snapshot.expected(&host, port, &place.address, Instant::now())
        };
        let addresses = self.addresses(place.ip());
        let (ephemeral, nonce) = (random().map_err(no_random)?, random().map_err(no_random)?);
        let (hello, begun) = initiator::begin(&identity, self.about(), code, addresses, ephemeral, nonce)?;
        let (status, body) = self.ask(&place, HELLO_PATH, json(&hello), PAIR_TIMEOUT).await?;
        let (reveal, revealing) = begun.answered(&identity, status, &body, &expected)?;
        let (status, body) = self.ask(&place, REVEAL_PATH, json(&reveal), PAIR_TIMEOUT).await?;
        let pending = revealing.answered(status, &body)?;
        let response = LinkPairBeginResponse {
            token: token.clone(),
            sas: pending.sas.clone(),
            peer_name: pending.device.about.name.clone(),
            peer_fingerprint: pending.device.fingerprint.to_string(),
        };
        reserved.keep();
        lock(&self.0.pairing).outgoing.fill(&token, Outgoing { pending, place });
        Ok(response)
    }

    async fn ask(
        &self,
        place: &Place,
        path: &str,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<(u16, Vec<u8>), LinkError> {
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        let reply = self.0.peers.post(place, path, &headers, body, limit).await;
        let reply = reply.map_err(|error| {
            if error.is_nonsense {
                InitiateError::Nonsense("it does not speak HTTP as a device does").into()
            } else {
                LinkError::Unreachable(error.to_string())
            }
        })?;
        match reply.status {
            // It is there and cannot now: as good as away.
            500..=599 => Err(LinkError::Unreachable(format!(
                "{} answers with {}; try again later",
                place.address, reply.status
            ))),
            status => Ok((status, reply.body)),
        }
    }

    /// Ends a pairing that began here, as this device's user decided. The token is used up whatever comes of it.
    pub async fn finish(&self, token: &str, accept: bool) -> Result<LinkPairFinishResponse, LinkError> {
        let outgoing = lock(&self.0.pairing).outgoing.take(token, Instant::now());
        let Outgoing { pending, place } = outgoing.ok_or(InitiateError::SessionExpired)?;
        let link = self.clone();
        self.finished(async move { link.finish_with(pending, place, accept).await })
            .await?
    }

    async fn finish_with(
        &self,
        pending: Pending,
        place: Place,
        accept: bool,
    ) -> Result<LinkPairFinishResponse, LinkError> {
        let declined = LinkPairFinishResponse {
            paired: false,
            device: None,
        };
        let message = json(&LinkPairConfirmRequest {
            session_id: pending.session_id,
            confirm: accept,
        });
        if !accept {
            if let Err(error) = self.ask(&place, CONFIRM_PATH, message, PAIR_TIMEOUT).await {
                tracing::debug!(%error, "the other device does not know that the pairing was declined");
            }
            return Ok(declined);
        }
        let (status, body) = self.ask(&place, CONFIRM_PATH, message, CONFIRM_TIMEOUT).await?;
        if !initiator::confirmed(status, &body)? {
            return Ok(declined);
        }
        let fingerprint = pending.device.fingerprint.clone();
        self.keep(pending.device, Some(place)).await?;
        let mut open = self.open().await?;
        let views = self.views(open.known());
        let device = views
            .into_iter()
            .find(|device| device.fingerprint == fingerprint.as_str());
        Ok(LinkPairFinishResponse { paired: true, device })
    }
}

/// A place of a pairing that has not come to its user yet.
struct Reserved<'a> {
    link: &'a Link,
    token: Option<&'a str>,
}

impl Reserved<'_> {
    fn keep(mut self) {
        self.token = None;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            lock(&self.link.0.pairing).outgoing.release(token);
        }
    }
}

fn bad_address() -> LinkError {
    Invalid("host must be a name or an IP address, and port a number from 1 to 65535".to_owned()).into()
}
