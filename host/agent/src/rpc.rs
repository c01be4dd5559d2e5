//! `/rpc` for browsers and tools: reads are answered here, the rest goes on to the daemon, events come to everybody.

use std::{pin::Pin, time::Duration};

use axum::{
    extract::{
        State, WebSocketUpgrade,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket},
    },
    response::Response,
};
use futures_util::{
    SinkExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{FuturesUnordered, SplitSink},
};
use protocol::{
    ErrorCode, HelloParams, HelloResult, Id, MAX_REQUEST_BYTES, Method, OkResult, PROTOCOL_VERSION, Reply, Request,
    Role, RpcError, SLOW_LANE, TaskIdParams,
    agent::{GatewayPatch, PreferencesPatch, PreferencesPatched, RevealedToken},
    close,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::{
    gate::RPC_PROTOCOL,
    hub::Hub,
    key::KeyDigest,
    problem::ResultMessage,
    projection::{Filter, array},
    rest::App,
    session::CallError,
    vault::ChangeError,
};

/// Calls of one connection that wait for their reply. Beyond it nothing more is read.
const MAX_CALLS: usize = 64;

/// Events sent between two looks at calls.
const EVENTS_AT_ONCE: usize = 256;

/// How long a reader may leave its socket full.
const SEND_TIME: Duration = Duration::from_secs(20);

/// What this agent offers.
const CAPABILITIES: &[&str] = &[
    "daemon.tasks",
    "daemon.queues",
    "daemon.groups",
    "daemon.config",
    "agent.gateway",
];

/// A WebSocket with one JSON-RPC 2.0 object per frame.
#[utoipa::path(get, path = "/rpc", responses(
    (status = 101, description = "A WebSocket"), (status = 400, body = ResultMessage),
    (status = 401, body = ResultMessage), (status = 403, body = ResultMessage), (status = 426, body = ResultMessage),
    (status = 429, body = ResultMessage), (status = 503, body = ResultMessage)))]
pub(crate) async fn connect(State(app): State<App>, upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .protocols([RPC_PROTOCOL])
        .max_message_size(MAX_REQUEST_BYTES - 1)
        .max_frame_size(MAX_REQUEST_BYTES - 1)
        .on_upgrade(async move |socket| serve(app, socket).await)
}

/// Why a connection ends.
enum End {
    /// The other side is gone.
    Gone,
    Close(u16, &'static str),
}

type Answer = BoxFuture<'static, (Reply, bool)>;

struct Connection {
    app: App,
    sink: SplitSink<WebSocket, Message>,
    is_greeted: bool,
    /// The last event that was sent; none before the first snapshot.
    cursor: Option<u64>,
    newest: watch::Receiver<u64>,
    calls: FuturesUnordered<Answer>,
    slow_calls: usize,
    /// The key that this connection came with.
    key: Option<KeyDigest>,
}

async fn serve(app: App, socket: WebSocket) {
    let (sink, mut frames) = socket.split();
    let stop = app.stop.clone();
    let mut settings = app.gate.vault.follow();
    let mut connection = Connection {
        newest: app.daemon.hub.follow(),
        key: app.gate.vault.settings().key_digest(),
        app,
        sink,
        is_greeted: false,
        cursor: None,
        calls: FuturesUnordered::new(),
        slow_calls: 0,
    };
    let end = loop {
        let has_room = connection.calls.len() < MAX_CALLS;
        // Events before replies: who reads a reply has what it did.
        let step = tokio::select! {
            biased;
            () = stop.cancelled() => Err(End::Close(close::GOING_AWAY, close::SERVICE_QUIT_REASON)),
            _ = connection.newest.changed(), if connection.cursor.is_some() => connection.send_events().await,
            Some((reply, is_slow)) = connection.calls.next() => connection.answer(&reply, is_slow).await,
            frame = frames.next(), if has_room => connection.take(frame).await,
            _ = settings.changed() => connection.check_key(),
        };
        if let Err(end) = step {
            break end;
        }
    };
    if let End::Close(code, reason) = end {
        let frame = Message::Close(Some(CloseFrame {
            code,
            reason: reason.into(),
        }));
        // Whoever is gone needs no farewell.
        let _gone = connection.send(frame).await;
    }
}

impl Connection {
    async fn send(&mut self, message: Message) -> Result<(), End> {
        let sent = tokio::time::timeout(SEND_TIME, self.sink.send(message)).await;
        sent.map_err(|_| End::Gone)?.map_err(|_| End::Gone)
    }

    async fn send_text(&mut self, text: impl Into<Utf8Bytes>) -> Result<(), End> {
        self.send(Message::Text(text.into())).await
    }

