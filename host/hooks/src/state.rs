//! The pure state machine of deliveries: what waits, what is being sent, what is tried again, and the log. It does no
//! I/O: the driver passes time and inputs in, sends what the effects say, and sleeps until [`Deliveries::wake_at`].
//!
//! Invariants, each checked over random histories:
//! - At most [`MAX_IN_FLIGHT`] deliveries are being sent, and at most one per endpoint.
//! - Deliveries of an endpoint are sent in the order of their events: one that waits for a retry holds up those behind it.
//! - At most [`MAX_WAITING`] wait; the oldest of more is dropped and counted.
//! - A delivery is attempted at most four times, each retry at least the next of [`RETRY_AFTER`] after the failure.
//! - Each delivery ends exactly once: delivered, failed or dropped. Nothing is sent after that.
//! - No delivery waits that is due while its endpoint and a place are free.
//! - The log has the newest [`MAX_LOGGED`] deliveries, and no secret of an endpoint.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use protocol::{WebhookDeliveryDto, WebhookDeliveryStatus as Status};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    endpoint::{Endpoint, Endpoints},
    event::{Occurrence, QueueName},
    template::{self, MAX_BODY_BYTES},
};

/// Requests at once. Endpoints answer within a second; one that hangs occupies a place for ten.
pub const MAX_IN_FLIGHT: usize = 4;

/// Deliveries that wait for their turn or for a retry. With the largest body each, 16 MiB.
pub const MAX_WAITING: usize = 256;

/// Deliveries that the log keeps. With the longest bodies each, some megabytes.
pub const MAX_LOGGED: usize = 1000;

/// The waits before the second, third and fourth attempt: long enough for a restart of the receiver.
pub const RETRY_AFTER: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// Names a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub Uuid);

/// The time, by both clocks: the first is shown, the second cannot be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Unix milliseconds.
    pub unix_ms: i64,
    /// Since some fixed moment.
    pub elapsed: Duration,
}

/// An input of the state machine.
#[derive(Debug, Clone)]
pub enum Input {
    /// The endpoints are these from now on.
    Configured(Endpoints),
    /// Something happened.
    Happened(Box<Occurrence>),
    /// So many events were lost before they arrived here.
    Missed(u64),
    /// An attempt ended.
    Attempted(DeliveryId, Outcome),
    /// A delivery that was made outside of the queue.
    Tested(Box<WebhookDeliveryDto>),
    /// Forget the log.
    Clear,
    /// Time passed.
    Clock,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The endpoint answered.
    Answered {
        /// The status.
        status: u16,
        /// The beginning of the body.
        body: String,
    },
    /// There was no answer.
    NoAnswer(String),
    /// No request was sent, and none ever will be: the target is not allowed.
    Refused(String),
}

/// What the driver does.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Send this, then pass [`Input::Attempted`].
    Send(Attempt),
    /// Publish this entry of the log.
    Changed(Box<WebhookDeliveryDto>),
    /// The log is empty.
    Cleared,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// Of this delivery.
    pub delivery: DeliveryId,
    /// To this endpoint, as it is now.
    pub endpoint: Arc<Endpoint>,
    /// The event's name.
    pub event: &'static str,
    /// The body.
    pub body: Arc<str>,
}

#[derive(Debug)]
struct Delivery {
    serial: u64,
    endpoint: String,
    event: &'static str,
    body: Arc<str>,
    /// No attempt begins before this.
    due: Duration,
    entry: WebhookDeliveryDto,
}

/// The state.
#[derive(Debug)]
pub struct Deliveries {
    endpoints: Endpoints,
    /// By their serial number, which grows with time.
    waiting: BTreeMap<u64, Delivery>,
    in_flight: BTreeMap<DeliveryId, Delivery>,
    /// By the same serial numbers.
    log: BTreeMap<u64, WebhookDeliveryDto>,
    dropped: u64,
    missed: u64,
    next_serial: u64,
    /// Makes ids differ from those of other starts and installations.
    seed: u64,
}

impl Deliveries {
    /// Nothing happened yet.
    pub fn new(endpoints: Endpoints, seed: u64) -> Self {
        Self {
            endpoints,
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            log: BTreeMap::new(),
            dropped: 0,
            missed: 0,
            next_serial: 0,
            seed,
        }
    }

