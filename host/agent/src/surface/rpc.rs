//! `/rpc` for user interfaces and tools: a WebSocket with a snapshot, the events that change it, and calls. Reads are
//! answered from the projection; other calls are forwarded to the daemon in order.

use std::sync::Arc;

use axum::{
    extract::{Request as HttpRequest, State},
    response::Response,
};
use futures_util::{
    StreamExt as _,
    future::{self, BoxFuture},
    stream::FuturesUnordered,
};
use hyper::upgrade::Upgraded;
use protocol::{
    CaptureResolveParams, CaptureSubmitParams, ErrorCode, FindTasksParams, HelloParams, HelloResult, Id, Method,
    MethodFamily, OkResult, OpenTaskParams, PROTOCOL_VERSION, Reply, Request, Role, RpcError, SLOW_LANE, TaskIdParams,
    agent::{GatewayPatch, PreferencesPatch, PreferencesPatched, RevealedToken},
    capability, close,
};
use rest::ResultMessage;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::{
    access::{self, key::KeyDigest, peer_user::Peer, session::Purpose},
    daemon_link::{daemon::Daemon, questions::Subscription},
    gate::sender::Sender as Client,
    projection::{
        hub::Reader,
        tasks::{Listing, Projection, beginning_with},
    },
    settings::{config::Edition, file::ChangeError, preference, schema},
    surface::{
        link, open, session,
        socket::{self, End, Sender},
        state::App,
        takeover,
    },
};

/// Pending calls of one connection. Beyond this nothing more is read from it.
const MAX_CALLS: usize = 64;

/// Events sent before calls are polled again.
const EVENTS_AT_ONCE: usize = 256;

/// Open the connection of a user interface.
///
/// A WebSocket with one JSON-RPC 2.0 object per frame: a snapshot of everything, the events that change it, and calls.
#[utoipa::path(get, path = "/rpc", responses(
    (status = 101, description = "A WebSocket"), (status = 400, body = ResultMessage),
    (status = 401, body = ResultMessage), (status = 403, body = ResultMessage), (status = 426, body = ResultMessage),
    (status = 429, body = ResultMessage), (status = 503, body = ResultMessage)))]
pub(crate) async fn connect(State(app): State<App>, mut request: HttpRequest) -> Response {
    let (response, upgrade) = socket::accept(&mut request);
    let Some(upgrade) = upgrade else { return response };
    let client = request.extensions().get::<Client>();
    let key = client.and_then(|sender| sender.key);
    let is_confirmation_window = client.is_some_and(|sender| sender.session == Some(Purpose::Confirmation));
    let origin = request.extensions().get::<Peer>().cloned().zip(client.cloned());
    let shutdown = app.shutdown.clone();
    // The connection counts against the limits as long as it is open.
    let slot = access::slot(&request);
    shutdown.spawn_connection(async move {
        let _seat = slot;
        match upgrade.await {
            Ok(upgraded) => {
                let _window = is_confirmation_window.then(|| app.gate.sessions.connect_window());
                serve(app.clone(), upgraded, key, origin).await;
            }
            Err(error) => tracing::debug!(%error, "a client went away while its connection was upgraded"),
        }
    });
    response
}

type Answer = BoxFuture<'static, (Reply, bool)>;

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Connection {
    app: App,
    sender: Sender,
    is_initialized: bool,
    /// Asked for tasks without members that have usual values.
    is_sparse: bool,
    /// The position in the events; none before the first snapshot.
    reader: Option<Reader>,
    calls: FuturesUnordered<Answer>,
    slow_calls: usize,
    /// The key that authorized this connection.
    key: Option<KeyDigest>,
    /// Authorized by the pass, which does not depend on the key.
    is_own: bool,
    /// Where it comes from; none for a connection within the process.
    origin: Option<(Peer, Client)>,
    /// To questions of tasks.
    subscription: Option<Subscription>,
}