    /// Sends what happened since the last time.
    async fn send_events(&mut self) -> Result<(), End> {
        while let Some(cursor) = self.cursor {
            let events = self.app.daemon.hub.after(cursor, EVENTS_AT_ONCE);
            let events = events.map_err(|_| End::Close(close::EVENT_GAP, close::EVENT_GAP_REASON))?;
            if events.is_empty() {
                break;
            }
            self.cursor = Some(cursor + u64::try_from(events.len()).unwrap_or(0));
            let sink = &mut self.sink;
            let all = async {
                for event in events {
                    sink.feed(Message::Text(event)).await?;
                }
                sink.flush().await
            };
            let sent = tokio::time::timeout(SEND_TIME, all).await;
            sent.map_err(|_| End::Gone)?.map_err(|_: axum::Error| End::Gone)?;
        }
        Ok(())
    }

    async fn answer(&mut self, reply: &Reply, is_slow: bool) -> Result<(), End> {
        self.slow_calls -= usize::from(is_slow);
        self.send_events().await?;
        self.send_text(reply.encode()).await
    }

    /// A connection does not outlive the key that it came with.
    fn check_key(&self) -> Result<(), End> {
        if self.app.gate.vault.settings().key_digest() == self.key {
            Ok(())
        } else {
            Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON))
        }
    }

    async fn take(&mut self, frame: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        let text = match frame {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Binary(_))) => return Err(End::Close(close::UNSUPPORTED, "text frames only")),
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Ok(()),
            Some(Ok(Message::Close(_))) | None => return Err(End::Gone),
            Some(Err(error)) if error.to_string().contains("too") => {
                return Err(End::Close(close::TOO_BIG, "the frame is too large"));
            }
            Some(Err(_)) => return Err(End::Gone),
        };
        let request = match Request::read(&text) {
            Ok(request) => request,
            Err(error) => return self.send_text(Reply::failure(None, error).encode()).await,
        };
        // A notification asks for nothing, and none is known.
        let Some(id) = request.id.clone() else { return Ok(()) };
        if let Err(error) = self.dispatch(id.clone(), &request).await? {
            return self.send_text(Reply::failure(Some(id), error).encode()).await;
        }
        Ok(())
    }

    /// Answers, or lets the daemon answer. What is refused is returned.
    async fn dispatch(&mut self, id: Id, request: &Request) -> Result<Result<(), RpcError>, End> {
        let Some(method) = Method::parse(&request.method) else {
            return Ok(Err(RpcError::method_not_found(&request.method)));
        };
        if !self.is_greeted && !matches!(method, Method::SystemHello | Method::SystemPing) {
            return Ok(Err(conflict("system.hello comes first")));
        }
        let answer = match method {
            Method::SystemHello => self.hello(request).and_then(|greeted| raw(&greeted)),
            Method::SystemPing => raw(&OkResult::OK),
            Method::SystemSnapshot => {
                let (snapshot, sequence) = self.app.daemon.hub.snapshot();
                self.cursor = Some(sequence);
                self.newest.mark_changed();
                Ok(snapshot)
            }
            Method::SystemAuthChallenge | Method::SystemAuthProve => Err(conflict("the connection is authenticated")),
            Method::SystemShutdown | Method::SiteAuthGet | Method::SiteAuthMatch => Err(RpcError::application(
                ErrorCode::Unsupported,
                "only the service itself may call this",
            )),
            _ if method.is_agents_own() => self.own(method, request).await,
            _ => match self.read(method, request) {
                Some(answer) => answer,
                None => return Ok(self.forward(id, method, request).await),
            },
        };
        match answer {
            Err(error) => Ok(Err(error)),
            Ok(result) => {
                let reply = Reply {
                    id: Some(id),
                    outcome: Ok(result),
                    sequence: None,
                };
                self.send_text(reply.encode()).await.map(Ok)
            }
        }
    }

    fn hello(&mut self, request: &Request) -> Result<HelloResult, RpcError> {
        if self.is_greeted {
            return Err(conflict("hello was said already"));
        }
        let hello: HelloParams = request.params()?;
        let range = hello.min_protocol_version..=hello.max_protocol_version;
        if !range.contains(&PROTOCOL_VERSION) || hello.requested_role != Role::Agent {
            let message = format!("this is an agent that speaks protocol {PROTOCOL_VERSION}");
            return Err(RpcError::application(ErrorCode::ProtocolIncompatible, message));
        }
        self.is_greeted = true;
        Ok(HelloResult {
            role: Role::Agent,
            service_name: protocol::agent::CLIENT_NAME.to_owned(),
            service_version: self.app.version.to_string(),
            protocol_version: PROTOCOL_VERSION,
            instance_id: self.app.daemon.hub.epoch().to_owned(),
            capabilities: CAPABILITIES.iter().map(|name| (*name).to_owned()).collect(),
        })
    }

    /// Reads that the projection answers.
    fn read(&self, method: Method, request: &Request) -> Option<Result<Box<RawValue>, RpcError>> {
        let hub: &Hub = &self.app.daemon.hub;
        let text = match method {
            Method::TaskList => hub.look(|daemon| {
                let page = daemon.page(&Filter::default(), None, None);
                page.map(|page| array(&page.tasks)).unwrap_or_default()
            }),
            Method::TaskGet => {
                let TaskIdParams { task_id } = match request.params() {
                    Ok(params) => params,
                    Err(error) => return Some(Err(error)),
                };
                match hub.look(|daemon| daemon.task(&task_id)) {
                    Some(task) => task.to_string(),
                    None => return Some(Err(RpcError::application(ErrorCode::NotFound, "not found"))),
                }
            }
            Method::QueueList => hub.look(|daemon| daemon.queues().to_owned()),
            Method::GroupList => hub.look(|daemon| daemon.groups().to_owned()),
            Method::ConfigGet => hub.look(|daemon| daemon.config().to_owned()),
            Method::SiteAuthList => hub.look(|daemon| daemon.sites().to_owned()),
            _ => return None,
        };
        if !hub.is_connected() {
            return Some(Err(refused(CallError::Unavailable)));
        }
        Some(RawValue::from_string(text).map_err(|error| RpcError::internal(error.to_string())))
    }

    /// Hands a call to the daemon, in order; its reply is awaited beside the others.
    async fn forward(&mut self, id: Id, method: Method, request: &Request) -> Result<(), RpcError> {
        let is_slow = method.is_slow();
        if is_slow && self.slow_calls >= SLOW_LANE {
            let message = "too many slow calls at once";
            return Err(RpcError::application(ErrorCode::Unavailable, message));
        }
        let begun = self
            .app
            .daemon
            .begin(method, request.params.as_deref())
            .await
            .map_err(refused)?;
        self.slow_calls += usize::from(is_slow);
        let hub = std::sync::Arc::clone(&self.app.daemon.hub);
        self.calls.push(Box::pin(async move {
            let reply = Reply {
                id: Some(id),
                outcome: begun.finish(&hub).await.map_err(refused),
                sequence: None,
            };
            (reply, is_slow)
        }) as Pin<Box<_>>);
        Ok(())
    }

    /// What the agent itself owns.
    async fn own(&mut self, method: Method, request: &Request) -> Result<Box<RawValue>, RpcError> {
        let vault = &self.app.gate.vault;
        let host = vault.host();
        match method {
            Method::GatewayGet => raw(&vault.settings().status(host)),
            Method::GatewayRevealToken => {
                let user_token = vault.settings().key.as_ref().map(|key| key.expose().to_owned());
                let user_token = user_token.unwrap_or_default();
                raw(&RevealedToken { user_token })
            }
            Method::GatewayPatch => {
                let patch: GatewayPatch = request.params()?;
                let changed = vault.change(move |now| Ok(now.patched(host, &patch)?)).await;
                let changed = changed.map_err(|error| not_changed(&error))?;
                self.key = changed.key_digest();
                raw(&changed.status(host))
            }
            Method::PreferencesPatch => {
                let patch: PreferencesPatch = request.params()?;
                let changed = vault.change(move |now| Ok(now.preferring(patch)?)).await;
                let changed = changed.map_err(|error| not_changed(&error))?;
                raw(&PreferencesPatched {
                    ok: true,
                    revision: changed.preferences.revision,
                })
            }
            _ => Err(RpcError::method_not_found(method.name())),
        }
    }
}

fn raw(result: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(result).map_err(|error| RpcError::internal(error.to_string()))
}

fn conflict(message: &str) -> RpcError {
    RpcError::application(ErrorCode::Conflict, message)
}

fn refused(error: CallError) -> RpcError {
    let message = error.to_string();
    match error {
        CallError::Refused(error) => error,
        CallError::Unavailable => RpcError::application(ErrorCode::Unavailable, message),
        CallError::TimedOut => RpcError::application(ErrorCode::Timeout, message),
        CallError::Unreadable => RpcError::internal(message),
    }
}

fn not_changed(error: &ChangeError) -> RpcError {
    match error {
        ChangeError::Refused(refused) => {
            let error = RpcError::application(ErrorCode::InvalidArgument, refused.to_string());
            match refused.field() {
                Some(field) => error.with_field(field),
                None => error,
            }
        }
        ChangeError::KeyExists => conflict("there is a key already"),
        ChangeError::NotStored(_) => {
            tracing::error!(%error, "settings could not be stored");
            RpcError::application(ErrorCode::Unavailable, error.to_string())
        }
    }
}