    /// Handles `input` at `now` and appends what is to be done.
    pub fn apply(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Configured(endpoints) => self.configured(now, endpoints, effects),
            Input::Happened(occurrence) => self.happened(now, &occurrence, effects),
            Input::Missed(count) => self.missed += count,
            Input::Attempted(id, outcome) => self.attempted(now, id, &outcome, effects),
            Input::Tested(entry) => {
                let serial = self.serial();
                self.note(serial, *entry, effects);
            }
            Input::Clear => {
                self.log.clear();
                effects.push(Effect::Cleared);
            }
            Input::Clock => {}
        }
        self.fill(now, effects);
    }

    /// When [`Input::Clock`] is due: the next retry that has a place. `None` while nothing waits for the time.
    pub fn wake_at(&self) -> Option<Duration> {
        if self.in_flight.len() >= MAX_IN_FLIGHT {
            return None;
        }
        self.heads().map(|(_, delivery)| delivery.due).min()
    }

    /// How many endpoints subscribe to `occurrence`.
    pub fn interested(&self, occurrence: &Occurrence) -> usize {
        self.endpoints
            .iter()
            .filter(|endpoint| endpoint.wants(occurrence))
            .count()
    }

    /// The log, newest first.
    pub fn log(&self) -> impl Iterator<Item = &WebhookDeliveryDto> {
        self.log.values().rev()
    }

    /// Deliveries that were dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Events that were lost before they arrived here.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn happened(&mut self, now: Now, occurrence: &Occurrence, effects: &mut Vec<Effect>) {
        let told: Vec<_> = self
            .endpoints
            .iter()
            .filter(|endpoint| endpoint.wants(occurrence))
            .map(Arc::clone)
            .collect();
        for endpoint in told {
            let serial = self.serial();
            let id = self.id_of(serial);
            let body = body(&endpoint, occurrence, id);
            let entry = entry(&endpoint, occurrence, id, &body);
            let delivery = Delivery {
                serial,
                endpoint: endpoint.id.clone(),
                event: occurrence.kind.name(),
                due: now.elapsed,
                body: body.into(),
                entry,
            };
            if delivery.body.len() > MAX_BODY_BYTES {
                let error = format!(
                    "the body has {} bytes; the limit is {MAX_BODY_BYTES}: use a template with fewer fields",
                    delivery.body.len()
                );
                self.end(now, delivery, Status::Failed, error, effects);
                continue;
            }
            self.note(serial, delivery.entry.clone(), effects);
            self.wait(now, delivery, effects);
        }
    }

    /// Queues a delivery in the order of the serial numbers; drops the oldest if there are too many.
    fn wait(&mut self, now: Now, delivery: Delivery, effects: &mut Vec<Effect>) {
        self.waiting.insert(delivery.serial, delivery);
        // What can be sent at once needs no place in the queue.
        self.fill(now, effects);
        while self.waiting.len() > MAX_WAITING {
            let Some((_, oldest)) = self.waiting.pop_first() else {
                return;
            };
            self.dropped += 1;
            let error = format!("{MAX_WAITING} deliveries wait already; the oldest is dropped");
            self.end(now, oldest, Status::Dropped, error, effects);
        }
    }

    fn configured(&mut self, now: Now, endpoints: Endpoints, effects: &mut Vec<Effect>) {
        self.endpoints = endpoints;
        let is_gone = |endpoints: &Endpoints, id: &str| !endpoints.get(id).is_some_and(|known| known.is_enabled);
        let gone = self.waiting.iter();
        let gone = gone.filter(|(_, delivery)| is_gone(&self.endpoints, &delivery.endpoint));
        let gone: Vec<u64> = gone.map(|(serial, _)| *serial).collect();
        for serial in gone {
            if let Some(delivery) = self.waiting.remove(&serial) {
                let error = "the webhook was removed or switched off".to_owned();
                self.end(now, delivery, Status::Dropped, error, effects);
            }
        }
    }

    fn attempted(&mut self, now: Now, id: DeliveryId, outcome: &Outcome, effects: &mut Vec<Effect>) {
        let Some(mut delivery) = self.in_flight.remove(&id) else {
            return;
        };
        let endpoint = self.endpoints.get(&delivery.endpoint).cloned();
        let endpoint = endpoint.filter(|endpoint| endpoint.is_enabled);
        record(&mut delivery.entry, outcome, endpoint.as_deref());
        if delivery.entry.status == Status::Delivered {
            self.end(now, delivery, Status::Delivered, String::new(), effects);
            return;
        }
        let error = std::mem::take(&mut delivery.entry.error);
        let pause = usize::try_from(delivery.entry.attempts - 1).ok();
        let pause = pause.and_then(|failures| RETRY_AFTER.get(failures));
        match pause {
            Some(pause) if is_retried(outcome) && endpoint.is_some() => {
                delivery.due = now.elapsed + *pause;
                delivery.entry.status = Status::Retrying;
                delivery.entry.error = error;
                self.note(delivery.serial, delivery.entry.clone(), effects);
                self.wait(now, delivery, effects);
            }
            _ => self.end(now, delivery, Status::Failed, error, effects),
        }
    }

    fn end(&mut self, now: Now, delivery: Delivery, status: Status, error: String, effects: &mut Vec<Effect>) {
        let mut entry = delivery.entry;
        entry.status = status;
        entry.error = error;
        entry.ended_at_ms = now.unix_ms;
        self.note(delivery.serial, entry, effects);
    }

    /// Writes an entry into the log, in place of an earlier state of it.
    fn note(&mut self, serial: u64, entry: WebhookDeliveryDto, effects: &mut Vec<Effect>) {
        effects.push(Effect::Changed(Box::new(entry.clone())));
        self.log.insert(serial, entry);
        if self.log.len() > MAX_LOGGED {
            self.log.pop_first();
        }
    }

    fn serial(&mut self) -> u64 {
        self.next_serial += 1;
        self.next_serial
    }

    /// Begins what is due while there are places.
    fn fill(&mut self, now: Now, effects: &mut Vec<Effect>) {
        while self.in_flight.len() < MAX_IN_FLIGHT {
            let due = self.heads().find(|(_, delivery)| delivery.due <= now.elapsed);
            let Some((serial, _)) = due else { return };
            let Some(delivery) = self.waiting.remove(&serial) else {
                return;
            };
            // Those of removed endpoints were dropped with them.
            let Some(endpoint) = self.endpoints.get(&delivery.endpoint) else {
                return;
            };
            let id = self.id_of(serial);
            effects.push(Effect::Send(Attempt {
                delivery: id,
                endpoint: Arc::clone(endpoint),
                event: delivery.event,
                body: Arc::clone(&delivery.body),
            }));
            self.in_flight.insert(id, delivery);
        }
    }

    /// The first waiting delivery of each endpoint to which nothing is being sent, oldest first.
    fn heads(&self) -> impl Iterator<Item = (u64, &Delivery)> {
        let busy = self.in_flight.values().map(|delivery| delivery.endpoint.as_str());
        let mut seen: BTreeSet<&str> = busy.collect();
        let heads = self.waiting.iter();
        let heads = heads.filter(move |(_, delivery)| seen.insert(delivery.endpoint.as_str()));
        heads.map(|(serial, delivery)| (*serial, delivery))
    }

    fn id_of(&self, serial: u64) -> DeliveryId {
        let number = (u128::from(self.seed) << 64) | u128::from(serial);
        DeliveryId(uuid::Builder::from_custom_bytes(number.to_be_bytes()).into_uuid())
    }
}