async fn serve(app: App, upgraded: Upgraded, key: Option<KeyDigest>, origin: Option<(Peer, Client)>) {
    let (sender, mut frames) = socket::open(upgraded).await;
    let shutdown = app.shutdown.clone();
    let mut settings = app.gate.settings.follow();
    // The key may have changed since the gate checked it.
    settings.mark_changed();
    let mut connection = Connection {
        is_own: key.is_none(),
        key,
        origin,
        app,
        sender,
        is_initialized: false,
        is_sparse: false,
        reader: None,
        calls: FuturesUnordered::new(),
        slow_calls: 0,
        subscription: None,
    };
    // A set of futures yields to the runtime whenever it has polled as many as it has. With one call in flight that is
    // every time, and each yield wakes another thread. So the set has one more, which never ends.
    connection.calls.push(Box::pin(future::pending()));
    let end = loop {
        let has_room = connection.calls.len() <= MAX_CALLS;
        // Events are sent before replies: a client that has a reply has also seen its effect.
        let step = tokio::select! {
            biased;
            () = shutdown.drain.cancelled() => Err(End::Close(close::GOING_AWAY, shutdown.close_reason())),
            () = changed(&mut connection.reader) => connection.send_events().await,
            Some((reply, is_slow)) = connection.calls.next() => connection.answer(&reply, is_slow).await,
            frame = frames.next(), if has_room => connection.take(frame).await,
            _ = settings.changed() => connection.check_key(),
        };
        if let Err(end) = step {
            break end;
        }
    };
    if let End::Close(code, reason) = end {
        connection.sender.close(code, reason, frames).await;
    }
}

/// Resolves once there are newer events. Cancel-safe.
async fn changed(reader: &mut Option<Reader>) {
    match reader {
        Some(reader) => reader.changed().await,
        None => future::pending().await,
    }
}

impl Connection {
    async fn send_events(&mut self) -> Result<(), End> {
        while let Some(reader) = &mut self.reader {
            let events = self.app.daemon.hub.next(reader, EVENTS_AT_ONCE);
            let events = events.map_err(|_| End::Close(close::EVENT_GAP, close::EVENT_GAP_REASON))?;
            if events.is_empty() {
                break;
            }
            for event in events {
                self.sender.feed(socket::frames(event)).await?;
            }
            self.sender.flush().await?;
        }
        Ok(())
    }

    async fn reply(&mut self, reply: &Reply) -> Result<(), End> {
        self.sender.send(reply.encode()).await
    }

    async fn refuse(&mut self, id: Option<Id>, error: RpcError) -> Result<(), End> {
        self.reply(&Reply::failure(id, error)).await
    }

    async fn reply_with(&mut self, listing: Listing) -> Result<(), End> {
        self.sender.feed(listing).await?;
        self.sender.flush().await
    }

    async fn answer(&mut self, reply: &Reply, is_slow: bool) -> Result<(), End> {
        self.slow_calls -= usize::from(is_slow);
        self.send_events().await?;
        self.reply(reply).await
    }

    /// Closes a connection whose key was changed.
    fn check_key(&self) -> Result<(), End> {
        if self.is_own || self.app.gate.settings.current().key_digest() == self.key {
            Ok(())
        } else {
            Err(End::Close(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON))
        }
    }

    async fn take(&mut self, frame: Result<Utf8Bytes, End>) -> Result<(), End> {
        let request = match Request::read(&frame?) {
            Ok(request) => request,
            Err(error) => return self.refuse(None, error).await,
        };
        // A notification has no answer, and none is defined.
        let Some(id) = request.id.clone() else { return Ok(()) };
        let method = Method::parse(&request.method);
        let answered = match method {
            None => Err(RpcError::method_not_found(&request.method)),
            Some(method) if !self.is_initialized && !matches!(method, Method::SystemHello | Method::SystemPing) => {
                Err(conflict("system.hello comes first"))
            }
            Some(method) => self.dispatch(&id, method, &request).await,
        };
        if cfg!(debug_assertions)
            && let (Some(method), Ok(Answered::Text(text))) = (method, &answered)
        {
            let result = RawValue::from_string(text.clone());
            let checked = result.map_err(|error| error.to_string());
            if let Err(error) = checked.and_then(|result| method.check_result(&result)) {
                let error = RpcError::internal(format!("the result of {}: {error}", method.name()));
                return self.refuse(Some(id), error).await;
            }
        }
        match answered {
            Err(error) => self.refuse(Some(id), error).await,
            Ok(Answered::Later) => Ok(()),
            Ok(Answered::Listing(listing)) => self.reply_with(listing).await,
            Ok(Answered::Text(result)) => self.sender.send([&head(&id), &*result, "}"].concat()).await,
        }
    }

