//! An agent and its daemon in this process, whose downloads move nothing.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use agent::{AccessKey, Config, Edition, PresetKey};
use daemon::Daemon;
use engine::FileFate;
use service::Service;
pub(crate) use support::Answer;
use support::transport::FakeTransport;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    runtime::Runtime,
    time::timeout,
};

/// The key of a server.
pub(crate) const KEY: &str = "the-access-key-1";

/// How long an answer may take. A machine that searches is busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running service.
pub(crate) struct House {
    runtime: Runtime,
    service: Service,
    _root: TempDir,
}

impl House {
    /// A desktop without a key, as it is installed: what stands on its loopback may use aria2's dialect.
    pub(crate) fn desktop() -> Self {
        Self::start(Edition::Desktop)
    }

    /// A server with [`KEY`].
    pub(crate) fn server() -> Self {
        Self::start(Edition::Headless)
    }

    fn start(edition: Edition) -> Self {
        // One thread: what an input causes has happened before the next one comes, mostly.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime needs nothing but descriptors");
        let root = tempfile::tempdir().expect("there is room for temporary files");
        let service = runtime.block_on(async {
            let data = daemon::Config::new(root.path().join("data"), root.path().join("downloads"));
            let idle = FakeTransport::idle(&["http", "https"]);
            let daemon = Daemon::start(data, vec![Arc::new(idle)]).await;
            let daemon = daemon.expect("an empty directory can be used");
            let mut config = Config::new(edition, root.path().join("data/agent"));
            config.bind = Some((Ipv4Addr::LOCALHOST, 0).into());
            let key = AccessKey::new(KEY).expect("it is long enough");
            config.preset_key = (edition == Edition::Headless).then_some(PresetKey::Forced(key));
            let service = Service::start(daemon, config, PATIENCE).await;
            service.expect("the loopback can be listened on")
        });
        Self {
            runtime,
            service,
            _root: root,
        }
    }

    /// Sends a request as somebody at this machine does.
    pub(crate) fn ask(&self, line: &str, headers: &str, body: &[u8]) -> Answer {
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        let answer = self.exchange(async |stream| {
            // Who is refused early does not hear everything.
            let _refused = stream.write_all(&[head.as_bytes(), body].concat()).await;
        });
        Answer::read(&answer).unwrap_or_else(|| panic!("no answer: {}", String::from_utf8_lossy(&answer)))
    }

    /// Asks for a WebSocket, sends bytes on it as they are, and is gone.
    pub(crate) fn upgrade(&self, path: &str, bytes: &[u8]) {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
             Authorization: Bearer {KEY}\r\n\r\n"
        );
        self.exchange(async |stream| {
            let _asked = stream.write_all(head.as_bytes()).await;
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                answer.push(stream.read_u8().await.expect("the head of an answer comes whole"));
            }
            assert!(
                answer.starts_with(b"HTTP/1.1 101 "),
                "{}",
                String::from_utf8_lossy(&answer)
            );
            let _refused = stream.write_all(bytes).await;
            let _gone = stream.shutdown().await;
        });
    }

    /// Has `talk` use a connection of its own, and reads until the other side closes it.
    fn exchange(&self, talk: impl AsyncFnOnce(&mut DuplexStream)) -> Vec<u8> {
        let answer = self.runtime.block_on(async {
            let exchanged = timeout(PATIENCE, async {
                let mut stream = self.service.agent().connect();
                talk(&mut stream).await;
                let mut answer = Vec::new();
                let _reset = stream.read_to_end(&mut answer).await;
                answer
            });
            let answer = exchanged.await.expect("the connection ends in time");
            self.tidy().await;
            answer
        });
        assert!(self.service.agent().is_connected(), "the daemon is lost");
        answer
    }

    /// Deletes what the last input made, so that no input meets what another one left.
    async fn tidy(&self) {
        let engine = self.service.daemon().engine();
        let snapshot = engine.snapshot().await.expect("the engine runs");
        let tasks: Vec<_> = snapshot.tasks.iter().map(|task| task.id).collect();
        if !tasks.is_empty() {
            let deleted = engine.delete_many(tasks, FileFate::Keep).await;
            deleted.expect("tasks that there are can be deleted");
        }
    }
}
