//! One connection to the daemon: the proof, the hello, calls and their replies, and events in order into the hub.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{
    ErrorCode, EventBody, HelloParams, HelloResult, Id, MAX_REPLY_BYTES, MAX_REQUEST_BYTES, Method, PROTOCOL_VERSION,
    Reply, Role, RpcError, SERVICE_EVENT, ServerFrame, ServiceEventParams, agent, capability, encode_request,
    proof::{self, ChallengeParams, ChallengeResult, ProofRole, ProveParams, ProveResult},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{self, Message, Utf8Bytes, protocol::WebSocketConfig},
};

use crate::{
    link::connect::{ByteStream, Connect, ConnectError, Found},
    projection::{
        hub::{Hub, Reached},
        tasks::Projection,
    },
};

/// How long a connection may take until it is greeted.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long a call may take.
const CALL_TIME: Duration = Duration::from_secs(30);

/// How long a slow call (network, large directories) may take.
const SLOW_CALL_TIME: Duration = Duration::from_mins(2);

/// Calls that wait for their reply at once. More wait for their turn; every one of them belongs to a bounded request.
const MAX_CALLS: usize = 4096;

/// Calls that wait to be written.
const OUTBOX: usize = 256;

/// Events kept while a snapshot is on its way. Beyond it a new connection is cheaper.
const MAX_HELD_EVENTS: usize = 20_000;

/// Snapshots fetched in a row without an event that fits. More would go on for ever.
const MAX_RESYNCS: u32 = 5;

/// How often an idle connection is checked, and how long the daemon may take to answer that.
const PING_EVERY: Duration = Duration::from_secs(25);
const PING_TIME: Duration = Duration::from_secs(10);

/// Why a connection did not come about, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot reach the daemon")]
    Dial(#[source] std::io::Error),
    #[error("the connection to the daemon broke")]
    Socket(#[source] Box<tungstenite::Error>),
    #[error("the daemon sent something else than the protocol allows: {0}")]
    Protocol(String),
    #[error("the daemon does not know the shared token")]
    WrongProof,
    #[error("the daemon refused the connection")]
    Refused(#[source] RpcError),
    #[error(
        "the daemon is version {theirs}, which this agent (version {ours}) does not understand; it was asked to stop"
    )]
    OtherVersion { theirs: String, ours: String },
    #[error("the daemon does not answer")]
    Silent,
    #[error("the daemon closed the connection")]
    Closed,
}

impl From<tungstenite::Error> for SessionError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Socket(Box::new(error))
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Refused(#[from] RpcError),
    /// There is none to call, and why.
    #[error("{0}")]
    NoDaemon(Arc<str>),
    /// The connection ended before the reply.
    #[error("the connection to the daemon broke")]
    Unavailable,
    #[error("the daemon did not answer in time")]
    TimedOut,
    #[error("the daemon's answer could not be read")]
    Unreadable,
}

impl From<CallError> for RpcError {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Refused(error) => error,
            CallError::NoDaemon(_) | CallError::Unavailable => Self::application(ErrorCode::Unavailable, message),
            CallError::TimedOut => Self::application(ErrorCode::Timeout, message),
            CallError::Unreadable => Self::internal(message),
        }
    }
}

type Pending = Mutex<HashMap<i64, oneshot::Sender<Reply>>>;
type Socket = WebSocketStream<Box<dyn ByteStream>>;

/// A connection that stands. Clones call over the same one.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    outbox: mpsc::Sender<(i64, String, oneshot::Sender<Reply>)>,
    turns: Arc<Semaphore>,
    next_id: Arc<AtomicI64>,
    epoch: Arc<str>,
    pub(crate) found: Found,
    /// The Bearer of HTTP requests that belong to this connection.
    pub(crate) bearer: Arc<str>,
}

/// A call that was handed over.
#[derive(Debug)]
pub(crate) struct Begun {
    reply: oneshot::Receiver<Reply>,
    _turn: tokio::sync::OwnedSemaphorePermit,
    time: Duration,
    epoch: Arc<str>,
    method: Method,
    began: Instant,
}