    /// Answers a call, or forwards it to the daemon.
    async fn dispatch(&mut self, id: &Id, method: Method, request: &Request) -> Result<Answered, RpcError> {
        let answer = match method {
            Method::SystemHello => self.hello(request).await.and_then(|result| encode(&result)),
            Method::SystemPing => encode(&OkResult::OK),
            Method::SystemSnapshot => {
                let (snapshot, reader) = self.app.daemon.hub.snapshot(&head(id));
                self.reader = Some(reader);
                return Ok(Answered::Listing(snapshot.sparse(self.is_sparse)));
            }
            Method::SystemAuthChallenge | Method::SystemAuthProve => Err(conflict("the connection is authenticated")),
            Method::SystemShutdown
            | Method::SiteAuthGet
            | Method::SiteAuthMatch
            | Method::LinkLoad
            | Method::LinkCommit => Err(RpcError::application(
                ErrorCode::Unsupported,
                "only the service itself may call this",
            )),
            Method::SelectionSubscribe => {
                self.subscription
                    .get_or_insert_with(|| self.app.subscribers.subscribe());
                // Answered by the daemon, so that tasks of later calls ask.
                return self.forward(id.clone(), method, request).await;
            }
            Method::SelectionUnsubscribe => {
                self.subscription = None;
                encode(&OkResult::OK)
            }
            _ if method.family() == MethodFamily::Link => return self.link(id, method, request),
            Method::TaskOpen => return self.open_file(id, request),
            _ if method.is_agents_own() => self.own(method, request).await,
            Method::TaskList => {
                let hub = self.app.daemon.known().await?;
                let list = hub.with_tasks(|daemon| daemon.list(head(id), "]}"));
                return Ok(Answered::Listing(list.sparse(self.is_sparse)));
            }
            _ => match read(&self.app.daemon, method, request).await? {
                Some(text) => return Ok(Answered::Text(text)),
                None => return self.forward(id.clone(), method, request).await,
            },
        };
        answer.map(Answered::Text)
    }

    async fn hello(&mut self, request: &Request) -> Result<HelloResult, RpcError> {
        if self.is_initialized {
            return Err(conflict("hello was said already"));
        }
        let hello: HelloParams = request.params()?;
        let range = hello.min_protocol_version..=hello.max_protocol_version;
        if !range.contains(&PROTOCOL_VERSION) || hello.requested_role != Role::Agent {
            let message = format!("this is an agent that speaks protocol {PROTOCOL_VERSION}");
            return Err(RpcError::application(ErrorCode::ProtocolIncompatible, message));
        }
        self.is_initialized = true;
        self.is_sparse = hello
            .capabilities
            .iter()
            .any(|known| known == capability::CLIENT_SPARSE);
        let opens = (self.app.opener.is_attached() && open::is_own_users(&self.app, self.origin.as_ref()).await)
            .then_some(capability::AGENT_OPENS_FILES);
        let capabilities = capabilities(self.app.listening.edition).chain(opens);
        Ok(HelloResult {
            role: Role::Agent,
            service_name: protocol::agent::CLIENT_NAME.to_owned(),
            service_version: self.app.version.to_string(),
            protocol_version: PROTOCOL_VERSION,
            instance_id: self.app.daemon.hub.epoch().to_owned(),
            capabilities: capabilities.map(str::to_owned).collect(),
        })
    }

