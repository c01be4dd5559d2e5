//! The loop around the pure state: feeds it time and inputs, and performs the effects it returns. It is the only owner
//! of the state.

use std::time::Duration;

use protocol::{WebhookDeliveries, WebhookDeliveryDto};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    endpoint::Endpoints,
    event::Occurrence,
    send::Sender,
    state::{Attempt, Deliveries, DeliveryId, Effect, Input, MAX_IN_FLIGHT, Now, Outcome},
};

/// What changed, for subscribers.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// These entries of the log are new or changed.
    Deliveries(Vec<WebhookDeliveryDto>),
    /// The log is empty.
    Cleared,
}

pub(crate) enum Message {
    /// Answered, if somebody waits, when its changes are published.
    Apply(Input, Option<oneshot::Sender<()>>),
    Simulate(Box<Occurrence>, oneshot::Sender<usize>),
    Read(oneshot::Sender<WebhookDeliveries>),
}

pub(crate) struct Driver {
    pub(crate) state: Deliveries,
    pub(crate) sender: Sender,
    pub(crate) endpoints: watch::Receiver<Endpoints>,
    pub(crate) messages: mpsc::Receiver<Message>,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) tracker: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// Answers a caller once its input is handled.
type Answer = Box<dyn FnOnce(&Deliveries) + Send>;

enum Wakeup {
    Message(Message),
    Attempted(DeliveryId, Outcome),
    Configured,
    Timer,
    Ended,
}

impl Driver {
    pub(crate) async fn drive(mut self) {
        let started = Instant::now();
        let (signal, mut signals) = mpsc::channel(MAX_IN_FLIGHT);
        loop {
            let deadline = self.state.wake_at().map(|at| started + at);
            let wakeup = tokio::select! {
                () = self.stop.cancelled() => Wakeup::Ended,
                Some(message) = self.messages.recv() => Wakeup::Message(message),
                Some((id, outcome)) = signals.recv() => Wakeup::Attempted(id, outcome),
                () = configured(&mut self.endpoints) => Wakeup::Configured,
                () = until(deadline) => Wakeup::Timer,
            };
            let mut answer: Option<Answer> = None;
            let input = match wakeup {
                Wakeup::Ended => return,
                Wakeup::Message(Message::Apply(input, reply)) => {
                    answer = reply.map(|reply| -> Answer {
                        Box::new(move |_| {
                            let _nobody_waits = reply.send(());
                        })
                    });
                    input
                }
                Wakeup::Message(Message::Simulate(occurrence, reply)) => {
                    let count = self.state.interested(&occurrence);
                    answer = Some(Box::new(move |_| {
                        let _nobody_waits = reply.send(count);
                    }));
                    Input::Happened(occurrence)
                }
                Wakeup::Message(Message::Read(reply)) => {
                    answer = Some(Box::new(move |state| {
                        let _nobody_waits = reply.send(read(state));
                    }));
                    Input::Clock
                }
                Wakeup::Attempted(id, outcome) => Input::Attempted(id, outcome),
                Wakeup::Configured => Input::Configured(self.endpoints.borrow_and_update().clone()),
                Wakeup::Timer => Input::Clock,
            };
            let mut effects = Vec::new();
            self.state.apply(now(started), input, &mut effects);
            self.perform(effects, &signal);
            if let Some(answer) = answer {
                answer(&self.state);
            }
        }
    }

    fn perform(&self, effects: Vec<Effect>, signal: &mpsc::Sender<(DeliveryId, Outcome)>) {
        let mut changed = Vec::new();
        for effect in effects {
            match effect {
                Effect::Send(attempt) => self.send(attempt, signal.clone()),
                Effect::Changed(entry) => changed.push(*entry),
                Effect::Cleared => {
                    changed.clear();
                    let _nobody_listens = self.changes.send(Change::Cleared);
                }
            }
        }
        if !changed.is_empty() {
            let _nobody_listens = self.changes.send(Change::Deliveries(changed));
        }
    }

    fn send(&self, attempt: Attempt, signal: mpsc::Sender<(DeliveryId, Outcome)>) {
        let (sender, stop) = (self.sender.clone(), self.stop.clone());
        self.tracker.spawn(async move {
            let sending = async {
                let outcome = sender.send(&attempt).await;
                if let Outcome::NoAnswer(_) | Outcome::Refused(_) = outcome {
                    tracing::info!(endpoint = %attempt.endpoint.id, event = attempt.event, "a webhook was not delivered");
                }
                let _the_loop_has_ended = signal.send((attempt.delivery, outcome)).await;
            };
            stop.run_until_cancelled(sending).await;
        });
    }
}

fn read(state: &Deliveries) -> WebhookDeliveries {
    WebhookDeliveries {
        deliveries: state.log().cloned().collect(),
        dropped: state.dropped(),
        missed: state.missed(),
    }
}

fn now(started: Instant) -> Now {
    Now {
        unix_ms: jiff::Timestamp::now().as_millisecond(),
        elapsed: started.elapsed(),
    }
}

/// Resolves when the endpoints changed; never after their owner has ended. Cancel-safe.
async fn configured(endpoints: &mut watch::Receiver<Endpoints>) {
    if endpoints.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until `deadline`; for ever if there is none. Cancel-safe.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Of subscribers: a slower one reads the log again.
pub(crate) const CHANGE_BACKLOG: usize = 256;

/// Queued messages; callers wait to enqueue theirs. Callers are not the engine, which never waits.
pub(crate) const MESSAGE_BACKLOG: usize = 64;

/// For a test of an endpoint that must wait for another one.
pub(crate) const TEST_WAIT: Duration = Duration::from_secs(1);
