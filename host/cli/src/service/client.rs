//! A connection to a service's `/rpc`: upgrade, handshake, sequential calls, and events in order.

use std::{sync::Arc, time::Duration};

use command::environment::Environment;
use futures_util::{SinkExt as _, StreamExt as _};
use http::{HeaderValue, StatusCode, header};
use protocol::{
    EventBody, HelloParams, HelloResult, Id, MAX_REPLY_BYTES, MAX_REQUEST_BYTES, Method, PROTOCOL_VERSION, Reply, Role,
    RpcError, ServerFrame,
    agent::AgentSnapshot,
    client::{Calls, Cursor, EncodeError, Step},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        error::ProtocolError,
        protocol::{CloseFrame, WebSocketConfig},
    },
};
use transfer::ByteCount;

use super::{
    RemoteError, ServiceArgs, Target,
    dial::{Stream, dial},
    http::{CLIENT, bearer, message},
};

/// How often an idle connection is pinged, and how long the service may take to answer.
const PING_EVERY: Duration = Duration::from_secs(25);
const PING_TIME: Duration = Duration::from_secs(10);

/// An established connection.
pub struct Client {
    pub(crate) target: Arc<Target>,
    socket: WebSocketStream<Stream>,
    calls: Calls,
    /// The version of the service.
    pub version: String,
    /// The position in the event sequence since the snapshot.
    cursor: Cursor,
    /// When the next ping is due, or the connection is given up.
    deadline: Instant,
    is_being_checked: bool,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// The state at one event.
#[derive(Deserialize)]
struct Snapshot {
    epoch: String,
    sequence: u64,
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    snapshot: AgentSnapshot,
}

#[derive(Serialize)]
struct Nothing {}

impl ServiceArgs {
    /// Connects to the service that the options select.
    pub(crate) async fn connect(&self, environment: &Environment) -> anyhow::Result<Client> {
        Ok(Client::connect(&self.target(environment)?).await?)
    }
}

impl Client {
    /// Connects and performs the handshake.
    pub async fn connect(target: &Target) -> Result<Self, RemoteError> {
        target.in_time(Self::open(Arc::new(target.clone()))).await
    }