    /// Sends a call to the daemon; the reply is awaited together with others.
    async fn forward(&mut self, id: Id, method: Method, request: &Request) -> Result<Answered, RpcError> {
        let is_slow = method.is_slow();
        if is_slow {
            self.check_slow_lane()?;
        }
        let begun = self
            .app
            .daemon
            .begin(method, request.params.as_ref())
            .await
            .map_err(RpcError::from)?;
        self.slow_calls += usize::from(is_slow);
        let hub = Arc::clone(&self.app.daemon.hub);
        self.calls.push(Box::pin(async move {
            let reply = Reply {
                id: Some(id),
                outcome: begun.finish(&hub).await.map_err(RpcError::from),
                sequence: None,
            };
            (reply, is_slow)
        }));
        Ok(Answered::Later)
    }

    /// Answers a slow call of the agent's own, whose reply is awaited together with others.
    fn answer_later(
        &mut self,
        id: &Id,
        answer: impl Future<Output = Result<Box<RawValue>, RpcError>> + Send + 'static,
    ) -> Result<Answered, RpcError> {
        self.check_slow_lane()?;
        self.slow_calls += 1;
        let id = id.clone();
        self.calls.push(Box::pin(async move {
            let reply = Reply {
                id: Some(id),
                outcome: answer.await,
                sequence: None,
            };
            (reply, true)
        }));
        Ok(Answered::Later)
    }

    fn check_slow_lane(&self) -> Result<(), RpcError> {
        if self.slow_calls < SLOW_LANE {
            return Ok(());
        }
        let message = "too many slow calls at once";
        Err(RpcError::application(ErrorCode::Unavailable, message))
    }

    /// Begins to open a file, for which the desktop may need seconds.
    fn open_file(&mut self, id: &Id, request: &Request) -> Result<Answered, RpcError> {
        let (app, origin, request) = (self.app.clone(), self.origin.clone(), request.clone());
        self.answer_later(id, async move {
            let params: OpenTaskParams = request.params()?;
            let is_own_user = open::is_own_users(&app, origin.as_ref()).await;
            open::open(&app, is_own_user, params).await?;
            let result = to_raw_value(&OkResult::OK);
            result.map_err(|error| RpcError::internal(error.to_string()))
        })
    }

    /// Begins a call of the device link, which may wait for another device.
    fn link(&mut self, id: &Id, method: Method, request: &Request) -> Result<Answered, RpcError> {
        let (app, request) = (self.app.clone(), request.clone());
        self.answer_later(id, async move { link::call(&app, method, &request).await })
    }

    /// Answers calls that the agent itself implements.
    async fn own(&mut self, method: Method, request: &Request) -> Result<String, RpcError> {
        let settings = &self.app.gate.settings;
        let listening = self.app.listening;
        match method {
            Method::GatewayGet => encode(&settings.current().status(listening)),
            Method::GatewaySchema => encode(&schema::schema(listening.edition)),
            Method::GatewayRevealToken => {
                let user_token = settings.current().key.as_ref().map(|key| key.expose().to_owned());
                let user_token = user_token.unwrap_or_default();
                encode(&RevealedToken { user_token })
            }
            Method::GatewayPatch => {
                let patch: GatewayPatch = request.params()?;
                let changed = settings.change(move |now| Ok(now.patched(listening, &patch)?)).await;
                let changed = changed.map_err(|error| not_changed(&error))?;
                self.key = changed.key_digest();
                encode(&changed.status(listening))
            }
            Method::PageTicket => {
                let ticket = session::ticket(&self.app.gate, Purpose::Page);
                encode(&ticket.map_err(|error| RpcError::internal(error.to_string()))?)
            }
            Method::PreferencesSchema => encode(&preference::schema(listening.edition)),
            Method::PreferencesGet => encode(&settings.current().preferences),
            Method::PreferencesPatch => {
                let patch: PreferencesPatch = request.params()?;
                let changed = settings.change(move |now| Ok(now.preferring(patch)?)).await;
                let changed = changed.map_err(|error| not_changed(&error))?;
                encode(&PreferencesPatched {
                    ok: true,
                    revision: changed.preferences.revision,
                })
            }
            Method::CaptureSubmit => {
                let CaptureSubmitParams { request, silent } = request.params()?;
                encode(&takeover::submit(&self.app, request, silent).await?)
            }
            Method::FindTasks => {
                let FindTasksParams { prefixes } = request.params()?;
                encode(&beginning_with(
                    &prefixes,
                    self.app.daemon.known().await?.with_tasks(Projection::ids),
                ))
            }
            Method::ShowRun => {
                let TaskIdParams { task_id } = request.params()?;
                encode(&self.app.daemon.known().await?.with_tasks(|daemon| daemon.run(&task_id)))
            }
            Method::CaptureList => encode(&self.app.pending.list()),
            Method::CaptureResolve => {
                let params: CaptureResolveParams = request.params()?;
                let CaptureResolveParams {
                    transaction_id,
                    accepted,
                    request,
                } = params;
                encode(&takeover::resolve(&self.app, &transaction_id, accepted, request).await?)
            }
            Method::ServiceRestart => restart(&self.app).await.and_then(|()| encode(&OkResult::OK)),
            _ => Err(RpcError::method_not_found(method.name())),
        }
    }
}

