//! Applies the daemon's events to the hub in order. If one is missing, a snapshot is fetched and replaces the
//! projection.

use std::sync::Arc;

use protocol::{
    Method, Reply, ServiceEventParams,
    client::{Cursor, Step},
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    error::{SessionError, unreadable},
    handshake::{Socket, read_result, request},
};
use crate::projection::{
    hub::{Hub, Position},
    tasks::Projection,
};

/// Events buffered while a snapshot is requested. With more, the connection is closed: a new one is cheaper.
const MAX_HELD_EVENTS: usize = 20_000;

/// Snapshots fetched in a row without an event that follows them. A daemon that numbers its events wrongly would cause
/// them without end.
const MAX_RESYNCS: u32 = 5;

#[derive(Deserialize)]
struct Snapshot<'a> {
    epoch: &'a str,
    sequence: u64,
    #[serde(borrow)]
    body: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    snapshot: &'a RawValue,
}

/// Fetches the initial state.
pub(super) async fn snapshot(socket: &mut Socket, hub: &Hub) -> Result<Position, SessionError> {
    // Events may arrive before the reply. The snapshot includes those, so they are skipped; later ones follow it.
    let text = request(socket, Method::SystemSnapshot, &serde_json::Map::new()).await?;
    take_snapshot(read_result(&text)?, hub)
}

fn take_snapshot(snapshot: Snapshot<'_>, hub: &Hub) -> Result<Position, SessionError> {
    let Snapshot { epoch, sequence, body } = snapshot;
    let projection = Projection::read(body.snapshot.get()).map_err(unreadable)?;
    let reached = Position {
        epoch: epoch.into(),
        sequence,
    };
    hub.replace(projection, reached.clone());
    Ok(reached)
}

/// Sends a request on the session; the reply arrives among the events.
pub(super) trait Resync {
    fn ask(&self, method: Method) -> Result<oneshot::Receiver<Reply>, SessionError>;
}

/// Follows the daemon's events and keeps the hub current.
pub(super) struct Follower<'a, R> {
    hub: &'a Hub,
    session: &'a R,
    epoch: Arc<str>,
    cursor: Cursor,
    /// Set while a snapshot is requested, with the events received meanwhile.
    resync: Option<(oneshot::Receiver<Reply>, Vec<ServiceEventParams>)>,
    resyncs: u32,
}

impl<'a, R: Resync> Follower<'a, R> {
    /// Continues after the snapshot that was taken at `reached`.
    pub(super) fn new(hub: &'a Hub, session: &'a R, reached: Position) -> Self {
        let Position { epoch, sequence } = reached;
        Self {
            hub,
            session,
            cursor: Cursor::at(epoch.to_string(), sequence),
            epoch,
            resync: None,
            resyncs: 0,
        }
    }

    /// Applies an event if it is the next one. Events that the snapshot contains are skipped; a missing one starts a
    /// resync, during which events are buffered.
    pub(super) fn handle_event(&mut self, params: ServiceEventParams) -> Result<(), SessionError> {
        if let Some((_, held)) = &mut self.resync {
            if held.len() >= MAX_HELD_EVENTS {
                return Err(SessionError::Protocol("too many events during a snapshot".to_owned()));
            }
            held.push(params);
            return Ok(());
        }
        match self.cursor.take(&params.epoch, params.sequence) {
            Step::Old => Ok(()),
            Step::Gap => self.begin_resync(vec![params]),
            Step::Next => {
                self.resyncs = 0;
                let reached = Position {
                    epoch: Arc::clone(&self.epoch),
                    sequence: params.sequence,
                };
                self.hub.apply(&params.event.event, reached).map_err(unreadable)
            }
        }
    }

    /// Handles the arrival of a reply, which may be the requested snapshot. The daemon sends a reply after the events
    /// of its call, so a higher `sequence` means that an event is missing.
    pub(super) fn handle_reply(&mut self, sequence: Option<u64>) -> Result<(), SessionError> {
        self.apply_snapshot()?;
        if self.resync.is_none() && sequence.is_some_and(|sequence| self.cursor.is_behind(sequence)) {
            return self.begin_resync(Vec::new());
        }
        Ok(())
    }

    /// Requests a snapshot, after which the `held` events are applied.
    fn begin_resync(&mut self, held: Vec<ServiceEventParams>) -> Result<(), SessionError> {
        self.resyncs += 1;
        if self.resyncs > MAX_RESYNCS {
            return Err(SessionError::Protocol("events do not fit the snapshots".to_owned()));
        }
        self.resync = Some((self.session.ask(Method::SystemSnapshot)?, held));
        Ok(())
    }

    /// Applies the snapshot if it has arrived, then the buffered events.
    fn apply_snapshot(&mut self) -> Result<(), SessionError> {
        let Some((reply, held)) = &mut self.resync else {
            return Ok(());
        };
        let reply = match reply.try_recv() {
            Ok(reply) => reply,
            Err(oneshot::error::TryRecvError::Empty) => return Ok(()),
            Err(oneshot::error::TryRecvError::Closed) => return Err(SessionError::Closed),
        };
        let held = std::mem::take(held);
        self.resync = None;
        let result = reply.outcome.map_err(SessionError::Refused)?;
        let reached = take_snapshot(serde_json::from_str(result.get()).map_err(unreadable)?, self.hub)?;
        self.cursor = Cursor::at(reached.epoch.to_string(), reached.sequence);
        self.epoch = reached.epoch;
        held.into_iter().try_for_each(|params| self.handle_event(params))
    }
}