/// Whether another attempt may help: the endpoint did not answer, is overloaded or failed itself. Another error of the
/// 4xx, and a redirect, would be repeated for ever.
fn is_retried(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Answered { status, .. } => matches!(status, 408 | 429 | 500..=599),
        Outcome::NoAnswer(_) => true,
        Outcome::Refused(_) => false,
    }
}

/// Writes an attempt's outcome into an entry. Without its endpoint, whose secrets a response may repeat, no text of the
/// other side is kept.
fn record(entry: &mut WebhookDeliveryDto, outcome: &Outcome, endpoint: Option<&Endpoint>) {
    let loggable = |text: &str| endpoint.map(|endpoint| endpoint.loggable(text)).unwrap_or_default();
    entry.attempts += 1;
    entry.status = Status::Failed;
    entry.http_status = 0;
    entry.response_body.clear();
    match outcome {
        Outcome::Answered { status, body } => {
            entry.http_status = *status;
            entry.response_body = loggable(body);
            match status {
                200..=299 => {
                    entry.status = Status::Delivered;
                    entry.error.clear();
                }
                300..=399 => {
                    entry.error = format!("HTTP {status}: redirects are not followed; set the URL that it leads to");
                }
                _ => entry.error = format!("HTTP {status}"),
            }
        }
        Outcome::NoAnswer(error) | Outcome::Refused(error) => entry.error = loggable(error),
    }
}

/// The entry of a delivery that was made outside of the queue, with one attempt.
pub(crate) fn tested(
    endpoint: &Endpoint,
    occurrence: &Occurrence,
    id: DeliveryId,
    ended_at_ms: i64,
    outcome: &Outcome,
) -> WebhookDeliveryDto {
    let body = body(endpoint, occurrence, id);
    let mut entry = entry(endpoint, occurrence, id, &body);
    record(&mut entry, outcome, Some(endpoint));
    entry.ended_at_ms = ended_at_ms;
    entry
}

fn entry(endpoint: &Endpoint, occurrence: &Occurrence, id: DeliveryId, body: &str) -> WebhookDeliveryDto {
    WebhookDeliveryDto {
        delivery_id: id.0.to_string(),
        endpoint_id: endpoint.id.clone(),
        endpoint_name: endpoint.name.clone(),
        event: occurrence.kind.name().to_owned(),
        task_id: occurrence
            .task
            .as_ref()
            .map(|task| task.task_id.clone())
            .unwrap_or_default(),
        test: occurrence.is_test,
        request_body: endpoint.loggable(body),
        created_at_ms: occurrence.at_ms,
        ..WebhookDeliveryDto::default()
    }
}

/// The body without a template.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Payload<'o> {
    event: &'static str,
    delivery: String,
    time: String,
    timestamp: i64,
    test: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'o protocol::TaskDto>,
    queue: &'o QueueName,
}

/// The body of a delivery.
pub(crate) fn body(endpoint: &Endpoint, occurrence: &Occurrence, id: DeliveryId) -> String {
    if let Some(template) = endpoint.template() {
        return template.fill(occurrence, &id.0.to_string());
    }
    let payload = Payload {
        event: occurrence.kind.name(),
        delivery: id.0.to_string(),
        time: template::time(occurrence.at_ms),
        timestamp: occurrence.at_ms.div_euclid(1000),
        test: occurrence.is_test,
        task: occurrence.task.as_deref(),
        queue: &occurrence.queue,
    };
    serde_json::to_string(&payload).expect("our records always encode")
}