enum Answered {
    /// JSON of the result.
    Text(String),
    /// A whole reply, sent in pieces.
    Listing(Listing),
    /// The daemon will answer.
    Later,
}

/// Answers reads from the projection.
async fn read(daemon: &Daemon, method: Method, request: &Request) -> Result<Option<String>, RpcError> {
    let text = match method {
        Method::TaskGet => {
            let TaskIdParams { task_id } = request.params()?;
            let task = daemon.known().await?.with_tasks(|tasks| tasks.task(&task_id));
            task.ok_or_else(|| RpcError::application(ErrorCode::NotFound, "not found"))?
        }
        Method::QueueList => daemon.known().await?.with_tasks(|tasks| tasks.queues().to_owned()),
        Method::GroupList => daemon.known().await?.with_tasks(|tasks| tasks.groups().to_owned()),
        Method::PluginList => daemon.known().await?.with_tasks(|tasks| tasks.plugins().to_owned()),
        Method::ConfigGet => daemon.known().await?.with_tasks(|tasks| tasks.config().to_owned()),
        Method::SiteAuthList => daemon.known().await?.with_tasks(|tasks| tasks.sites().to_owned()),
        _ => return Ok(None),
    };
    Ok(Some(text))
}

/// Asks the program for a restart. It checks that it can before it agrees.
async fn restart(app: &App) -> Result<(), RpcError> {
    let Some(restarts) = &app.restarts else {
        let message = "this service is a part of another program; restart that one";
        return Err(RpcError::application(ErrorCode::Unsupported, message));
    };
    let (request, answer) = oneshot::channel();
    let is_sent = restarts.send(request).await.is_ok();
    match answer.await {
        Ok(answer) if is_sent => answer.map_err(|why| conflict(&why)),
        _ => Err(conflict("the service is ending")),
    }
}

/// What works through an agent of this edition: a drop-in has no plugins, and only a server hands files out.
fn capabilities(edition: Edition) -> impl Iterator<Item = &'static str> {
    let plugins = (edition != Edition::DropIn).then_some(capability::DAEMON_PLUGINS);
    let files = (edition == Edition::Headless).then_some(capability::DAEMON_FILES);
    let always = capability::DAEMON.iter().chain(capability::AGENT).copied();
    always.chain(plugins).chain(files)
}

/// The beginning of a reply, before its result.
fn head(id: &Id) -> String {
    let id = serde_json::to_string(id).expect("a number or a text always encodes");
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")
}

fn encode(result: &impl Serialize) -> Result<String, RpcError> {
    serde_json::to_string(result).map_err(|error| RpcError::internal(error.to_string()))
}

fn conflict(message: &str) -> RpcError {
    RpcError::application(ErrorCode::Conflict, message)
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
