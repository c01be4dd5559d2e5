//! The loop of commands that follow a service: forwards snapshots and events until the command is done.

use std::{io, pin::pin, time::Duration};

use anyhow::Context as _;
use command::stop::StopRequests;
use protocol::{DaemonEvent, EventBody, agent::AgentSnapshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    Client, RemoteError,
    follow::{Follow, Meaning, Update, read},
};

/// The flush interval of an observer without its own; bounds the delay of its output.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);

/// Receives what happens in a service.
pub trait Observer {
    /// How often [`Observer::look`] is called.
    fn interval(&self) -> Option<Duration>;

    /// The complete state; replaces earlier ones.
    fn snapshot(&mut self, snapshot: &AgentSnapshot);

    /// An event, as received and decoded.
    fn event(&mut self, received: &EventBody, event: &DaemonEvent);

    /// Called at the interval, to show progress.
    fn look(&mut self);

    /// The connection was lost and is retried after the pause.
    fn away(&mut self, _why: &RemoteError, _pause: Duration) {}

    /// Flushes the output. Fails if its reader has closed it.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether the command needs no further events.
    fn is_done(&self) -> bool;
}

/// Why the loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The observer is done.
    Done,
    /// The user requested a stop.
    Stopped,
    /// The service shuts down.
    Quit,
    /// The output was closed by its reader.
    ReaderGone,
}

/// Forwards the service's events to `observer`.
pub async fn attend(client: Client, observer: &mut dyn Observer) -> anyhow::Result<End> {
    let mut stop = StopRequests::listen().context("cannot listen for signals")?;
    let period = observer.interval().unwrap_or(QUIET_INTERVAL);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut follow = Follow::new(client);
    loop {
        let mut next = pin!(follow.next());
        let update = loop {
            tokio::select! {
                biased;
                () = stop.next() => return Ok(End::Stopped),
                _ = ticks.tick() => observer.look(),
                update = &mut next => break update?,
            }
            if !is_read(observer.flush())? {
                return Ok(End::ReaderGone);
            }
        };
        match update {
            Update::Snapshot(snapshot) => observer.snapshot(&snapshot),
            Update::Event(event) => match read(&event) {
                Some(Meaning::Daemon(received, event)) => observer.event(&received, &event),
                Some(Meaning::Replaced(daemon)) => observer.snapshot(&AgentSnapshot {
                    daemon: *daemon,
                    daemon_connected: true,
                    ..AgentSnapshot::default()
                }),
                None => {}
            },
            Update::Away { why, pause } => observer.away(&why, pause),
            Update::Quit => return Ok(End::Quit),
        }
        if observer.is_done() {
            return Ok(End::Done);
        }
    }
}

fn is_read(flushed: io::Result<()>) -> anyhow::Result<bool> {
    match flushed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        flushed => flushed.map(|()| true).context("cannot write to standard output"),
    }
}
