//! [`Agent`]: starts the listener and its background tasks in order, and shuts them down.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use admission::budget::Budget;
use aria2::{Aria2, Dialect, Ending, Saving, Setup};
use tokio::{io::DuplexStream, net::TcpListener, sync::watch};

use crate::{
    access::key::{AccessKey, NoRandom, SetupCode},
    capture::pending::Pending,
    daemon_link::{connect::Connect, daemon::Daemon, questions::Subscribers},
    desk::Desk,
    device_link,
    gate::Gate,
    opener::Opener,
    projection::hub::Hub,
    serve::Acceptor,
    settings::{
        config::{Config, DEFAULT_PORT, Edition},
        file::{DirectoryError, SettingsFile},
        switches::{Listening, Settings},
    },
    shutdown::Shutdown,
    surface::{
        aria2::service::Changes,
        routes,
        state::{App, State},
    },
};

/// The previous owner of a port may still be ending, so binding is retried this often.
const BIND_TRIES: u32 = 20;
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// [`Agent::local_addr`] of an agent without a listener.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How long the daemon may take to acknowledge its shutdown.
const STOP_DAEMON_TIME: Duration = Duration::from_secs(3);

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The agent's directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The client for other devices cannot be made.
    #[error("requests to other devices cannot be made: {0}")]
    Link(String),
    /// The system has no random numbers for a set-up code.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

/// A running agent. It ends with [`Agent::shutdown`].
#[derive(Debug)]
pub struct Agent {
    address: SocketAddr,
    app: App,
    acceptor: Acceptor,
    version: String,
    /// Connections that are open are served once this is `true`.
    accepting: watch::Sender<bool>,
    shutdown: Shutdown,
}

