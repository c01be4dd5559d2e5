//! Following a service across broken connections: a snapshot, then events, then a snapshot again where some were missed.

use std::time::Duration;

use protocol::{DaemonEvent, EventBody, agent::AgentSnapshot};

use super::{Client, RemoteError, Target};

/// The first pause before another try to connect, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How far pauses differ, in percent, so that clients of one service do not come back all at once.
const JITTER_PERCENT: u32 = 20;

/// What is new.
#[derive(Debug)]
pub(crate) enum News {
    /// Everything as it is now.
    Snapshot(Box<AgentSnapshot>),
    /// Something changed.
    Event(EventBody),
    /// The service is away; it is tried again after the pause.
    Away { why: RemoteError, pause: Duration },
    /// The service said that it ends.
    Quit,
}

/// A service that is followed.
pub(crate) struct Follow<'a> {
    target: &'a Target,
    client: Option<Client<'a>>,
    has_snapshot: bool,
    pauses: Pauses,
    pause: Option<Duration>,
}

impl<'a> Follow<'a> {
    pub(crate) fn new(target: &'a Target, client: Client<'a>) -> Self {
        Self {
            target,
            client: Some(client),
            has_snapshot: false,
            pauses: Pauses::default(),
            pause: None,
        }
    }

    /// Waits for what is new. Not cancel-safe: what has begun (connecting, a pause) would begin anew.
    pub(crate) async fn next(&mut self) -> Result<News, RemoteError> {
        loop {
            match self.step().await {
                Ok(Some(news)) => return Ok(news),
                Ok(None) => {}
                Err(error) if error.is_quit() => return Ok(News::Quit),
                Err(error) if error.is_gap() => self.client = None,
                Err(why) if why.is_temporary() => {
                    self.client = None;
                    let pause = self.pauses.next();
                    self.pause = Some(pause);
                    return Ok(News::Away { why, pause });
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn step(&mut self) -> Result<Option<News>, RemoteError> {
        let Some(client) = &mut self.client else {
            if let Some(pause) = self.pause.take() {
                tokio::time::sleep(pause).await;
            }
            self.client = Some(Client::connect(self.target).await?);
            self.has_snapshot = false;
            return Ok(None);
        };
        if self.has_snapshot {
            let event = client.event().await?;
            self.has_snapshot = event.is_some();
            return Ok(event.map(News::Event));
        }
        let snapshot = client.snapshot().await?;
        self.has_snapshot = true;
        self.pauses = Pauses::default();
        Ok(Some(News::Snapshot(Box::new(snapshot))))
    }
}

/// Growing pauses.
#[derive(Debug, Default)]
struct Pauses(u32);

impl Pauses {
    fn next(&mut self) -> Duration {
        let whole = FIRST_PAUSE
            .saturating_mul(2_u32.saturating_pow(self.0))
            .min(LONGEST_PAUSE);
        self.0 += 1;
        // Without random numbers all pauses are the longest ones.
        let chance = getrandom::u32().unwrap_or(u32::MAX) % (2 * JITTER_PERCENT + 1);
        whole * (100 - JITTER_PERCENT + chance) / 100
    }
}

/// What an event of the agent means to who follows tasks; none if nothing.
pub(crate) enum Meaning {
    /// Of the daemon, as it told it.
    Daemon(EventBody, DaemonEvent),
    /// Everything of the daemon anew.
    Replaced(Box<protocol::DaemonSnapshot>),
}

/// Reads an event of the agent. Kinds of newer services mean nothing.
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
