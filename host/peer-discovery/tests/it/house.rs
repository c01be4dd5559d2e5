//! What the tests have in common: sessions, and trackers that answer what they are told to.

use std::{net::SocketAddr, time::Duration};

use egress::{ClientConfig, HttpClient, Names};
use metainfo::InfoHash;
use peer_discovery::{Config, Counters, Discovery, Settings, Subscription, TorrentSpec, TrackerView};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, UdpSocket},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{GivenBy, SafeUrl};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const HASH: InfoHash = InfoHash([0x5a; 20]);

/// A session with its shutdown.
pub(crate) struct House {
    pub(crate) discovery: Discovery,
    tracker: TaskTracker,
    stop: CancellationToken,
}

/// Nothing but trackers.
pub(crate) fn trackers_only() -> Settings {
    Settings {
        is_dht_on: false,
        is_lsd_on: false,
        is_port_mapping_on: false,
        ..Settings::default()
    }
}

pub(crate) fn config(settings: Settings) -> Config {
    let http = HttpClient::new(ClientConfig {
        user_agent: egress::USER_AGENT.to_owned(),
        tls: egress::tls::trusting_mozilla(&[]).unwrap(),
        connect_timeout: Duration::from_secs(5),
        idle_connections: 0,
        names: Names::default(),
    });
    Config {
        settings,
        port: 6999,
        peer_id: *b"-SV0001-abcdefghijkl",
        http: http.unwrap(),
        names: Names::default(),
        dht_addresses: Vec::new(),
        dht_bootstrap: Vec::new(),
        dht_file: None,
        tracker: TaskTracker::new(),
        stop: CancellationToken::new(),
    }
}

impl House {
    pub(crate) fn of(config: Config) -> Self {
        let (tracker, stop) = (config.tracker.clone(), config.stop.clone());
        Self {
            discovery: Discovery::start(config),
            tracker,
            stop,
        }
    }

    pub(crate) fn with_trackers() -> Self {
        Self::of(config(trackers_only()))
    }

    pub(crate) async fn add(&self, trackers: &[&str]) -> Subscription {
        self.discovery.add(spec(trackers, GivenBy::User)).await
    }

    /// Ends the session, and checks that nothing of it is left.
    pub(crate) async fn close(self) {
        self.stop.cancel();
        self.tracker.close();
        let ended = timeout(PATIENCE, self.tracker.wait()).await;
        ended.expect("a session ends within its limit");
    }
}

pub(crate) fn spec(trackers: &[&str], given_by: GivenBy) -> TorrentSpec {
    TorrentSpec {
        info_hash: HASH,
        trackers: trackers.iter().map(|url| vec![SafeUrl::parse(url).unwrap()]).collect(),
        nodes: Vec::new(),
        given_by,
        is_private: false,
        proxy: None,
        counters: Counters {
            left: 100,
            wanted_peers: 50,
            ..Counters::default()
        },
    }
}

/// The next addresses that a torrent gets.
pub(crate) async fn next(subscription: &mut Subscription) -> Vec<SocketAddr> {
    let next = timeout(PATIENCE, subscription.next()).await;
    next.expect("peers are found").expect("the session runs").peers
}

/// The only tracker, when it has become so.
pub(crate) async fn view(subscription: &Subscription, is_wanted: impl Fn(&TrackerView) -> bool) -> TrackerView {
    let looking = async {
        loop {
            let views = subscription.trackers().await;
            if let Some(view) = views.into_iter().find(&is_wanted) {
                return view;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("the tracker gets there")
}

/// A tracker over HTTP that gives each request the next answer, the last one again and again.
pub(crate) struct HttpTracker {
    pub(crate) url: String,
    /// The request lines.
    pub(crate) requests: mpsc::Receiver<String>,
    serving: JoinHandle<()>,
}

impl Drop for HttpTracker {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// An answer with this body.
pub(crate) fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

impl HttpTracker {
    pub(crate) async fn answering(answers: Vec<Vec<u8>>) -> Self {
        Self::start(answers, false).await
    }

    /// Repeats the end of its last answer until the client leaves.
    pub(crate) async fn endless(answer: Vec<u8>) -> Self {
        Self::start(vec![answer], true).await
    }

    async fn start(answers: Vec<Vec<u8>>, is_endless: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/announce", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(1000);
        #[expect(clippy::disallowed_methods, reason = "the tracker aborts it when it is dropped")]
        let serving = tokio::spawn(async move {
            for at in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = vec![0; 8192];
                let length = stream.read(&mut head).await.unwrap_or(0);
                let line = String::from_utf8_lossy(&head[..length])
                    .lines()
                    .next()
                    .unwrap_or("")
                    .to_owned();
                let _test_ended = sender.send(line).await;
                let answer = &answers[at.min(answers.len() - 1)];
                let mut sent = stream.write_all(answer).await;
                while is_endless && sent.is_ok() {
                    sent = stream.write_all(&[b'x'; 8192]).await;
                }
            }
        });
        Self { url, requests, serving }
    }

    pub(crate) async fn next_request(&mut self) -> String {
        let request = timeout(PATIENCE, self.requests.recv()).await;
        request.expect("the tracker is asked").unwrap()
    }
}

/// A socket of a tracker over UDP, and its URL.
pub(crate) async fn udp_tracker() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let url = format!("udp://{}/announce?key=1", socket.local_addr().unwrap());
    (socket, url)
}
