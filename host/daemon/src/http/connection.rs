//! One `/rpc` connection: proof, hello, then concurrent calls, answered as they finish. Calls that are not slow reach
//! the engine in the order of their frames.

use std::{
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use admission::ConnectionSlot;
use futures_util::{
    FutureExt as _, StreamExt as _,
    stream::{FuturesUnordered, SplitSink, SplitStream},
};
use protocol::{
    ErrorCode, HelloParams, HelloResult, Id, MAX_REQUEST_BYTES, Method, OkResult, PROTOCOL_VERSION, Reply, Request,
    Role, RpcError, SLOW_LANE, agent, capability, close, proof::ProveResult,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, mpsc, oneshot},
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{Role as Side, WebSocketConfig},
    },
};
use tokio_util::sync::CancellationToken;
use transfer::ByteCount;

use crate::{
    call::answer::{Answer, Peer},
    http::writer::{Outgoing, Writer},
    hub::ask::Ended,
    service::{
        Service,
        access::{Credential, Handshake, Step},
    },
};

/// Calls that one connection may have in flight; more wait in the socket. The number is high so that one commit to disk
/// covers many writes.
const MAX_IN_FLIGHT: usize = 1024;

/// Replies queued for the socket.
const OUTGOING_BACKLOG: usize = 256;

const PROOF_TIMEOUT: Duration = Duration::from_secs(10);

/// For the peer to answer a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Frames up to this size are refused with an error; larger ones close the socket at once.
const HARD_FRAME_BYTES: usize = 2 * MAX_REQUEST_BYTES;

/// Read and write buffer of one socket. Small, because connections are many and mostly idle.
const BUFFER_BYTES: usize = 16 * 1024;

type Calls<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Option<Outgoing>> + Send + 'a>>>;

/// Serves an upgraded socket until either side ends it. `is_known` says that the upgrade carried the token.
pub(crate) async fn serve<S>(service: Arc<Service>, io: S, is_known: bool, slot: Arc<ConnectionSlot<()>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(Some(HARD_FRAME_BYTES))
        .max_frame_size(Some(HARD_FRAME_BYTES));
    let socket = WebSocketStream::from_raw_socket(io, Side::Server, Some(config)).await;
    let (sink, stream) = socket.split();
    service.connections.fetch_add(1, Ordering::Relaxed);
    Connection {
        service: Arc::clone(&service),
        stream,
        has_said_hello: false,
        peer: Peer::default(),
        slot,
        reported_overdraft: false,
    }
    .run(sink, is_known)
    .await;
    service.connections.fetch_sub(1, Ordering::Relaxed);
}

struct Connection<S> {
    service: Arc<Service>,
    stream: SplitStream<WebSocketStream<S>>,
    has_said_hello: bool,
    peer: Peer,
    slot: Arc<ConnectionSlot<()>>,
    reported_overdraft: bool,
}

