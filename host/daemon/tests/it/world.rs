//! A daemon on a temporary directory, a transport that does what the URL's host says, and a client.

use std::{path::PathBuf, sync::Arc, time::Duration};

use daemon::{Config, Daemon};
use futures_util::{SinkExt as _, StreamExt as _};
use protocol::{
    Id, Method, Reply, RpcError, ServerFrame, ServiceEventParams,
    proof::{ProofRole, Token, nonce},
};
use serde_json::{Value, json};
use store::sql::Connection;
use support::{
    Answer,
    transport::{self, FakeTransport},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream},
    net::TcpStream,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest as _, protocol::WebSocketConfig},
};
use transfer::{Job, Progress};

/// How long anything may take before a test is called stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Runs of the host `finish` write ten bytes, those of any other report a speed and wait until they are stopped.
fn scripted() -> FakeTransport {
    FakeTransport::new(&["fake"], async |job: Job| {
        if transport::host(&job) == "finish" {
            return transport::finish(&job, b"0123456789").await;
        }
        job.reporter.progress(Progress {
            bytes_per_second: 7,
            ..Progress::default()
        });
        transport::wait_for_stop(&job).await
    })
}

pub(crate) struct World {
    pub(crate) root: tempfile::TempDir,
    pub(crate) daemon: Daemon,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap()).await
    }

    async fn at(root: tempfile::TempDir) -> Self {
        Self::started(root, |config| config).await
    }

    /// Starts a daemon with a changed configuration.
    pub(crate) async fn with(change: impl FnOnce(Config) -> Config) -> Self {
        Self::started(tempfile::tempdir().unwrap(), change).await
    }

    async fn started(root: tempfile::TempDir, change: impl FnOnce(Config) -> Config) -> Self {
        let config = Config::new(root.path().join("data"), root.path().join("downloads"));
        let config = change(config);
        let daemon = Daemon::start(config, vec![Arc::new(scripted())]).await.unwrap();
        Self { root, daemon }
    }

    pub(crate) async fn restart(self) -> Self {
        self.restart_with(|_| ()).await
    }

    /// As [`World::restart`], after `change` has edited the database.
    pub(crate) async fn restart_with(self, change: impl FnOnce(&Connection)) -> Self {
        timeout(PATIENCE, self.daemon.shutdown(PATIENCE / 2)).await.unwrap();
        change(&Connection::open(self.root.path().join("data").join("svc.db")).unwrap());
        Self::at(self.root).await
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.root.path().join("data").join(name)
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.daemon.port())).await.unwrap()
    }

    /// A socket that has proved nothing yet.
    pub(crate) async fn stranger(&self) -> Client<TcpStream> {
        Client::open(self.tcp().await, None).await
    }

    /// A client that has said hello over a real socket.
    pub(crate) async fn client(&self) -> Client<TcpStream> {
        let mut client = self.stranger().await;
        client.prove(self.daemon.token()).await;
        client.hello(&[]).await;
        client
    }

    /// A client that has said hello over a byte stream in memory.
    pub(crate) async fn memory_client(&self) -> Client<DuplexStream> {
        let mut client = Client::open(self.daemon.connect(), None).await;
        client.prove(self.daemon.token()).await;
        client.hello(&["client.sequences"]).await;
        client
    }

    /// Sends an HTTP request and reads the response to its end.
    pub(crate) async fn http(&self, head: &str, key: Option<&str>, body: &[u8]) -> (u16, String, Vec<u8>) {
        let mut stream = self.tcp().await;
        let key = key
            .map(|key| format!("Authorization: Bearer {key}\r\n"))
            .unwrap_or_default();
        let length = body.len();
        let request = format!("{head}\r\nHost: d\r\nConnection: close\r\n{key}Content-Length: {length}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        // A refusal may come, and the socket close, before all of a body is sent.
        let _refused_early = stream.write_all(body).await;
        let mut answer = Vec::new();
        let _reset_after_refusal = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        let answer = Answer::read(&answer).unwrap();
        (answer.status, answer.head.to_ascii_lowercase(), answer.body)
    }
}

/// How a connection ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended(pub(crate) Option<(u16, String)>);

pub(crate) struct Client<S> {
    socket: WebSocketStream<S>,
    next_id: i64,
    /// Events that came while a reply was waited for.
    pub(crate) events: Vec<ServiceEventParams>,
    pub(crate) credential: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn open(stream: S, key: Option<&str>) -> Self {
        let mut request = "ws://daemon/rpc".into_client_request().unwrap();
        if let Some(key) = key {
            let value = format!("Bearer {key}").parse().unwrap();
            request.headers_mut().insert("Authorization", value);
        }
        let config = WebSocketConfig::default().max_message_size(Some(protocol::MAX_REPLY_BYTES));
        let (socket, _) = client_async_with_config(request, stream, Some(config)).await.unwrap();
        Self {
            socket,
            next_id: 0,
            events: Vec::new(),
            credential: String::new(),
        }
    }

