//! An agent and its daemon in one process, and a simple HTTP client.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use agent::{AccessKey, Agent, ByteStream, Config, Connect, ConnectError, Edition, Found, PresetKey};
use daemon::{Connector, Daemon};
use futures_util::future::BoxFuture;
pub(crate) use support::Answer;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use tokio_util::task::TaskTracker;

use crate::{
    document,
    middleman::{self, Loses},
    scripted::Scripted,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const KEY: &str = "the-access-key-1";

/// Connects to the current daemon of this process, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Near {
    daemon: Arc<Mutex<Option<(Found, Connector)>>>,
    middleman: Arc<OnceLock<Loses>>,
    /// Owns the relays.
    tracker: TaskTracker,
}

impl Near {
    fn set(&self, daemon: Option<&Daemon>) {
        let found = |daemon: &Daemon| Found {
            token: daemon.token().clone(),
            port: daemon.port(),
        };
        *self.daemon.lock().unwrap() = daemon.map(|daemon| (found(daemon), daemon.connector()));
    }
}

impl Connect for Near {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        let missing = || ConnectError {
            message: "there is no daemon".to_owned(),
            source: None,
        };
        let found = self.daemon.lock().unwrap().as_ref().map(|(found, _)| found.clone());
        Box::pin(async move { found.ok_or_else(missing) })
    }

    fn dial<'a>(&'a self, _: &'a Found) -> BoxFuture<'a, std::io::Result<Box<dyn ByteStream>>> {
        let connector = self
            .daemon
            .lock()
            .unwrap()
            .as_ref()
            .map(|(_, connector)| connector.clone());
        Box::pin(async move {
            let connector = connector.ok_or(std::io::ErrorKind::ConnectionRefused)?;
            let stream = match self.middleman.get() {
                Some(loses) => middleman::connect(&connector, loses, &self.tracker),
                None => connector.connect(),
            };
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}

pub(crate) struct World {
    edition: Edition,
    pub(crate) agent: Agent,
    daemon: Option<Daemon>,
    near: Near,
    root: tempfile::TempDir,
}

/// [`KEY`] as a configured key.
pub(crate) fn preset() -> PresetKey {
    PresetKey::Forced(AccessKey::new(KEY).unwrap())
}

impl World {
    /// A headless server with a key, and its daemon.
    pub(crate) async fn new() -> Self {
        Self::with_daemon(|_| {}).await
    }

    /// A headless server with a key, changed by `change`, and its daemon.
    pub(crate) async fn with_daemon(change: impl FnOnce(&mut Config)) -> Self {
        let mut world = Self::without_daemon(|config| {
            config.preset_key = Some(preset());
            change(config);
        })
        .await;
        world.start_daemon().await;
        world
    }

    /// A headless server, changed by `change`, without a daemon.
    pub(crate) async fn without_daemon(change: impl FnOnce(&mut Config)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = Config::new(Edition::Headless, root.path().join("data/agent"));
        config.bind = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut config);
        let near = Near::default();
        let edition = config.edition;
        let agent = Agent::start(config, near.clone()).await.unwrap();
        Self {
            edition,
            agent,
            daemon: None,
            near,
            root,
        }
    }

    /// An agent without a daemon.
    pub(crate) async fn alone(edition: Edition, key: Option<&str>) -> Self {
        let key = key.map(|key| PresetKey::Forced(AccessKey::new(key).unwrap()));
        Self::without_daemon(|config| {
            config.edition = edition;
            config.preset_key = key;
        })
        .await
    }

    /// Routes further connections to the daemon through a relay that drops an event on demand.
    pub(crate) fn through_a_middleman(&self) -> Loses {
        Arc::clone(self.near.middleman.get_or_init(Loses::default))
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().unwrap()
    }

    /// Starts the daemon on its existing data, if any, and waits until the agent is connected.
    pub(crate) async fn start_daemon(&mut self) {
        self.run_daemon().await;
        self.until(true).await;
    }

    /// Starts the daemon.
    pub(crate) async fn run_daemon(&mut self) {
        let transport = transfer_http::HttpTransport::new(transfer_http::Config::default()).unwrap();
        let mut data = daemon::Config::new(self.root.path().join("data"), self.downloads());
        data.plugins = Some(Arc::new(Scripted));
        let mut torrents = transfer_torrent::Config::new(self.root.path().join("data/torrents")).unwrap();
        torrents.settings.addresses = vec![std::net::Ipv4Addr::LOCALHOST.into()];
        data.torrents = Some(torrents);
        let daemon = Daemon::start(data, vec![Arc::new(transport)]).await.unwrap();
        self.near.set(Some(&daemon));
        self.daemon = Some(daemon);
    }

    /// Shuts the daemon down and waits until the agent has noticed.
    pub(crate) async fn end_daemon(&mut self) {
        self.near.set(None);
        let daemon = self.daemon.take().unwrap();
        timeout(PATIENCE, daemon.shutdown(Duration::from_secs(1)))
            .await
            .unwrap();
        self.until(false).await;
    }

    async fn until(&self, is_connected: bool) {
        let told = async {
            while self.agent.is_connected() != is_connected {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, told).await.unwrap();
    }

    /// The agent's address on the loopback.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.agent.local_addr().port()))
    }

    /// The agent's own directory.
    pub(crate) fn directory(&self) -> std::path::PathBuf {
        self.root.path().join("data/agent")
    }

    pub(crate) fn downloads(&self) -> std::path::PathBuf {
        self.root.path().join("downloads")
    }

    /// Sends a request with these headers. Checks that the description lists the response.
    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Answer {
        let body = body.as_ref();
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        let own = self.address().to_string();
        let mut lines = vec![format!("{line} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            lines.push(format!("Host: {own}"));
        }
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push(format!("Content-Length: {}\r\n\r\n", body.len()));
        let request = [lines.join("\r\n").as_bytes(), body].concat();
        // The server may answer and close the connection before it has read the body.
        let _refused_early = stream.write_all(&request).await;
        let begun = Begun {
            stream,
            read: Vec::new(),
        };
        let answer = begun.finish().await;
        // A drop-in has no description.
        if self.edition != Edition::DropIn {
            document::check(line, answer.status);
        }
        answer
    }

    /// Asks for a WebSocket; the status of the answer.
    pub(crate) async fn upgrade(&self, path: &str, headers: &[(&str, &str)]) -> u16 {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        let mut lines = vec![
            format!("GET {path} HTTP/1.1"),
            "Connection: Upgrade".to_owned(),
            "Upgrade: websocket".to_owned(),
            "Sec-WebSocket-Version: 13".to_owned(),
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==".to_owned(),
        ];
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push("\r\n".to_owned());
        stream.write_all(lines.join("\r\n").as_bytes()).await.unwrap();
        let mut begun = Begun {
            stream,
            read: Vec::new(),
        };
        begun.wait_for_its_head().await;
        begun.status()
    }

    /// Sends a request with the key, without reading the response.
    pub(crate) async fn begin(&self, line: &str) -> Begun {
        let mut stream = TcpStream::connect(self.address()).await.unwrap();
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {KEY}\r\n\r\n",
            self.address()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let read = Vec::new();
        Begun { stream, read }
    }

    /// Sends a request with the key.
    pub(crate) async fn ask(&self, line: &str, body: impl AsRef<[u8]>) -> Answer {
        let key = format!("Bearer {KEY}");
        self.send(line, &[("Authorization", &key)], body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "").await
    }

    pub(crate) async fn end(self) {
        self.end_within(Duration::from_secs(1)).await;
    }

    pub(crate) async fn end_within(self, grace: Duration) {
        timeout(PATIENCE, self.agent.shutdown_keeping_daemon(grace))
            .await
            .unwrap();
        if let Some(daemon) = self.daemon {
            timeout(PATIENCE, daemon.shutdown(Duration::from_secs(1)))
                .await
                .unwrap();
        }
        self.near.tracker.close();
        timeout(PATIENCE, self.near.tracker.wait()).await.unwrap();
    }
}

/// A request whose response was not read yet.
pub(crate) struct Begun {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Begun {
    pub(crate) async fn wait_for_its_head(&mut self) {
        while !self.read.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await;
            assert_ne!(read.unwrap().unwrap(), 0);
        }
    }

    /// The status, once there is a head.
    pub(crate) fn status(&self) -> u16 {
        Answer::read(&self.read).unwrap().status
    }

    pub(crate) async fn finish(mut self) -> Answer {
        let read = self.stream.read_to_end(&mut self.read);
        let _reset_after_refusal = timeout(PATIENCE, read).await.unwrap();
        Answer::read(&self.read).unwrap()
    }
}
