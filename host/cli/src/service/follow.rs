//! Follows a service across reconnects: a snapshot, then events, and another snapshot after missed events.

use std::{sync::Arc, time::Duration};

use protocol::{DaemonEvent, EventBody, agent::AgentSnapshot};

use super::{Client, RemoteError, Target};

/// The first and the longest pause before reconnecting.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The jitter of pauses in percent, so that clients do not reconnect simultaneously.
const JITTER_PERCENT: u32 = 20;

#[derive(Debug)]
pub(crate) enum Update {
    /// The complete state.
    Snapshot(Box<AgentSnapshot>),
    Event(EventBody),
    /// The connection was lost; it is retried after the pause.
    Away {
        why: RemoteError,
        pause: Duration,
    },
    /// The service announced its shutdown.
    Quit,
}

pub(crate) struct Follow {
    target: Arc<Target>,
    client: Option<Client>,
    has_snapshot: bool,
    pauses: Pauses,
    pause: Option<Duration>,
}

impl Follow {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            target: Arc::clone(&client.target),
            client: Some(client),
            has_snapshot: false,
            pauses: Pauses::default(),
            pause: None,
        }
    }

    /// Waits for the next update. Not cancel-safe: a connection attempt or pause would start again.
    pub(crate) async fn next(&mut self) -> Result<Update, RemoteError> {
        loop {
            match self.step().await {
                Ok(Some(update)) => return Ok(update),
                Ok(None) => {}
                Err(error) if error.is_quit() => return Ok(Update::Quit),
                Err(error) if error.is_gap() => self.client = None,
                Err(why) if why.is_temporary() => {
                    self.client = None;
                    let pause = self.pauses.next();
                    self.pause = Some(pause);
                    return Ok(Update::Away { why, pause });
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Update>, RemoteError> {
        let Some(client) = &mut self.client else {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            self.client = Some(Client::connect(&self.target).await?);
            self.has_snapshot = false;
            return Ok(None);
        };
        if self.has_snapshot {
            let event = client.event().await?;
            self.has_snapshot = event.is_some();
            return Ok(event.map(Update::Event));
        }
        let snapshot = client.snapshot().await?;
        self.has_snapshot = true;
        self.pauses = Pauses::default();
        Ok(Some(Update::Snapshot(Box::new(snapshot))))
    }
}

/// Back-off.
#[derive(Debug, Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        let whole = FIRST_PAUSE
            .saturating_mul(2_u32.saturating_pow(self.0))
            .min(LONGEST_PAUSE);
        self.0 += 1;
        // Without random numbers, the longest pause is used.
        let chance = getrandom::u32().unwrap_or(u32::MAX) % (2 * JITTER_PERCENT + 1);
        whole * (100 - JITTER_PERCENT + chance) / 100
    }
}

/// The meaning of an agent event for commands that follow tasks.
pub(crate) enum Meaning {
    /// A daemon event, as received and decoded.
    Daemon(EventBody, DaemonEvent),
    /// The daemon's complete state.
    Replaced(Box<protocol::DaemonSnapshot>),
}

/// Decodes an agent event. Unknown kinds of newer services are ignored.
pub(crate) fn read(event: &EventBody) -> Option<Meaning> {
    let data = event.data.get();
    match event.kind.as_str() {
        "daemon" => {
            let inner: EventBody = serde_json::from_str(data).ok()?;
            let read = DaemonEvent::read(&inner).ok()?;
            Some(Meaning::Daemon(inner, read))
        }
        "daemonSnapshotReplaced" => serde_json::from_str(data).ok().map(Meaning::Replaced),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_by_a_fifth() {
        let mut pauses = Pauses::default();
        for expected in [500, 1000, 2000, 4000, 8000, 15_000, 15_000] {
            let pause = u32::try_from(pauses.next().as_millis()).unwrap();
            assert!(
                (expected * 8 / 10..=expected * 12 / 10).contains(&pause),
                "{pause} for {expected}"
            );
        }
        assert!(Pauses(200).next() <= LONGEST_PAUSE * 12 / 10);
    }

    #[test]
    fn events_of_the_daemon_come_out_of_their_wrapping() {
        let event = |text: &str| serde_json::from_str::<EventBody>(text).unwrap();
        let deleted = event(r#"{"type":"daemon","data":{"type":"taskDeleted","data":{"taskId":"t"}}}"#);
        assert!(matches!(
            read(&deleted),
            Some(Meaning::Daemon(_, DaemonEvent::TaskDeleted { task_id })) if task_id == "t"
        ));
        let replaced = event(r#"{"type":"daemonSnapshotReplaced","data":{"tasks":[]}}"#);
        assert!(matches!(read(&replaced), Some(Meaning::Replaced(daemon)) if daemon.tasks.is_empty()));
        assert!(read(&event(r#"{"type":"comesNextYear"}"#)).is_none());
    }
}
