//! An agent and its daemon in one process, and a plain HTTP client.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use agent::{AccessKey, Agent, ByteStream, Config, Connect, ConnectError, Found, Host, PresetKey};
use daemon::{Connector, Daemon};
use futures_util::future::BoxFuture;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const KEY: &str = "the-access-key-1";

/// Reaches a daemon in this process; with none, there is none to be found.
pub(crate) struct Near(Option<(Found, Connector)>);

impl Connect for Near {
    fn find(&self) -> BoxFuture<'_, Result<Found, ConnectError>> {
        let missing = || ConnectError {
            message: "there is no daemon".to_owned(),
            source: None,
        };
        let found = self.0.as_ref().map(|(found, _)| found.clone());
        Box::pin(async move { found.ok_or_else(missing) })
    }

    fn dial<'a>(&'a self, _: &'a Found) -> BoxFuture<'a, std::io::Result<Box<dyn ByteStream>>> {
        Box::pin(async {
            let (_, connector) = self.0.as_ref().expect("it was found");
            Ok(Box::new(connector.connect()) as Box<dyn ByteStream>)
        })
    }
}

pub(crate) struct World {
    pub(crate) agent: Agent,
    daemon: Option<Daemon>,
    root: tempfile::TempDir,
}

/// What a request is answered with.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

fn config(root: &tempfile::TempDir, host: Host) -> Config {
    let mut config = Config::new(host, root.path().join("data/agent"));
    config.bind = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config
}

impl World {
    /// A headless server with a key, and its daemon.
    pub(crate) async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let transport = transfer_http::HttpTransport::new(transfer_http::Config::default()).unwrap();
        let data = daemon::Config::new(root.path().join("data"), root.path().join("downloads"));
        let daemon = Daemon::start(data, vec![Arc::new(transport)]).await.unwrap();
        let found = Found {
            token: daemon.token().clone(),
            port: daemon.port(),
        };
        let near = Near(Some((found, daemon.connector())));
        let mut config = config(&root, Host::Headless);
        config.preset_key = Some(PresetKey::Initial(AccessKey::new(KEY).unwrap()));
        let agent = Agent::start(config, near).await.unwrap();
        let world = Self {
            agent,
            daemon: Some(daemon),
            root,
        };
        world.connected().await;
        world
    }

    /// A host whose daemon is still to come.
    pub(crate) async fn alone(host: Host, key: Option<&str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = config(&root, host);
        config.preset_key = key.map(|key| PresetKey::Forced(AccessKey::new(key).unwrap()));
        let agent = Agent::start(config, Near(None)).await.unwrap();
        Self {
            agent,
            daemon: None,
            root,
        }
    }

    async fn connected(&self) {
        let connected = async {
            while self.get("/api/v1/tasks").await.status != 200 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, connected).await.unwrap();
    }

    pub(crate) fn downloads(&self) -> std::path::PathBuf {
        self.root.path().join("downloads")
    }

    /// Sends a request with these header lines.
    pub(crate) async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut stream = TcpStream::connect(self.agent.local_addr()).await.unwrap();
        let own = self.agent.local_addr().to_string();
        let mut lines = vec![format!("{line} HTTP/1.1"), "Connection: close".to_owned()];
        if !headers.iter().any(|(name, _)| *name == "Host") {
            lines.push(format!("Host: {own}"));
        }
        lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push(format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let request = lines.join("\r\n");
        // A refusal may come, and the socket close, before all of a body is sent.
        let _refused_early = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _reset_after_refusal = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
        let end = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer[end + 4..].to_vec();
        Answer { status, head, body }
    }

    /// Sends a request with the key.
    pub(crate) async fn ask(&self, line: &str, body: &str) -> Answer {
        let key = format!("Bearer {KEY}");
        self.send(line, &[("Authorization", &key)], body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path}"), "").await
    }

    pub(crate) async fn end(self) {
        timeout(PATIENCE, self.agent.leave(Duration::from_secs(1)))
            .await
            .unwrap();
        if let Some(daemon) = self.daemon {
            timeout(PATIENCE, daemon.shutdown(Duration::from_secs(1)))
                .await
                .unwrap();
        }
    }
}