impl Session {
    /// Hands a call over. Calls that are handed over one after the other reach the daemon in that order.
    pub(crate) async fn begin(&self, method: Method, params: Option<&RawValue>) -> Result<Begun, CallError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| CallError::Unavailable)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let text = encode_request(&Id::Number(id), method.name(), params.as_ref())?;
        if text.len() >= MAX_REQUEST_BYTES {
            let message = format!("a call is smaller than {} MiB", MAX_REQUEST_BYTES >> 20);
            return Err(RpcError::application(ErrorCode::InvalidArgument, message).into());
        }
        let (answer, reply) = oneshot::channel();
        let sent = self.outbox.send((id, text, answer)).await;
        sent.map_err(|_| CallError::Unavailable)?;
        Ok(Begun {
            reply,
            _turn: turn,
            time: if method.is_slow() { SLOW_CALL_TIME } else { CALL_TIME },
            epoch: Arc::clone(&self.epoch),
            method,
            began: Instant::now(),
        })
    }
}

impl Begun {
    /// Waits for the reply, and until the projection holds what the call did.
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
            let epoch = self.epoch.to_string();
            hub.caught_up(&Reached { epoch, sequence }).await;
        }
        Ok(reply.outcome?)
    }
}

/// A greeted connection, before its events are read.
pub(crate) struct Opened {
    socket: Socket,
    found: Found,
    bearer: Arc<str>,
}

/// Reaches the daemon and greets it.
pub(crate) async fn open(connect: &dyn Connect, version: &str) -> Result<Opened, SessionError> {
    let found = connect.find().await?;
    tokio::time::timeout(HANDSHAKE_TIME, greet(connect, found, version))
        .await
        .map_err(|_| SessionError::Silent)?
}

async fn greet(connect: &dyn Connect, found: Found, version: &str) -> Result<Opened, SessionError> {
    let stream = connect.dial(&found).await.map_err(SessionError::Dial)?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_REPLY_BYTES))
        .max_frame_size(Some(MAX_REPLY_BYTES));
    let address = format!("ws://127.0.0.1:{}/rpc", found.port);
    let (mut socket, _) = client_async_with_config(address, stream, Some(config)).await?;
    let client_nonce = proof::nonce().map_err(|error| SessionError::Protocol(error.to_string()))?;
    let challenge = ChallengeParams {
        client_nonce: client_nonce.clone(),
    };
    let ChallengeResult {
        server_nonce,
        server_proof,
    } = ask(&mut socket, Method::SystemAuthChallenge, &challenge).await?;
    let is_proved = found
        .token
        .verify(ProofRole::Daemon, &client_nonce, &server_nonce, &server_proof);
    if !is_proved {
        return Err(SessionError::WrongProof);
    }
    let client_proof = found.token.prove(ProofRole::Agent, &client_nonce, &server_nonce);
    let _: ProveResult = ask(&mut socket, Method::SystemAuthProve, &ProveParams { client_proof }).await?;
    let bearer = found
        .token
        .prove(ProofRole::HttpCredential, &client_nonce, &server_nonce);
    hello(&mut socket, version).await?;
    Ok(Opened {
        socket,
        found,
        bearer: bearer.into(),
    })
}

/// Says hello. A daemon of another version is asked to stop, so that the right one can be started.
async fn hello(socket: &mut Socket, version: &str) -> Result<(), SessionError> {
    let hello = HelloParams {
        client_name: agent::CLIENT_NAME.to_owned(),
        client_version: version.to_owned(),
        min_protocol_version: PROTOCOL_VERSION,
        max_protocol_version: PROTOCOL_VERSION,
        requested_role: Role::Daemon,
        capabilities: vec![capability::CLIENT_SEQUENCES.to_owned()],
    };
    let theirs = match ask::<HelloResult>(socket, Method::SystemHello, &hello).await {
        Ok(greeted) if greeted.protocol_version == PROTOCOL_VERSION && greeted.service_version == version => {
            return Ok(());
        }
        Ok(greeted) => greeted.service_version,
        Err(SessionError::Refused(error)) if error.application_code() == Some(ErrorCode::ProtocolIncompatible) => {
            error.message
        }
        Err(error) => return Err(error),
    };
    let _: serde::de::IgnoredAny = ask(socket, Method::SystemShutdown, &protocol::ShutdownParams::default()).await?;
    let ours = version.to_owned();
    Err(SessionError::OtherVersion { theirs, ours })
}

