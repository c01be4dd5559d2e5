//! Applies the daemon's events to the hub in order. If one is missing, a snapshot is fetched and replaces the
//! projection.

use protocol::{Method, Reply, ServiceEventParams};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{
    error::{SessionError, unreadable},
    handshake::{Socket, read_result, reply},
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
    let text = reply(socket, Method::SystemSnapshot, &serde_json::Map::new()).await?;
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

/// The position in the daemon's events up to which the hub has them.
pub(super) struct Cursor {
    reached: Position,
    /// Set while a snapshot is requested, with the events received meanwhile.
    resync: Option<(oneshot::Receiver<Reply>, Vec<ServiceEventParams>)>,
    resyncs: u32,
}

impl Cursor {
    pub(super) fn at(reached: Position) -> Self {
        Self {
            reached,
            resync: None,
            resyncs: 0,
        }
    }

    pub(super) fn event(
        &mut self,
        params: Option<&RawValue>,
        hub: &Hub,
        session: &impl Resync,
    ) -> Result<(), SessionError> {
        let params: ServiceEventParams =
            serde_json::from_str(params.map_or("null", |params| params.get())).map_err(unreadable)?;
        self.handle_event(params, hub, session)
    }

    /// Applies an event if it is the next one. Events that the snapshot contains are skipped; a missing one starts a
    /// resync, during which events are buffered.
    fn handle_event(
        &mut self,
        params: ServiceEventParams,
        hub: &Hub,
        session: &impl Resync,
    ) -> Result<(), SessionError> {
        if let Some((_, held)) = &mut self.resync {
            if held.len() >= MAX_HELD_EVENTS {
                return Err(SessionError::Protocol("too many events during a snapshot".to_owned()));
            }
            held.push(params);
            return Ok(());
        }
        let now = &self.reached;
        if *params.epoch == *now.epoch && params.sequence <= now.sequence {
            return Ok(());
        }
        if *params.epoch != *now.epoch || params.sequence != now.sequence + 1 {
            return self.begin_resync(vec![params], session);
        }
        self.resyncs = 0;
        self.reached.sequence = params.sequence;
        hub.apply(&params.event.event, self.reached.clone()).map_err(unreadable)
    }

    /// Checks the sequence number of a reply: the daemon sends a reply after the events of its call, so a higher number
    /// means that an event is missing.
    pub(super) fn expect(&mut self, sequence: Option<u64>, session: &impl Resync) -> Result<(), SessionError> {
        if self.resync.is_none() && sequence.is_some_and(|sequence| sequence > self.reached.sequence) {
            return self.begin_resync(Vec::new(), session);
        }
        Ok(())
    }

    /// Requests a snapshot, after which the `held` events are applied.
    fn begin_resync(&mut self, held: Vec<ServiceEventParams>, session: &impl Resync) -> Result<(), SessionError> {
        self.resyncs += 1;
        if self.resyncs > MAX_RESYNCS {
            return Err(SessionError::Protocol("events do not fit the snapshots".to_owned()));
        }
        let reply = session.ask(Method::SystemSnapshot)?;
        self.resync = Some((reply, held));
        Ok(())
    }

    /// Applies the snapshot if it has arrived, then the buffered events.
    pub(super) fn settle(&mut self, hub: &Hub, session: &impl Resync) -> Result<(), SessionError> {
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
        self.reached = take_snapshot(serde_json::from_str(result.get()).map_err(unreadable)?, hub)?;
        held.into_iter()
            .try_for_each(|params| self.handle_event(params, hub, session))
    }
}
