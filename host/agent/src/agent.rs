//! The agent as a whole: what is started, in which order, and how it ends.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use aria2::{Aria2, Dialect, Ending, Saving, Setup};
use tokio::{io::DuplexStream, net::TcpListener, sync::watch};

use crate::{
    access::{
        budget::Budget,
        key::{AccessKey, NoRandom, SetupCode},
    },
    capture::pending::Pending,
    gate::Gate,
    link::{connect::Connect, daemon::Daemon},
    projection::hub::Hub,
    serve::Acceptor,
    settings::{
        config::{Config, DEFAULT_PORT, Host},
        switches::{Listening, Settings},
        vault::{DirectoryError, Vault},
    },
    shutdown::Shutdown,
    surface::{
        aria2::service::Changes,
        routes,
        state::{App, State},
    },
};

/// A port is free again soon after its last owner ended: how often and how long apart it is tried.
const BIND_TRIES: u32 = 20;
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// The address of an agent that listens nowhere.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// How long the daemon may take to hear that it is to end.
const STOP_DAEMON_TIME: Duration = Duration::from_secs(3);

/// Why an agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// Its address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// No set-up code can be made.
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
    /// Opens the agent's directory and listens. The daemon is looked for meanwhile; `/ping` and the set-up do not wait
    /// for it.
    pub async fn start(config: Config, connect: impl Connect) -> Result<Self, StartError> {
        let opening = config.clone();
        let vault = tokio::task::spawn_blocking(move || Vault::open(&opening)).await;
        let vault = Arc::new(vault.expect("opening neither panics nor is aborted")?);
        let settings = vault.settings();
        let listener = match address(&config, &settings) {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        let address = listener.as_ref().map_or(NOWHERE, |(_, address)| *address);
        vault.publish_address(Some(address)).await?;
        let shutdown = Shutdown::default();
        let host = config.host;
        let listening = Listening { host, address };
        let hub = Arc::new(Hub::new(settings.status(listening), settings.preferences.clone()));
        let pending = Arc::new(Pending::new(Arc::clone(&hub)));
        let waiting = Arc::clone(&pending);
        shutdown.spawn_until_drain(async move { waiting.expire().await });
        // The dialect follows the tasks from before there are any.
        let changes = Changes::of(Arc::clone(&hub));
        let daemon = Daemon::start(Arc::new(connect), Arc::clone(&hub), config.version.clone(), &shutdown);
        let aria2 = Arc::new(Dialect::new(
            hub.epoch(),
            dialect(&config),
            Arc::new(daemon.clone()),
            Box::new(changes),
        ));
        let following = Arc::clone(&aria2);
        shutdown.spawn_until_drain(async move { following.follow().await });
        shutdown.spawn_until_drain(follow(Arc::clone(&vault), hub, listening));
        let is_new_server = host == Host::Headless && settings.key.is_none();
        let trusted_proxies: Vec<IpAddr> = config.trusted_proxies.iter().map(IpAddr::to_canonical).collect();
        let app = App::from(State {
            gate: Arc::new(Gate::new(
                vault,
                // A client with the key may come through a proxy that sends another host name.
                listening.is_loopback_only() && (host == Host::Desktop || settings.key.is_none()),
                trusted_proxies.clone(),
                Arc::clone(&daemon.hub.metrics),
            )),
            daemon,
            pending,
            budget: Budget::default(),
            aria2,
            listening,
            setup_code: is_new_server.then(SetupCode::random).transpose()?,
            version: config.version.clone().into(),
            language: config.language.map(Into::into),
            shutdown: shutdown.clone(),
        });
        let router = routes::router(app.clone());
        let acceptor = Acceptor::new(router, config.max_connections, trusted_proxies, shutdown.clone());
        // A drop-in has its options before anybody calls.
        let accepting = watch::Sender::new(host != Host::DropIn);
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

    /// Begins to accept connections. Only a drop-in waits for this: its options are set first; connections that came earlier
    /// wait in the listener's queue.
    pub fn open(&self) {
        self.accepting.send_replace(true);
    }

    /// aria2's dialect, for the program that embeds the agent.
    pub fn aria2(&self) -> Aria2 {
        Aria2::new(Arc::clone(&self.app.aria2))
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// A new connection without a socket, as from a client at this machine: the other end of a byte stream that speaks
    /// HTTP as the port does.
    pub fn connect(&self) -> DuplexStream {
        self.acceptor.connect()
    }

    /// What a first visitor from elsewhere must know; none once there is a key.
    pub fn setup_code(&self) -> Option<&SetupCode> {
        let is_open = self.app.gate.vault.settings().key.is_none();
        self.app.setup_code.as_ref().filter(|_| is_open)
    }

    /// The access key, for the person at this machine.
    pub fn access_key(&self) -> Option<AccessKey> {
        self.app.gate.vault.settings().key.clone()
    }

    /// Whether the daemon answers.
    pub fn is_connected(&self) -> bool {
        self.app.daemon.known().is_ok()
    }

    /// Resolves once the daemon answers and its state is here.
    pub async fn connected(&self) {
        self.app.daemon.connected().await;
    }

    /// Resolves once a client that may do so asked that the service ends: aria2's clients can, on a headless server.
    pub async fn asked_to_end(&self) -> Ending {
        self.app.aria2.asked_to_end().await
    }

    /// Ends: no new connections, a close frame to every client, answers finished within `grace`, the daemon asked to end as well.
    pub async fn shutdown(self, grace: Duration) {
        self.stop_listening().await;
        let asking = self.app.daemon.ask_to_stop(&self.version);
        if tokio::time::timeout(STOP_DAEMON_TIME, asking).await.is_err() {
            tracing::warn!("the daemon did not hear that it is to end");
        }
        self.end(grace).await;
    }

    /// Ends like [`Agent::shutdown`] and leaves the daemon as it is.
    pub async fn leave(self, grace: Duration) {
        self.stop_listening().await;
        self.end(grace).await;
    }

    async fn stop_listening(&self) {
        if let Err(error) = self.app.gate.vault.publish_address(None).await {
            tracing::warn!(%error, "other programs may look for the agent where it no longer is");
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

/// How aria2's dialect is served by a host of this kind.
fn dialect(config: &Config) -> Setup {
    Setup {
        started_with: config.started_with.clone(),
        saving: match &config.session_file {
            Some(file) => Saving::File(Arc::clone(file)),
            None if config.host == Host::DropIn => Saving::Refused,
            None => Saving::Needless,
        },
        allows_shutdown: config.host != Host::Desktop,
    }
}

fn address(config: &Config, settings: &Settings) -> Option<SocketAddr> {
    let everywhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    config.bind.or_else(|| match config.host {
        Host::Headless => Some(SocketAddr::new(everywhere, DEFAULT_PORT)),
        Host::Desktop if settings.lan => Some(SocketAddr::new(everywhere, settings.port)),
        Host::Desktop => Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), settings.port)),
        Host::DropIn => None,
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

/// Tells everybody when the settings change.
async fn follow(vault: Arc<Vault>, hub: Arc<Hub>, listening: Listening) {
    let mut settings = vault.follow();
    while settings.changed().await.is_ok() {
        let now = Arc::clone(&settings.borrow_and_update());
        hub.publish_settings(now.status(listening), &now.preferences);
    }
}
