//! One connection to the daemon: pipelined calls and their replies, and events applied to the hub in sequence.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::{
    SinkExt as _, StreamExt as _,
    stream::{SplitSink, SplitStream},
};
use protocol::{
    Id, Method, Reply, ServerFrame,
    client::{CallError, Calls},
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

use super::{
    connect::Found,
    error::SessionError,
    handshake::{Opened, Socket},
    replay::{Follower, Resync, snapshot},
};
use crate::projection::hub::{Hub, Position};

const CALL_TIME: Duration = Duration::from_secs(30);

/// The limit of slow calls (network, large directories).
const SLOW_CALL_TIME: Duration = Duration::from_mins(2);

/// Calls that await their reply. More wait for a permit; each belongs to a bounded request.
const MAX_CALLS: usize = 4096;

/// Calls that are queued for the writer.
const OUTBOX: usize = 256;

/// How often an idle connection is pinged, and how long the daemon may take to answer.
const PING_EVERY: Duration = Duration::from_secs(25);
const PING_TIME: Duration = Duration::from_secs(10);

type Pending = Mutex<HashMap<Id, oneshot::Sender<Reply>>>;

type Outgoing = (Id, String, oneshot::Sender<Reply>);

/// An established connection. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    outbox: mpsc::Sender<Outgoing>,
    turns: Arc<Semaphore>,
    calls: Arc<Calls>,
    epoch: Arc<str>,
    pub(crate) found: Found,
    /// The bearer token of HTTP requests of this session.
    pub(crate) bearer: Arc<str>,
}

/// A call that was sent.
#[derive(Debug)]
pub(crate) struct PendingCall {
    reply: oneshot::Receiver<Reply>,
    _turn: tokio::sync::OwnedSemaphorePermit,
    time: Duration,
    epoch: Arc<str>,
    method: Method,
    began: Instant,
}

impl Session {
    /// Sends a call. Consecutive calls reach the daemon in order.
    pub(crate) async fn begin<P: Serialize + Sync>(
        &self,
        method: Method,
        params: Option<&P>,
    ) -> Result<PendingCall, CallError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| CallError::Unavailable)?;
        let (id, text) = self.calls.encode(method, params)?;
        let (answer, reply) = oneshot::channel();
        let sent = self.outbox.send((id, text, answer)).await;
        sent.map_err(|_| CallError::Unavailable)?;
        Ok(PendingCall {
            reply,
            _turn: turn,
            time: if method.is_slow() { SLOW_CALL_TIME } else { CALL_TIME },
            epoch: Arc::clone(&self.epoch),
            method,
            began: Instant::now(),
        })
    }
}

impl Resync for Session {
    fn ask(&self, method: Method) -> Result<oneshot::Receiver<Reply>, SessionError> {
        let call = self.calls.encode::<()>(method, None);
        let (id, text) = call.map_err(|error| SessionError::Protocol(error.to_string()))?;
        let (answer, reply) = oneshot::channel();
        // The reader must not block on the writer; a full outbox means that the daemon stopped reading.
        let sent = self.outbox.try_send((id, text, answer));
        sent.map_err(|_| SessionError::Silent)?;
        Ok(reply)
    }
}

impl PendingCall {
    /// Waits for the reply, and until the projection includes the effect of the call.
    pub(crate) async fn finish(self, hub: &Hub) -> Result<Box<RawValue>, CallError> {
        let (method, began) = (self.method, self.began);
        let result = self.reply(hub).await;
        hub.metrics.called(method, began.elapsed(), result.is_ok());
        result
    }

    async fn reply(self, hub: &Hub) -> Result<Box<RawValue>, CallError> {
        let reply = tokio::time::timeout(self.time, self.reply).await;
        let reply = reply
            .map_err(|_| CallError::TimedOut)?
            .map_err(|_| CallError::Unavailable)?;
        if let Some(sequence) = reply.sequence {
            let epoch = self.epoch;
            hub.caught_up(&Position { epoch, sequence }).await;
        }
        Ok(reply.outcome?)
    }
}

/// Fetches the state, passes the session to `ready`, then runs until the connection ends.
pub(super) async fn run(opened: Opened, hub: &Hub, ready: impl FnOnce(Session)) -> SessionError {
    let Opened {
        mut socket,
        found,
        bearer,
    } = opened;
    let fetched = tokio::time::timeout(SLOW_CALL_TIME, snapshot(&mut socket, hub)).await;
    let reached = match fetched {
        Ok(Ok(reached)) => reached,
        Ok(Err(error)) => return error,
        Err(_) => return SessionError::Silent,
    };
    let (outbox, calls) = mpsc::channel(OUTBOX);
    let session = Session {
        outbox,
        turns: Arc::new(Semaphore::new(MAX_CALLS)),
        calls: Arc::default(),
        epoch: Arc::clone(&reached.epoch),
        found,
        bearer,
    };
    let own = session.clone();
    ready(session);
    let pending = Pending::default();
    let (sink, stream) = socket.split();
    tokio::select! {
        error = write(sink, calls, &pending) => error,
        error = read(stream, hub, &pending, reached, &own) => error,
        error = keep_alive(&own) => error,
    }
}

async fn write(
    mut sink: SplitSink<Socket, Message>,
    mut calls: mpsc::Receiver<Outgoing>,
    pending: &Pending,
) -> SessionError {
    while let Some((id, text, answer)) = calls.recv().await {
        {
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            // Abandoned calls are removed here.
            if pending.len() >= MAX_CALLS {
                pending.retain(|_, answer| !answer.is_closed());
            }
            pending.insert(id, answer);
        }
        let sent = if calls.is_empty() {
            sink.send(Message::text(text)).await
        } else {
            sink.feed(Message::text(text)).await
        };
        if let Err(error) = sent {
            return error.into();
        }
    }
    SessionError::Closed
}

async fn read(
    mut stream: SplitStream<Socket>,
    hub: &Hub,
    pending: &Pending,
    reached: Position,
    session: &Session,
) -> SessionError {
    let mut follower = Follower::new(hub, session, reached);
    loop {
        let text = match stream.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Close(_))) | None => return SessionError::Closed,
            Some(Ok(_)) => continue,
            Some(Err(error)) => return error.into(),
        };
        let took = match ServerFrame::read(&text) {
            Err(error) => Err(SessionError::Protocol(error.message)),
            Ok(ServerFrame::Reply(reply)) => {
                let sequence = reply.sequence;
                if let Some(id) = &reply.id
                    && let Some(answer) = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
                {
                    // The caller may have been cancelled.
                    let _gone = answer.send(reply);
                }
                follower.handle_reply(sequence)
            }
            Ok(ServerFrame::Event(params)) => follower.handle_event(params),
            Ok(ServerFrame::Notification { .. }) => Ok(()),
        };
        if let Err(error) = took {
            return error;
        }
    }
}

/// Returns when an idle daemon no longer answers.
async fn keep_alive(session: &Session) -> SessionError {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let Ok(begun) = session.begin(Method::SystemPing, None::<&()>).await else {
            return SessionError::Closed;
        };
        match tokio::time::timeout(PING_TIME, begun.reply).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => return SessionError::Closed,
            Err(_) => return SessionError::Silent,
        }
    }
}