/// One call before there is anything else on the socket.
async fn ask<R: DeserializeOwned>(
    socket: &mut Socket,
    method: Method,
    params: &(impl Serialize + Sync),
) -> Result<R, SessionError> {
    read_result(&reply(socket, method, params).await?)
}

/// The text of a call's reply.
async fn reply(
    socket: &mut Socket,
    method: Method,
    params: &(impl Serialize + Sync),
) -> Result<Utf8Bytes, SessionError> {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        method: Option<serde::de::IgnoredAny>,
    }
    let text = encode_request(&Id::Number(0), method.name(), Some(params));
    let text = text.map_err(|error| SessionError::Protocol(error.message))?;
    socket.send(Message::text(text)).await?;
    loop {
        let text = match socket.next().await.ok_or(SessionError::Closed)?? {
            Message::Text(text) => text,
            Message::Close(_) => return Err(SessionError::Closed),
            _ => continue,
        };
        let head: Head = serde_json::from_str(&text).map_err(unreadable)?;
        if head.method.is_none() {
            return Ok(text);
        }
    }
}

/// What a reply says. A snapshot is read where it lies: it may be most of the memory that there is.
fn read_result<'a, R: Deserialize<'a>>(reply: &'a str) -> Result<R, SessionError> {
    #[derive(Deserialize)]
    struct Outcome<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<RpcError>,
    }
    let Outcome { result, error } = serde_json::from_str(reply).map_err(unreadable)?;
    match (result, error) {
        (Some(result), None) => serde_json::from_str(result.get()).map_err(unreadable),
        (_, Some(error)) => Err(SessionError::Refused(error)),
        (None, None) => Err(SessionError::Protocol("a reply has a result or an error".to_owned())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn unreadable(error: serde_json::Error) -> SessionError {
    SessionError::Protocol(error.to_string())
}

#[derive(Deserialize)]
struct Snapshot<'a> {
    epoch: String,
    sequence: u64,
    #[serde(borrow)]
    body: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    snapshot: &'a RawValue,
}

impl Opened {
    /// Asks the daemon to end.
    pub(crate) async fn ask_to_stop(mut self) -> Result<(), SessionError> {
        let params = protocol::ShutdownParams::default();
        let _: serde::de::IgnoredAny = ask(&mut self.socket, Method::SystemShutdown, &params).await?;
        Ok(())
    }

    /// Fetches the state, gives the session away, then lives until the connection ends.
    pub(crate) async fn run(mut self, hub: &Hub, ready: impl FnOnce(Session)) -> SessionError {
        let fetched = tokio::time::timeout(SLOW_CALL_TIME, snapshot(&mut self.socket, hub)).await;
        let reached = match fetched {
            Ok(Ok(reached)) => reached,
            Ok(Err(error)) => return error,
            Err(_) => return SessionError::Silent,
        };
        let (outbox, calls) = mpsc::channel(OUTBOX);
        let session = Session {
            outbox,
            turns: Arc::new(Semaphore::new(MAX_CALLS)),
            next_id: Arc::new(AtomicI64::new(1)),
            epoch: reached.epoch.as_str().into(),
            found: self.found,
            bearer: self.bearer,
        };
        let own = session.clone();
        ready(session);
        let pending = Pending::default();
        let (sink, stream) = self.socket.split();
        tokio::select! {
            error = write(sink, calls, &pending) => error,
            error = read(stream, hub, &pending, reached, &own) => error,
            error = keep_alive(&own) => error,
        }
    }
}

async fn snapshot(socket: &mut Socket, hub: &Hub) -> Result<Reached, SessionError> {
    // Events may come before the reply; those that the snapshot holds are skipped, later ones only come after it.
    let text = reply(socket, Method::SystemSnapshot, &serde_json::Map::new()).await?;
    take_snapshot(read_result(&text)?, hub)
}

fn take_snapshot(snapshot: Snapshot<'_>, hub: &Hub) -> Result<Reached, SessionError> {
    let Snapshot { epoch, sequence, body } = snapshot;
    let projection = Projection::read(body.snapshot.get()).map_err(unreadable)?;
    let reached = Reached { epoch, sequence };
    hub.replace(projection, reached.clone());
    Ok(reached)
}

async fn write(
    mut sink: futures_util::stream::SplitSink<Socket, Message>,
    mut calls: mpsc::Receiver<(i64, String, oneshot::Sender<Reply>)>,
    pending: &Pending,
) -> SessionError {
    while let Some((id, text, answer)) = calls.recv().await {
        {
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever gave up waiting is forgotten here.
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

/// Where the reading of events stands.
struct Cursor {
    reached: Reached,
    /// Set while a snapshot is on its way, with the events that came meanwhile.
    resync: Option<(oneshot::Receiver<Reply>, Vec<ServiceEventParams>)>,
    resyncs: u32,
}

async fn read(
    mut stream: futures_util::stream::SplitStream<Socket>,
    hub: &Hub,
    pending: &Pending,
    reached: Reached,
    session: &Session,
) -> SessionError {
    let mut cursor = Cursor {
        reached,
        resync: None,
        resyncs: 0,
    };
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
                if let Some(Id::Number(id)) = reply.id
                    && let Some(answer) = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
                {
                    // Whoever gave up waiting does not take it.
                    let _gone = answer.send(reply);
                }
                cursor
                    .settle(hub, session)
                    .and_then(|()| cursor.expect(sequence, session))
            }
            Ok(ServerFrame::Notification { method, params }) if method == SERVICE_EVENT => {
                cursor.event(params.as_deref(), hub, session)
            }
            Ok(ServerFrame::Notification { .. }) => Ok(()),
        };
        if let Err(error) = took {
            return error;
        }
    }
}

impl Cursor {
    fn event(&mut self, params: Option<&RawValue>, hub: &Hub, session: &Session) -> Result<(), SessionError> {
        let params: ServiceEventParams<EventBody> =
            serde_json::from_str(params.map_or("null", |params| params.get())).map_err(unreadable)?;
        if let Some((_, held)) = &mut self.resync {
            if held.len() >= MAX_HELD_EVENTS {
                return Err(SessionError::Protocol("too many events during a snapshot".to_owned()));
            }
            held.push(params);
            return Ok(());
        }
        let now = &self.reached;
        if params.epoch == now.epoch && params.sequence <= now.sequence {
            return Ok(());
        }
        if params.epoch != now.epoch || params.sequence != now.sequence + 1 {
            return self.begin_resync(vec![params], session);
        }
        self.resyncs = 0;
        self.reached.sequence = params.sequence;
        hub.apply(&params.event.event, self.reached.clone()).map_err(unreadable)
    }

    /// A reply comes after the events of its call; if they are not here, one is missing.
    fn expect(&mut self, sequence: Option<u64>, session: &Session) -> Result<(), SessionError> {
        if self.resync.is_none() && sequence.is_some_and(|sequence| sequence > self.reached.sequence) {
            return self.begin_resync(Vec::new(), session);
        }
        Ok(())
    }

    /// An event is missing: everything anew, then what was `held`.
    fn begin_resync(&mut self, held: Vec<ServiceEventParams>, session: &Session) -> Result<(), SessionError> {
        self.resyncs += 1;
        if self.resyncs > MAX_RESYNCS {
            return Err(SessionError::Protocol("events do not fit the snapshots".to_owned()));
        }
        let id = session.next_id.fetch_add(1, Ordering::Relaxed);
        let text = encode_request::<()>(&Id::Number(id), Method::SystemSnapshot.name(), None);
        let text = text.map_err(|error| SessionError::Protocol(error.message))?;
        let (answer, reply) = oneshot::channel();
        // The reader never waits for the writer; a full outbox here means a daemon that no longer reads.
        session
            .outbox
            .try_send((id, text, answer))
            .map_err(|_| SessionError::Silent)?;
        self.resync = Some((reply, held));
        Ok(())
    }

    /// Takes the snapshot if it has come, then what came meanwhile.
    fn settle(&mut self, hub: &Hub, session: &Session) -> Result<(), SessionError> {
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
        for params in held {
            let params = serde_json::value::to_raw_value(&params);
            let params = params.map_err(unreadable)?;
            self.event(Some(&params), hub, session)?;
        }
        Ok(())
    }
}

/// Ends when an idle daemon no longer answers.
async fn keep_alive(session: &Session) -> SessionError {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let Ok(begun) = session.begin(Method::SystemPing, None).await else {
            return SessionError::Closed;
        };
        match tokio::time::timeout(PING_TIME, begun.reply).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => return SessionError::Closed,
            Err(_) => return SessionError::Silent,
        }
    }
}