impl Agent {
    /// Opens the agent's directory and listens. The daemon is connected to in the background; `/ping` and the set-up do
    /// not depend on it.
    pub async fn start(config: Config, connect: impl Connect) -> Result<Self, StartError> {
        let opening = config.clone();
        let file = tokio::task::spawn_blocking(move || SettingsFile::open(&opening)).await;
        let file = Arc::new(file.expect("opening neither panics nor is aborted")?);
        let settings = file.current();
        let listener = match address(&config, &settings) {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let address = listener.as_ref().map_or(NOWHERE, |(_, address)| *address);
        file.publish_address(Some(address)).await?;
        let shutdown = Shutdown::default();
        let edition = config.edition;
        let listening = Listening { edition, address };
        let hub = Arc::new(Hub::new(settings.status(listening), settings.preferences.clone()));
        let pending = Arc::new(Pending::new(Arc::clone(&hub)));
        let waiting = Arc::clone(&pending);
        shutdown.spawn_until_drain(async move { waiting.expire().await });
        // The dialect subscribes before the first task exists, so it misses none.
        let changes = Changes::of(Arc::clone(&hub));
        let daemon = Daemon::start(Arc::new(connect), Arc::clone(&hub), config.version.clone(), &shutdown);
        let subscribers = Subscribers::default();
        shutdown.spawn_until_drain(subscribers.clone().follow(daemon.clone()));
        let aria2 = Arc::new(Dialect::new(
            hub.epoch(),
            dialect(&config),
            Arc::new(daemon.clone()),
            Box::new(changes),
        ));
        let following = Arc::clone(&aria2);
        shutdown.spawn_until_drain(async move { following.follow().await });
        shutdown.spawn_until_drain(follow(Arc::clone(&file), hub, listening));
        let link = device_link::start(&config, listening, &daemon, &pending, &file, &shutdown);
        let link = link.map_err(StartError::Link)?;
        let is_new_server = edition == Edition::Headless && settings.key.is_none();
        let trusted_proxies: Vec<IpAddr> = config.trusted_proxies.iter().map(IpAddr::to_canonical).collect();
        let app = App::from(State {
            gate: Arc::new(Gate::new(
                file,
                // Authenticated clients may come through a proxy that sends another host name.
                listening.is_loopback_only() && (edition == Edition::Desktop || settings.key.is_none()),
                trusted_proxies.clone(),
                Arc::clone(&daemon.hub.metrics),
            )),
            daemon,
            subscribers,
            pending,
            link,
            budget: Budget::default(),
            aria2,
            listening,
            setup_code: is_new_server.then(SetupCode::random).transpose()?,
            version: config.version.clone().into(),
            language: config.language.map(Into::into),
            shutdown: shutdown.clone(),
            opener: Opener::default(),
            restarts: config.restarts,
        });
        let router = routes::router(app.clone());
        let acceptor = Acceptor::new(router, config.max_connections, trusted_proxies, shutdown.clone());
        // A drop-in accepts connections only after its options are set.
        let accepting = watch::Sender::new(edition != Edition::DropIn);
        if let Some((listener, _)) = listener {
            let (listen, mut accepting) = (acceptor.clone().listen(listener), accepting.subscribe());
            shutdown.spawn_until_drain(async move {
                if accepting.wait_for(|is_accepting| *is_accepting).await.is_ok() {
                    listen.await;
                }
            });
        }
        shutdown.tracker.close();
        Ok(Self {
            address,
            app,
            acceptor,
            version: config.version,
            accepting,
            shutdown,
        })
    }

    /// Starts accepting connections. Needed for a drop-in only, after its options are set; earlier connections wait in
    /// the listener's queue.
    pub fn open(&self) {
        self.accepting.send_replace(true);
    }

    /// aria2's interface, for the embedding program.
    pub fn aria2(&self) -> Aria2 {
        Aria2::new(Arc::clone(&self.app.aria2))
    }

    /// The agent as its desktop sees it.
    pub fn desk(&self) -> Desk {
        Desk::new(self.app.clone())
    }

    /// The listening address.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Opens an in-memory connection, treated like a local client's: a byte stream that speaks HTTP as the port does.
    pub fn connect(&self) -> DuplexStream {
        self.acceptor.connect()
    }

    /// What a remote client must send to set the first key; none once there is a key.
    pub fn setup_code(&self) -> Option<&SetupCode> {
        let is_open = self.app.gate.settings.current().key.is_none();
        self.app.setup_code.as_ref().filter(|_| is_open)
    }

    /// The access key, for display on this machine.
    pub fn access_key(&self) -> Option<AccessKey> {
        self.app.gate.settings.current().key.clone()
    }

    /// Whether there is a session with the daemon and its state is current.
    pub fn is_connected(&self) -> bool {
        self.app.daemon.current().is_ok()
    }

    /// Resolves once there is a session and the daemon's state was received.
    pub async fn connected(&self) {
        self.app.daemon.connected().await;
    }

    /// Resolves once an authorized client requested a shutdown: aria2's clients can, on a headless server.
    pub async fn shutdown_requested(&self) -> Ending {
        self.app.aria2.shutdown_requested().await
    }

    /// Shuts down: stops accepting, sends every client a close frame, gives responses `grace` to finish, and shuts the
    /// daemon down as well.
    pub async fn shutdown(self, grace: Duration) {
        self.stop_listening().await;
        let asking = self.app.daemon.ask_to_stop(&self.version);
        if tokio::time::timeout(STOP_DAEMON_TIME, asking).await.is_err() {
            tracing::warn!("the daemon did not acknowledge its shutdown in time");
        }
        self.end(grace).await;
    }

    /// Like [`Agent::shutdown`], and lets clients know that the service begins again.
    pub async fn shutdown_for_restart(self, grace: Duration) {
        self.shutdown.restart.cancel();
        self.shutdown(grace).await;
    }

    /// Like [`Agent::shutdown`], but keeps the daemon running.
    pub async fn shutdown_keeping_daemon(self, grace: Duration) {
        self.stop_listening().await;
        self.end(grace).await;
    }

    async fn stop_listening(&self) {
        if let Err(error) = self.app.gate.settings.publish_address(None).await {
            tracing::warn!(%error, "other programs may look for the agent where it no longer is");
        }
        if let Some(link) = &self.app.link {
            link.stop();
        }
        self.shutdown.drain.cancel();
    }

    async fn end(self, grace: Duration) {
        self.shutdown.release_daemon.cancel();
        if tokio::time::timeout(grace, self.shutdown.tracker.wait()).await.is_err() {
            self.shutdown.force_close.cancel();
            self.shutdown.tracker.wait().await;
        }
    }
}

fn dialect(config: &Config) -> Setup {
    Setup {
        started_with: config.started_with.clone(),
        saving: match &config.session_file {
            Some(file) => Saving::File(Arc::clone(file)),
            None => Saving::Needless,
        },
        allows_shutdown: config.edition != Edition::Desktop,
    }
}

fn address(config: &Config, settings: &Settings) -> Option<SocketAddr> {
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    config.bind.or_else(|| match config.edition {
        // The commands of the same user find it in the lock file; the gate answers nobody else.
        Edition::Desktop if !settings.enabled => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)),
        Edition::Headless => Some(SocketAddr::new(everywhere, DEFAULT_PORT)),
        Edition::Desktop if settings.lan => Some(SocketAddr::new(everywhere, settings.port)),
        Edition::Desktop => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), settings.port)),
        Edition::DropIn => None,
    })
}

async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match TcpListener::bind(address).await {
            Ok(listener) => {
                let bound = listener.local_addr();
                let address = bound.map_err(|source| StartError::Listen { address, source })?;
                tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "the agent listens");
                return Ok((listener, address));
            }
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse && tries < BIND_TRIES => {
                tokio::time::sleep(BIND_PAUSE).await;
            }
            Err(source) => return Err(StartError::Listen { address, source }),
        }
    }
}

/// Publishes changed settings to clients.
async fn follow(file: Arc<SettingsFile>, hub: Arc<Hub>, listening: Listening) {
    let mut settings = file.follow();
    while settings.changed().await.is_ok() {
        let now = Arc::clone(&settings.borrow_and_update());
        hub.publish_settings(now.status(listening), &now.preferences);
    }
}