    pub(crate) async fn send(&mut self, message: Message) {
        self.socket.send(message).await.unwrap();
    }

    pub(crate) async fn send_text(&mut self, text: impl Into<String>) {
        self.send(Message::Text(text.into().into())).await;
    }

    /// The next frame as text, or how the connection ended.
    pub(crate) async fn receive(&mut self) -> Result<String, Ended> {
        loop {
            match timeout(PATIENCE, self.socket.next()).await.expect("the daemon answers") {
                Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
                Some(Ok(Message::Close(frame))) => {
                    return Err(Ended(frame.map(|frame| (frame.code.into(), frame.reason.to_string()))));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(Ended(None)),
            }
        }
    }

    pub(crate) async fn begin(&mut self, method: &str, params: Value) -> Id {
        self.next_id += 1;
        let id = Id::Number(self.next_id);
        let text = protocol::encode_request(&id, method, Some(&params)).unwrap();
        self.send_text(text).await;
        id
    }

    /// The next reply; events before it are kept.
    pub(crate) async fn reply(&mut self) -> Result<Reply, Ended> {
        loop {
            let text = self.receive().await?;
            match ServerFrame::read(&text).unwrap() {
                ServerFrame::Reply(reply) => return Ok(reply),
                ServerFrame::Event(event) => self.events.push(event),
                ServerFrame::Notification { method } => panic!("not an event: {method}"),
            }
        }
    }

    /// The next event, in order.
    pub(crate) async fn event(&mut self) -> Result<ServiceEventParams, Ended> {
        if !self.events.is_empty() {
            return Ok(self.events.remove(0));
        }
        let text = self.receive().await?;
        match ServerFrame::read(&text).unwrap() {
            ServerFrame::Event(event) => Ok(event),
            other => panic!("not an event: {other:?}"),
        }
    }

    pub(crate) async fn call(&mut self, method: Method, params: Value) -> Result<Value, RpcError> {
        self.full_call(method, params).await.0
    }

    /// The outcome and the sequence.
    pub(crate) async fn full_call(&mut self, method: Method, params: Value) -> (Result<Value, RpcError>, Option<u64>) {
        let id = self.begin(method.name(), params).await;
        let reply = self.reply().await.expect("the connection stays");
        assert_eq!(reply.id, Some(id));
        let outcome = reply.outcome.map(|result| serde_json::from_str(result.get()).unwrap());
        (outcome, reply.sequence)
    }

    pub(crate) async fn prove(&mut self, token: &Token) {
        let client = nonce().unwrap();
        let challenge = self
            .call(Method::SystemAuthChallenge, json!({"clientNonce": client}))
            .await
            .unwrap();
        let server = challenge["serverNonce"].as_str().unwrap();
        let proof = challenge["serverProof"].as_str().unwrap();
        assert!(token.verify(ProofRole::Daemon, &client, server, proof));
        let proof = token.prove(ProofRole::Agent, &client, server);
        let proved = self
            .call(Method::SystemAuthProve, json!({"clientProof": proof}))
            .await
            .unwrap();
        assert_eq!(proved, json!({"authenticated": true}));
        self.credential = token.prove(ProofRole::HttpCredential, &client, server);
    }

    pub(crate) async fn hello(&mut self, capabilities: &[&str]) -> Value {
        self.call(Method::SystemHello, hello(1, 1, capabilities)).await.unwrap()
    }

    /// The snapshot's sequence and the snapshot.
    pub(crate) async fn snapshot(&mut self) -> (u64, Value) {
        let mut result = self.call(Method::SystemSnapshot, json!({})).await.unwrap();
        let _is_complete: protocol::SnapshotResult = serde_json::from_value(result.clone()).unwrap();
        (result["sequence"].as_u64().unwrap(), result["body"]["snapshot"].take())
    }

    pub(crate) async fn create(&mut self, url: &str, is_paused: bool) -> String {
        let request = json!({"request": {"url": url, "startPaused": is_paused}});
        let made = self.call(Method::TaskCreate, request).await.unwrap();
        made["taskId"].as_str().unwrap().to_owned()
    }

    /// Waits for an event of this kind whose data `wanted` accepts.
    pub(crate) async fn until(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.event().await.expect("the connection stays").event.event;
            let data = serde_json::from_str(event.data.get()).unwrap();
            if event.kind == kind && wanted(&data) {
                return data;
            }
        }
    }
}

pub(crate) fn hello(least: u32, most: u32, capabilities: &[&str]) -> Value {
    json!({
        "clientName": "svc-agent",
        "clientVersion": "test",
        "minProtocolVersion": least,
        "maxProtocolVersion": most,
        "requestedRole": "daemon",
        "capabilities": capabilities,
    })
}
