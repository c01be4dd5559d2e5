//! The public handle. It holds channels only: the state belongs to the driver.

use std::{fmt, sync::Arc};

use egress::Names;
use protocol::{WebhookDeliveries, WebhookDeliveryDto};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use crate::{
    driver::{CHANGE_BACKLOG, Change, Driver, MESSAGE_BACKLOG, Message, TEST_WAIT},
    endpoint::{Endpoint, Endpoints},
    event::{EventKind, Occurrence},
    send::{ProxyFor, Sender},
    state::{self, Attempt, Deliveries, DeliveryId, Input},
};

/// Tests of endpoints at once: a user tries one after the other.
const MAX_TESTS: usize = 2;

/// The parameters of [`Hooks::start`].
pub struct Config {
    /// The endpoints, now and later.
    pub endpoints: watch::Receiver<Endpoints>,
    /// How names are looked up.
    pub names: Names,
    /// The proxies of the settings.
    pub proxy_for: ProxyFor,
    /// Owns what is spawned.
    pub tracker: TaskTracker,
    /// Cancelled to end it. What has not been delivered is lost.
    pub stop: CancellationToken,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Config")
    }
}

/// Webhooks have ended: the service is shutting down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the service is shutting down")]
pub struct Closed;

/// Why an endpoint was not tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TestError {
    /// Others are being tested.
    #[error("{MAX_TESTS} webhooks are being tested already: try again in some seconds")]
    Busy,
    /// The service is shutting down.
    #[error(transparent)]
    Closed(#[from] Closed),
}

/// The running webhooks. Clones share them.
#[derive(Debug, Clone)]
pub struct Hooks {
    messages: mpsc::Sender<Message>,
    endpoints: watch::Receiver<Endpoints>,
    changes: broadcast::Sender<Change>,
    sender: Sender,
    tests: Arc<Semaphore>,
}

impl Hooks {
    /// Starts. Without endpoints this costs a task that sleeps.
    pub fn start(config: Config) -> Self {
        let (sender_of_messages, messages) = mpsc::channel(MESSAGE_BACKLOG);
        let (changes, _) = broadcast::channel(CHANGE_BACKLOG);
        let sender = Sender::new(config.names, config.proxy_for);
        let mut endpoints = config.endpoints;
        let (_, seed) = Uuid::new_v4().as_u64_pair();
        let known = endpoints.borrow_and_update().clone();
        let driver = Driver {
            state: Deliveries::new(known, seed),
            sender: sender.clone(),
            endpoints: endpoints.clone(),
            messages,
            changes: changes.clone(),
            tracker: config.tracker.clone(),
            stop: config.stop,
        };
        config.tracker.spawn(driver.drive());
        Self {
            messages: sender_of_messages,
            endpoints,
            changes,
            sender,
            tests: Arc::new(Semaphore::new(MAX_TESTS)),
        }
    }

    /// Whether any endpoint subscribes to events of this kind. Cheap: asked before an event is described.
    pub fn want(&self, kind: EventKind) -> bool {
        self.endpoints.borrow().want(kind)
    }

    /// The endpoints, as they are now.
    pub fn endpoints(&self) -> Endpoints {
        self.endpoints.borrow().clone()
    }

    /// Queues the deliveries of an event. Waits only for the loop, never for an endpoint.
    pub async fn happened(&self, occurrence: Occurrence) -> Result<(), Closed> {
        self.apply(Input::Happened(Box::new(occurrence))).await
    }

    /// Counts events that were lost on the way here.
    pub async fn missed(&self, count: u64) -> Result<(), Closed> {
        self.apply(Input::Missed(count)).await
    }

    /// Delivers an example of an event to every endpoint that subscribes to it; returns how many these are.
    pub async fn simulate(&self, kind: EventKind) -> Result<usize, Closed> {
        let occurrence = Occurrence::example(kind, now_ms());
        self.ask(|reply| Message::Simulate(Box::new(occurrence), reply)).await
    }

    /// Sends an example of an event to an endpoint, once and beside the queue.
    pub async fn test(&self, endpoint: Endpoint, kind: EventKind) -> Result<WebhookDeliveryDto, TestError> {
        let waiting = tokio::time::timeout(TEST_WAIT, self.tests.acquire()).await;
        let Ok(Ok(_permit)) = waiting else {
            return Err(TestError::Busy);
        };
        let occurrence = Occurrence::example(kind, now_ms());
        let (endpoint, delivery) = (Arc::new(endpoint), DeliveryId(Uuid::new_v4()));
        let attempt = Attempt {
            delivery,
            endpoint: Arc::clone(&endpoint),
            event: kind.name(),
            body: state::body(&endpoint, &occurrence, delivery).into(),
        };
        let outcome = self.sender.send(&attempt).await;
        let entry = state::tested(&endpoint, &occurrence, delivery, now_ms(), &outcome);
        self.ask(|reply| Message::Apply(Input::Tested(Box::new(entry.clone())), Some(reply)))
            .await?;
        Ok(entry)
    }

    /// The log.
    pub async fn deliveries(&self) -> Result<WebhookDeliveries, Closed> {
        self.ask(Message::Read).await
    }

    /// Forgets the log. What is being delivered goes on, and comes into the log again.
    pub async fn clear(&self) -> Result<(), Closed> {
        self.ask(|reply| Message::Apply(Input::Clear, Some(reply))).await
    }

    /// Subscribes to changes of the log from now on. A change is published after the log has it.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.changes.subscribe()
    }

    async fn apply(&self, input: Input) -> Result<(), Closed> {
        self.messages
            .send(Message::Apply(input, None))
            .await
            .map_err(|_| Closed)
    }

    async fn ask<T>(&self, message: impl FnOnce(oneshot::Sender<T>) -> Message) -> Result<T, Closed> {
        let (reply, answer) = oneshot::channel();
        self.messages.send(message(reply)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