enum Incoming {
    /// A request, or why the frame is not one.
    Request(Result<Request, RpcError>),
    /// A violation that ends the connection: the error reply, then the close code and reason.
    Refused(RpcError, u16, &'static str),
    Gone,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Connection<S> {
    async fn run(mut self, sink: SplitSink<WebSocketStream<S>, Message>, is_known: bool) {
        let (outgoing, receiver) = mpsc::channel(OUTGOING_BACKLOG);
        let stop = self.service.stop.child_token();
        let writer = Writer {
            sink,
            ring: Arc::clone(self.service.hub.ring()),
            outgoing: receiver,
            cursor: None,
            stop: stop.clone(),
        };
        let reading = async {
            let session = if is_known {
                None
            } else {
                match timeout(PROOF_TIMEOUT, self.prove(&outgoing)).await {
                    Ok(Some(session)) => {
                        self.slot.authenticate();
                        Some(session)
                    }
                    Ok(None) => return self.await_close(outgoing).await,
                    Err(_) => {
                        refuse(
                            &outgoing,
                            None,
                            crate::service::access::unauthorized("no proof came in time"),
                        )
                        .await;
                        close(&outgoing, close::UNAUTHORIZED, close::UNAUTHORIZED_REASON).await;
                        return self.await_close(outgoing).await;
                    }
                }
            };
            self.serve_calls(&outgoing, &stop).await;
            drop(session);
            self.await_close(outgoing).await;
        };
        // Either half ends the other: without the writer there are no replies, without the reader no requests.
        tokio::pin!(reading);
        let writing = writer.run();
        tokio::pin!(writing);
        tokio::select! {
            () = &mut reading => writing.await,
            () = &mut writing => drop(timeout(CLOSE_TIMEOUT, reading).await),
        }
    }

    /// Runs the proof. `None` if it failed; the error reply is already queued then.
    async fn prove(&mut self, outgoing: &mpsc::Sender<Outgoing>) -> Option<Credential> {
        let mut handshake = Handshake::default();
        loop {
            let unauthorized = (close::UNAUTHORIZED, close::UNAUTHORIZED_REASON);
            let (id, error, (code, reason)) = match self.next().await {
                Incoming::Request(Ok(request)) => match self.prove_step(&mut handshake, &request) {
                    Ok((reply, session)) => {
                        let _gone = outgoing.send(Outgoing::Reply(reply.encode().into(), None)).await;
                        match session {
                            Some(session) => return Some(session),
                            None => continue,
                        }
                    }
                    Err(error) => (request.id, error, unauthorized),
                },
                Incoming::Request(Err(error)) => (None, error, unauthorized),
                Incoming::Refused(error, code, reason) => (None, error, (code, reason)),
                Incoming::Gone => return None,
            };
            refuse(outgoing, id, error).await;
            close(outgoing, code, reason).await;
            return None;
        }
    }

    fn prove_step(
        &self,
        handshake: &mut Handshake,
        request: &Request,
    ) -> Result<(Reply, Option<Credential>), RpcError> {
        let id = request
            .id
            .clone()
            .ok_or_else(|| RpcError::invalid_request("the proof needs an id"))?;
        match handshake.step(&self.service.access, request)? {
            Step::Challenged(result) => Ok((Reply::success(id, &result)?, None)),
            Step::Proved(session) => {
                let result = ProveResult { authenticated: true };
                Ok((Reply::success(id, &result)?, Some(session)))
            }
        }
    }

    /// Reads and executes calls until either side closes.
    async fn serve_calls(&mut self, outgoing: &mpsc::Sender<Outgoing>, stop: &CancellationToken) {
        let slow = Arc::new(Semaphore::new(SLOW_LANE));
        let mut calls = Calls::new();
        // A set of futures yields to the runtime whenever it has polled as many as it has. With one call in flight that
        // is every time, and each yield wakes another thread. So the set has one more, which is pending until the end.
        let (open, ended) = oneshot::channel::<()>();
        calls.push(ended.map(|_| None).boxed());
        loop {
            let is_full = calls.len() > MAX_IN_FLIGHT;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = calls.next() => {
                    let Some(done) = done else { continue };
                    if outgoing.send(done).await.is_err() {
                        break;
                    }
                }
                incoming = self.next(), if !is_full => match incoming {
                    Incoming::Request(Ok(request)) => calls.extend(self.begin(request, &slow)),
                    Incoming::Request(Err(error)) => refuse(outgoing, None, error).await,
                    Incoming::Refused(error, code, reason) => {
                        refuse(outgoing, None, error).await;
                        close(outgoing, code, reason).await;
                        break;
                    }
                    Incoming::Gone => break,
                },
            }
        }
        drop(open);
        // Calls in flight still take effect; only their replies may be lost.
        while let Some(done) = calls.next().await {
            if let Some(done) = done {
                let _gone = outgoing.try_send(done);
            }
        }
    }

    /// Waits for the peer's close frame: dropping the socket earlier could discard ours before it is read.
    async fn await_close(&mut self, outgoing: mpsc::Sender<Outgoing>) {
        drop(outgoing);
        let silence = async { while !matches!(self.next().await, Incoming::Gone) {} };
        let _out_of_patience = timeout(CLOSE_TIMEOUT, silence).await;
    }

    async fn next(&mut self) -> Incoming {
        loop {
            return match self.stream.next().await {
                Some(Ok(Message::Text(text))) if text.len() >= MAX_REQUEST_BYTES => frame_too_large(),
                Some(Ok(Message::Text(text))) => Incoming::Request(Request::read(&text)),
                Some(Ok(Message::Binary(_))) => Incoming::Refused(
                    RpcError::invalid_request("a frame is text"),
                    close::UNSUPPORTED,
                    "binary-frame",
                ),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Err(Error::Capacity(_))) => frame_too_large(),
                // Before its proof a client may send less than a frame. Report the violation once.
                Some(Err(_)) if self.slot.is_overdrawn() && !std::mem::replace(&mut self.reported_overdraft, true) => {
                    frame_too_large()
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => Incoming::Gone,
            };
        }
    }

    /// Starts a call. Polls each call once at once, so that calls that are not slow reach the engine in order.
    fn begin<'a>(
        &mut self,
        request: Request,
        slow: &Arc<Semaphore>,
    ) -> Option<Pin<Box<dyn Future<Output = Option<Outgoing>> + Send + 'a>>> {
        let id = request.id.clone();
        let at_once = |outcome: Result<Reply, RpcError>| {
            let id = id.clone();
            let reply = outcome.unwrap_or_else(|error| Reply::failure(id, error));
            let outgoing = reply.id.is_some().then(|| Outgoing::Reply(reply.encode().into(), None));
            Some(std::future::ready(outgoing).boxed())
        };
        let Some(method) = Method::parse(&request.method).filter(|method| !method.is_agents_own()) else {
            return at_once(Err(RpcError::method_not_found(&request.method)));
        };
        match method {
            Method::SystemHello => {
                let result = self.hello(&request);
                return at_once(result.and_then(|result| {
                    let id = id
                        .clone()
                        .ok_or_else(|| RpcError::invalid_request("hello needs an id"))?;
                    Reply::success(id, &result)
                }));
            }
            Method::SystemAuthChallenge | Method::SystemAuthProve => {
                return at_once(Err(conflict("this connection is authenticated already")));
            }
            Method::SystemPing => {
                return at_once(id.clone().map_or_else(
                    || Err(RpcError::invalid_request("ping needs an id")),
                    |id| Reply::success(id, &OkResult::OK),
                ));
            }
            Method::SystemShutdown => {}
            _ if !self.has_said_hello => return at_once(Err(conflict("say system.hello first"))),
            _ => {}
        }
        // All users of an agent preview and log in over one connection; plugins bound how many calls there are at once.
        let has_own_limit = matches!(method, Method::GroupResolvePreview | Method::PluginAuth);
        let permit = if method.is_slow() && !has_own_limit {
            let Ok(permit) = Arc::clone(slow).try_acquire_owned() else {
                let message = format!("{SLOW_LANE} slow calls are in flight on this connection; try again");
                return at_once(Err(RpcError::application(ErrorCode::Unavailable, message)));
            };
            Some(permit)
        } else {
            None
        };
        let service = Arc::clone(&self.service);
        let peer = self.peer.clone();
        Some(
            async move {
                let outcome = guarded(method, service.call(method, &request, &peer)).await;
                drop(permit);
                finish(&service, request.id, outcome, &peer).await
            }
            .boxed(),
        )
    }

    fn hello(&mut self, request: &Request) -> Result<HelloResult, RpcError> {
        if self.has_said_hello {
            return Err(conflict("hello was said already"));
        }
        let params: HelloParams = request.params()?;
        let offered = params.min_protocol_version..=params.max_protocol_version;
        if !offered.contains(&PROTOCOL_VERSION) {
            let message = format!(
                "this daemon ({}) speaks protocol {PROTOCOL_VERSION}, {} ({}) speaks {} to {}; run the same version of both",
                self.service.version,
                params.client_name,
                params.client_version,
                params.min_protocol_version,
                params.max_protocol_version
            );
            return Err(RpcError::application(ErrorCode::ProtocolIncompatible, message));
        }
        if params.requested_role != Role::Daemon {
            return Err(
                RpcError::application(ErrorCode::InvalidArgument, "this is a daemon; an agent was asked for")
                    .with_field("requestedRole"),
            );
        }
        self.has_said_hello = true;
        self.peer = Peer {
            is_local_agent: params.client_name == agent::CLIENT_NAME,
            wants_sequences: params
                .capabilities
                .iter()
                .any(|name| name == capability::CLIENT_SEQUENCES),
            listener: Some(Arc::new(self.service.selections.listener())),
        };
        Ok(HelloResult {
            role: Role::Daemon,
            service_name: "svc-daemon".to_owned(),
            service_version: self.service.version.to_string(),
            protocol_version: PROTOCOL_VERSION,
            instance_id: self.service.hub.epoch().to_owned(),
            capabilities: self.capabilities().map(ToString::to_string).collect(),
        })
    }

    fn capabilities(&self) -> impl Iterator<Item = &'static str> {
        let plugins = self.service.plugins.is_some().then_some(capability::DAEMON_PLUGINS);
        let others = [capability::DAEMON_FILES, capability::DAEMON_SEQUENCES];
        capability::DAEMON.iter().copied().chain(others).chain(plugins)
    }
}