    async fn open(target: Arc<Target>) -> Result<Self, RemoteError> {
        let address = &target.address;
        let stream = dial(address, &target.trust).await?;
        let mut request = format!("ws://{}{}", address.authority(), address.path("/rpc"))
            .into_client_request()
            .expect("an address has a host and a path that fit into a request");
        let headers = request.headers_mut();
        headers.insert(header::AUTHORIZATION, bearer(&target)?);
        headers.insert(header::USER_AGENT, HeaderValue::from_static(CLIENT));
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_REPLY_BYTES))
            .max_frame_size(Some(MAX_REPLY_BYTES));
        let upgraded = client_async_with_config(request, stream, Some(config)).await;
        let (socket, _) = upgraded.map_err(|error| not_upgraded(&target, error))?;
        let mut client = Self {
            target,
            socket,
            calls: Calls::default(),
            version: String::new(),
            cursor: Cursor::default(),
            deadline: Instant::now() + PING_EVERY,
            is_being_checked: false,
        };
        let hello = HelloParams {
            client_name: "svc".to_owned(),
            client_version: env!("CARGO_PKG_VERSION").to_owned(),
            min_protocol_version: PROTOCOL_VERSION,
            max_protocol_version: PROTOCOL_VERSION,
            requested_role: Role::Agent,
            capabilities: Vec::new(),
        };
        let answer = client.exchange(Method::SystemHello, encoded(&hello)?).await?;
        let HelloResult { service_version, .. } = decoded(&answer)?;
        client.version = service_version;
        Ok(client)
    }

    /// Calls a method without parameters.
    pub async fn ask<R: DeserializeOwned>(&mut self, method: Method) -> Result<R, RemoteError> {
        self.call(method, &Nothing {}).await
    }

    /// Calls a method; events that arrive before the reply are dropped.
    pub async fn call<R: DeserializeOwned>(
        &mut self,
        method: Method,
        params: &impl Serialize,
    ) -> Result<R, RemoteError> {
        let params = encoded(params)?;
        decoded(&self.called(method, params).await?)
    }

    /// Like [`Client::call`], for any method: what waits is there once, and not for each record.
    async fn called(&mut self, method: Method, params: Box<RawValue>) -> Result<Box<RawValue>, RemoteError> {
        let target = Arc::clone(&self.target);
        target.in_time_for(method, self.exchange(method, params)).await
    }

    /// Fetches the current state; [`Client::event`] returns the changes from here on.
    pub async fn snapshot(&mut self) -> Result<AgentSnapshot, RemoteError> {
        let snapshot: Snapshot = self.ask(Method::SystemSnapshot).await?;
        self.cursor = Cursor::at(snapshot.epoch, snapshot.sequence);
        Ok(snapshot.body.snapshot)
    }

    /// The next event after the snapshot; none if events were missed, so that a new snapshot is needed. Cancel-safe.
    pub(crate) async fn event(&mut self) -> Result<Option<EventBody>, RemoteError> {
        loop {
            let ServerFrame::Event(event) = self.frame_or_check().await? else {
                continue;
            };
            match self.cursor.take(&event.epoch, event.sequence) {
                Step::Next => return Ok(Some(event.event.event)),
                Step::Old => {}
                Step::Gap => return Ok(None),
            }
        }
    }

    /// Sends a call and waits for its reply. Events received meanwhile are dropped: commands that follow events make no
    /// calls.
    async fn exchange(&mut self, method: Method, params: Box<RawValue>) -> Result<Box<RawValue>, RemoteError> {
        let id = self.send(method, &params).await?;
        loop {
            if let ServerFrame::Reply(Reply {
                id: answered, outcome, ..
            }) = self.frame().await?
                && answered.as_ref() == Some(&id)
            {
                return Ok(outcome?);
            }
        }
    }

    async fn send(&mut self, method: Method, params: &RawValue) -> Result<Id, RemoteError> {
        let (id, text) = self.calls.encode(method, Some(&params)).map_err(|error| match error {
            EncodeError::Params(error) => error,
            EncodeError::TooLarge => RpcError::invalid_params(format!(
                "this is more than a service takes at once ({})",
                ByteCount(MAX_REQUEST_BYTES as u64)
            )),
        })?;
        let sent = self.socket.send(Message::text(text)).await;
        sent.map_err(|error| self.broken(error)).map(|()| id)
    }

    /// Like [`Client::frame`], and pings an idle connection.
    async fn frame_or_check(&mut self) -> Result<ServerFrame, RemoteError> {
        loop {
            if let Ok(frame) = tokio::time::timeout_at(self.deadline, self.frame()).await {
                return frame;
            }
            if self.is_being_checked {
                return Err(RemoteError::Silent {
                    address: self.target.address.to_string(),
                    limit: PING_TIME,
                });
            }
            self.is_being_checked = true;
            self.deadline = Instant::now() + PING_TIME;
            let nothing = encoded(&Nothing {})?;
            self.send(Method::SystemPing, &nothing).await?;
        }
    }

    async fn frame(&mut self) -> Result<ServerFrame, RemoteError> {
        loop {
            let message = self.socket.next().await;
            self.deadline = Instant::now() + PING_EVERY;
            self.is_being_checked = false;
            match message {
                Some(Ok(Message::Text(text))) => return Ok(ServerFrame::read(&text)?),
                Some(Ok(Message::Close(frame))) => return Err(self.closed(frame)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(self.broken(error)),
                None => return Err(self.closed(None)),
            }
        }
    }

    fn closed(&self, frame: Option<CloseFrame>) -> RemoteError {
        RemoteError::Closed {
            address: self.target.address.to_string(),
            code: frame.as_ref().map(|frame| frame.code.into()),
            reason: frame
                .map(|frame| frame.reason.to_string())
                .filter(|reason| !reason.is_empty()),
        }
    }

    fn broken(&self, error: tungstenite::Error) -> RemoteError {
        match error {
            tungstenite::Error::Io(source) => RemoteError::Unreachable {
                address: self.target.address.to_string(),
                source,
            },
            tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => self.closed(None),
            other => RemoteError::Closed {
                address: self.target.address.to_string(),
                code: None,
                reason: Some(other.to_string()),
            },
        }
    }
}

fn not_upgraded(target: &Target, error: tungstenite::Error) -> RemoteError {
    let address = target.address.to_string();
    match error {
        tungstenite::Error::Io(source) => RemoteError::Unreachable { address, source },
        tungstenite::Error::Protocol(ProtocolError::HandshakeIncomplete) => RemoteError::Closed {
            address,
            code: None,
            reason: None,
        },
        tungstenite::Error::Http(response) => match response.status() {
            StatusCode::UNAUTHORIZED => RemoteError::WrongKey { address },
            status if status == StatusCode::NOT_FOUND || status.as_u16() < 400 => RemoteError::Foreign {
                address,
                found: format!("/rpc answers HTTP {status}"),
            },
            status => RemoteError::Refused {
                address,
                status: status.as_u16(),
                message: message(response.body().as_deref().unwrap_or_default(), status),
            },
        },
        other => RemoteError::Foreign {
            address,
            found: other.to_string(),
        },
    }
}

fn encoded(params: &impl Serialize) -> Result<Box<RawValue>, RemoteError> {
    to_raw_value(params).map_err(|error| RpcError::invalid_params(error.to_string()).into())
}

fn decoded<R: DeserializeOwned>(result: &RawValue) -> Result<R, RemoteError> {
    serde_json::from_str(result.get()).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(why: &str) -> RemoteError {
    RpcError::internal(format!("the service's answer cannot be read: {why}")).into()
}
