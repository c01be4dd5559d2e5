//! Passing on what a service does to whoever listens, until there is nothing more to tell.

use std::{io, pin::pin, time::Duration};

use anyhow::Context as _;
use command::stop::StopRequests;
use protocol::{DaemonEvent, EventBody, agent::AgentSnapshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    Client, RemoteError, Target,
    follow::{Follow, Meaning, News, read},
};

/// How often an audience is flushed that does not want to look: so late an event is seen at most.
const QUIET_INTERVAL: Duration = Duration::from_secs(1);

/// Who is told.
pub trait Audience {
    /// How often [`Audience::look`] is wanted.
    fn interval(&self) -> Option<Duration>;

    /// Everything is as it is here.
    fn snapshot(&mut self, snapshot: &AgentSnapshot);

    /// Something happened: as it was told, and what it means.
    fn event(&mut self, told: &EventBody, event: &DaemonEvent);

    /// Time to show how things are.
    fn look(&mut self);

    /// The service cannot be followed for now.
    fn away(&mut self, _why: &RemoteError, _pause: Duration) {}

    /// Lets everything told so far be seen. Fails if nobody reads any more.
    fn flush(&mut self) -> io::Result<()>;

    /// Whether nothing more will be told.
    fn is_done(&self) -> bool;
}

/// Why there is no more to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The audience has heard all it wanted.
    Done,
    /// The user wants to stop.
    Stopped,
    /// The service ends.
    Quit,
    /// What read our output has gone.
    ReaderGone,
}

/// Tells `audience` what the service does.
pub async fn attend(target: &Target, client: Client<'_>, audience: &mut dyn Audience) -> anyhow::Result<End> {
    let mut stop = StopRequests::listen().context("cannot listen for signals")?;
    let period = audience.interval().unwrap_or(QUIET_INTERVAL);
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut follow = Follow::new(target, client);
    loop {
        let mut next = pin!(follow.next());
        let news = loop {
            tokio::select! {
                biased;
                () = stop.next() => return Ok(End::Stopped),
                _ = ticks.tick() => audience.look(),
                news = &mut next => break news?,
            }
            if !is_read(audience.flush())? {
                return Ok(End::ReaderGone);
            }
        };
        match news {
            News::Snapshot(snapshot) => audience.snapshot(&snapshot),
            News::Event(event) => match read(&event) {
                Some(Meaning::Daemon(told, event)) => audience.event(&told, &event),
                Some(Meaning::Replaced(daemon)) => audience.snapshot(&AgentSnapshot {
                    daemon: *daemon,
                    daemon_connected: true,
                    ..AgentSnapshot::default()
                }),
                None => {}
            },
            News::Away { why, pause } => audience.away(&why, pause),
            News::Quit => return Ok(End::Quit),
        }
        if audience.is_done() {
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