fn conflict(message: &str) -> RpcError {
    RpcError::application(ErrorCode::Conflict, message)
}

fn frame_too_large() -> Incoming {
    let message = format!("a frame is smaller than {}", ByteCount(MAX_REQUEST_BYTES as u64));
    Incoming::Refused(RpcError::invalid_request(message), close::TOO_BIG, "frame-too-big")
}

/// A panic in one call fails that call and no other.
async fn guarded(method: Method, call: impl Future<Output = Result<Answer, RpcError>>) -> Result<Answer, RpcError> {
    AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(method = method.name(), "a call panicked");
        Err(RpcError::internal(
            "a defect of this program ended the call; please report it",
        ))
    })
}

/// The reply to a call, and the event sequence after which it may be sent.
async fn finish(service: &Service, id: Option<Id>, outcome: Result<Answer, RpcError>, peer: &Peer) -> Option<Outgoing> {
    let outcome = match outcome {
        Ok(Answer::Streamed(streamed, sequence)) => {
            let id = id?;
            return Some(Outgoing::Streamed(streamed.for_reply(&id), sequence));
        }
        Ok(Answer::Read(result)) => Ok((result, None)),
        Ok(Answer::Wrote(result)) => match service.hub.sequence_of_now().await {
            Ok(sequence) => Ok((result, Some(sequence))),
            // The service is shutting down; the write itself is on disk.
            Err(Ended) => Ok((result, None)),
        },
        Ok(Answer::Stop(result)) => {
            service.ask_to_stop();
            Ok((result, None))
        }
        Err(error) => Err(error),
    };
    let id = id?;
    let (reply, after) = match outcome {
        Ok((result, after)) => {
            let reply = Reply {
                id: Some(id),
                outcome: Ok(result),
                sequence: after.filter(|_| peer.wants_sequences),
            };
            (reply, after)
        }
        Err(error) => (Reply::failure(Some(id), error), None),
    };
    Some(Outgoing::Reply(reply.encode().into(), after))
}

async fn refuse(outgoing: &mpsc::Sender<Outgoing>, id: Option<Id>, error: RpcError) {
    let text = Reply::failure(id, error).encode().into();
    let _gone = outgoing.send(Outgoing::Reply(text, None)).await;
}

async fn close(outgoing: &mpsc::Sender<Outgoing>, code: u16, reason: &'static str) {
    let _gone = outgoing.send(Outgoing::Close(code, reason)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_panics_is_answered_as_internal() {
        let error = guarded(Method::FsList, async { panic!("on purpose") })
            .await
            .unwrap_err();
        assert_eq!(error.code, protocol::code::INTERNAL);
    }
}
