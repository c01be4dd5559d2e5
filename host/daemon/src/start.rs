//! Composition root of the daemon: its configuration, start and ordered shutdown.

pub(crate) mod endpoint;
mod feeds;
mod logins;
mod media;
mod plugin_step;
mod steps;
mod torrents;
mod webhooks;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use admission::{ConnectionSlots, Guarded, Limits};
use axum::Router;
use chains::Jobs;
use engine::{Engine, Milestones, Resolver, SystemProxy};
use hooks::Hooks;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use plugin_host::{Plugins, runtime::Runtime};
use protocol::{PROTOCOL_VERSION, endpoint::Endpoint, proof::Token};
use rss::Subscriptions;
use store::{DataDir, Store, Vault};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::TcpListener,
    sync::{Notify, Semaphore, watch},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tools::Tools;
use transfer::Transport;

use crate::{
    configuration::{Configuration, LoadError, keys},
    http::{self, shared::Shared},
    hub::{self, disk::FreeSpace, history::History},
    rows,
    selection::Selections,
    service::{LearnedLimits, Logs, Service, access::Access, blobs::Blobs},
    start::{endpoint::EndpointError, plugin_step::PluginSteps},
};

/// The directory for temporary files of tools in the data directory.
const TOOLS: &str = "tools";

/// The database's name in the data directory.
const DATABASE: &str = "svc.db";

/// Where installed plugins lie in the data directory.
const PLUGINS: &str = "plugins";

/// One agent uses a handful; the rest guards against a leak.
const MAX_CONNECTIONS: usize = 2048;

/// Uploads that wait for their call: with the largest allowed body each, 128 MiB.
const MAX_UPLOADS: usize = 32;

/// Exports that wait to be fetched, each with some mebibytes of logs.
const MAX_EXPORTS: usize = 4;

/// Connections that have proved nothing yet. Any program of this machine can make them; the agent proves itself at once.
const MAX_UNPROVED: usize = 64;

/// Limit of a request's head, and of the body bytes buffered before a handler reads them.
const HEAD_BYTES: usize = 32 * 1024;

/// Buffer of an in-memory connection, per direction.
const DUPLEX_BYTES: usize = 256 * 1024;

/// For connections to end after `stop`.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The parameters of [`Daemon::start`].
#[derive(Debug)]
pub struct Config {
    /// Its directory; locked for as long as it runs. `None` keeps everything in memory: such a daemon listens nowhere, has
    /// no plugins, and is reached through [`Daemon::connector`].
    pub data_dir: Option<PathBuf>,
    /// The port on 127.0.0.1; 0 takes a free one.
    pub port: u16,
    /// The engine's configuration.
    pub engine: engine::Config,
    /// Runs the code of plugins; `None` disables plugins.
    pub plugins: Option<Arc<dyn Runtime>>,
    /// How programs of the user are started; `None` disables them.
    pub tools: Option<tools::Launcher>,
    /// This executable as the unpacker of archives; `None` unpacks none.
    pub unpacker: Option<confined::OwnCommand>,
    /// Where plugins are installed from.
    pub market: plugin_host::market::Config,
    /// What torrents are downloaded with; `None` downloads none. Of its settings the addresses count, the others are stored.
    pub torrents: Option<transfer_torrent::Config>,
    /// The connection limits that a transport learned per host, if one does.
    pub learned_limits: Option<Arc<dyn LearnedLimits>>,
    /// Connections at once. Fewer than the process may have descriptors: downloads need them, too.
    pub max_connections: usize,
    /// The log files; `None` if logs go to standard error only.
    pub logs: Option<Logs>,
    /// Where the key of the stored secrets is.
    pub keys: store::KeyKeeping,
}

impl Config {
    /// The usual configuration with this data directory and this directory for downloads.
    pub fn new(data_dir: impl Into<PathBuf>, download_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: Some(data_dir.into()),
            port: 0,
            engine: engine::Config::new(download_dir),
            plugins: None,
            tools: None,
            unpacker: None,
            market: plugin_host::market::Config::default(),
            torrents: None,
            learned_limits: None,
            max_connections: MAX_CONNECTIONS,
            logs: None,
            keys: store::KeyKeeping::default(),
        }
    }

    /// A configuration that keeps everything in memory.
    pub fn in_memory(download_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: None,
            ..Self::new("", download_dir)
        }
    }
}

/// Why a daemon does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory is in use or cannot be used.
    #[error(transparent)]
    DataDir(#[from] store::LockError),
    /// The key of the secrets cannot be used.
    #[error(transparent)]
    Vault(#[from] store::VaultError),
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// The daemon's own rows cannot be read.
    #[error("cannot read the configuration or the history")]
    Rows(#[from] store::ReadError),
    /// The plugins cannot be read.
    #[error(transparent)]
    Plugins(#[from] plugin_host::StartError),
    /// The subscriptions to feeds do not start.
    #[error(transparent)]
    Rss(#[from] rss::StartError),
    /// The jobs that follow downloads do not start.
    #[error(transparent)]
    Post(#[from] chains::StartError),
    /// The webhooks cannot be decrypted.
    #[error("cannot open the stored webhooks")]
    Webhooks(#[source] store::SealError),
    /// The engine does not start.
    #[error(transparent)]
    Engine(#[from] engine::StartError),
    /// The engine ended while the daemon started.
    #[error(transparent)]
    Ended(#[from] engine::CommandError),
    /// The files by which an agent finds the daemon cannot be used.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The port cannot be listened on.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Listen {
        /// The port.
        port: u16,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A running daemon. It ends with [`Daemon::shutdown`]; dropping it does not stop its tasks.
#[derive(Debug)]
pub struct Daemon {
    service: Arc<Service>,
    router: Router,
    token: Token,
    port: u16,
    /// Tracks the tasks of hub, listener and connections.
    tracker: TaskTracker,
    /// Cancelled to stop accepting connections.
    stop_listening: CancellationToken,
    /// Cancelled to drop the connections that did not end in time.
    force_close: CancellationToken,
    slots: Arc<ConnectionSlots<()>>,
    dir: Option<DataDir>,
}

impl Daemon {
    /// Opens the data directory, continues what it holds and serves it on the loopback. The token and the endpoint are
    /// in the data directory once this returns.
    pub async fn start(mut config: Config, transports: Vec<Arc<dyn Transport>>) -> Result<Self, StartError> {
        let Storage {
            home,
            token,
            vault,
            store,
        } = match &config.data_dir {
            Some(dir) => Storage::open(dir, config.port, config.keys.clone()).await?,
            None => Storage::in_memory()?,
        };
        let tool_settings = Configuration::stored_tools(&store).await?;
        let tools = config.tools.take().zip(home.as_ref());
        let tools = tools.map(|(launcher, home)| home.tools(launcher, tool_settings.subscribe()));
        let plugins = match (config.plugins.take(), &home) {
            (Some(runtime), Some(Home { dir, .. })) => {
                let (vault, folder, market) = (Arc::clone(&vault), dir.join(PLUGINS), config.market.clone());
                let plugins = Plugins::open(store.clone(), vault, folder, runtime, market).await?;
                if let Some(tools) = &tools {
                    plugins.use_tools(Arc::new(media::PluginTools(tools.clone())));
                }
                Some(plugins)
            }
            _ => None,
        };
        let max_connections = config.max_connections.max(1);
        let tracker = TaskTracker::new();
        let instance = Token::random().map_err(EndpointError::from)?.expose()[..32].to_owned();
        let parts = Parts {
            store,
            vault,
            plugins,
            tools,
            tool_settings,
            token: token.clone(),
            instance: instance.clone(),
            tracker: tracker.clone(),
        };
        let service = Arc::new(assemble(config, transports, parts).await?);
        keep_current(&service);
        forward_logins(&service, &tracker);
        let router = http::router(Shared {
            service: Arc::clone(&service),
            tracker: tracker.clone(),
        });
        let slots = ConnectionSlots::new(Limits {
            total: max_connections,
            unauthenticated: MAX_UNPROVED.min(max_connections),
            unauthenticated_per_source: MAX_UNPROVED.min(max_connections),
        });
        let mut daemon = Self {
            service,
            router,
            token,
            port: 0,
            tracker,
            stop_listening: CancellationToken::new(),
            force_close: CancellationToken::new(),
            slots,
            dir: None,
        };
        if let Some(Home { dir, listener, port }) = home {
            daemon.tracker.spawn(accept(daemon.acceptor(), listener));
            endpoint::publish(
                &dir,
                &Endpoint {
                    port,
                    instance_id: instance,
                    pid: std::process::id(),
                    service_version: env!("CARGO_PKG_VERSION").to_owned(),
                    protocol_version: PROTOCOL_VERSION,
                },
            )?;
            daemon.port = port;
            daemon.dir = Some(dir);
        }
        Ok(daemon)
    }

    /// The port on 127.0.0.1; 0 if it listens nowhere.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The long-term token.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The engine, for code in the same process.
    pub fn engine(&self) -> &Engine {
        &self.service.engine
    }

    /// A new connection without a socket: the other end of a byte stream that speaks HTTP as the port does.
    pub fn connect(&self) -> DuplexStream {
        self.connector().connect()
    }

    /// Makes connections like [`Daemon::connect`]; outlives the borrow of the daemon.
    pub fn connector(&self) -> Connector {
        Connector(self.acceptor())
    }

    /// Resolves when a client requested a shutdown. The caller then calls [`Daemon::shutdown`].
    pub async fn asked_to_stop(&self) {
        let asked = self.service.asked_to_stop.notified();
        tokio::pin!(asked);
        asked.as_mut().enable();
        if !self.service.was_asked_to_stop.load(Ordering::Acquire) {
            asked.await;
        }
    }

    /// Shuts down in order: stops accepting, notifies clients, stops and saves runs within `grace`, saves rows, closes
    /// the database, unlocks the directory.
    pub async fn shutdown(self, grace: Duration) -> engine::ShutdownReport {
        self.stop_listening.cancel();
        self.service.stop.cancel();
        if let Some(dir) = &self.dir {
            endpoint::withdraw(dir);
        }
        let report = self.service.engine.shutdown(grace).await;
        self.service.selections.end();
        if let Some(torrents) = &self.service.torrents {
            torrents.shutdown().await;
        }
        if let Some(tools) = &self.service.tools {
            tools.shutdown().await;
        }
        self.tracker.close();
        if tokio::time::timeout(CLOSE_TIMEOUT, self.tracker.wait()).await.is_err() {
            self.force_close.cancel();
            self.tracker.wait().await;
        }
        if let Some(plugins) = &self.service.plugins {
            plugins.close().await;
        }
        self.service.store.close().await;
        report
    }

    fn acceptor(&self) -> Acceptor {
        Acceptor {
            router: self.router.clone(),
            tracker: self.tracker.clone(),
            stop: self.stop_listening.clone(),
            force_close: self.force_close.clone(),
            slots: Arc::clone(&self.slots),
        }
    }
}

/// Makes connections to a daemon in the same process.
#[derive(Debug, Clone)]
pub struct Connector(Acceptor);

impl Connector {
    /// A new connection. It is closed at once if the daemon has ended or has too many.
    pub fn connect(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(DUPLEX_BYTES);
        if !self.0.stop.is_cancelled() {
            self.0.take(far);
        }
        near
    }
}

struct Storage {
    /// `None` in memory.
    home: Option<Home>,
    token: Token,
    vault: Arc<Vault>,
    store: Store,
}

/// A locked data directory, and the port to publish in it.
struct Home {
    dir: DataDir,
    listener: TcpListener,
    port: u16,
}

impl Home {
    fn tools(&self, launcher: tools::Launcher, settings: watch::Receiver<tools::Settings>) -> Tools {
        let config = tools::Config {
            launcher,
            scratch: self.dir.join(TOOLS),
            names: egress::Names::default(),
        };
        Tools::new(config, settings)
    }
}

impl Storage {
    const MIGRATIONS: [store::MigrationSet; 5] = [
        engine::MIGRATIONS,
        rows::MIGRATIONS,
        plugin_host::MIGRATIONS,
        rss::MIGRATIONS,
        chains::MIGRATIONS,
    ];

    async fn open(data_dir: &Path, port: u16, keys: store::KeyKeeping) -> Result<Self, StartError> {
        let dir = DataDir::lock(data_dir)?;
        let token = endpoint::token(&dir)?;
        let listener = listen(port).await?;
        let port = listener
            .local_addr()
            .map_err(|source| StartError::Listen { port, source })?
            .port();
        let store = Store::open(dir.join(DATABASE), &Self::MIGRATIONS)?;
        Ok(Self {
            token,
            vault: Arc::new(Vault::open_keeping(&dir, &store, keys).await?),
            store,
            home: Some(Home { dir, listener, port }),
        })
    }

    fn in_memory() -> Result<Self, StartError> {
        Ok(Self {
            home: None,
            token: Token::random().map_err(EndpointError::from)?,
            vault: Arc::new(Vault::ephemeral()?),
            store: Store::in_memory(&Self::MIGRATIONS)?,
        })
    }
}

struct Parts {
    store: Store,
    vault: Arc<Vault>,
    plugins: Option<Plugins>,
    tools: Option<Tools>,
    tool_settings: watch::Sender<tools::Settings>,
    token: Token,
    instance: String,
    tracker: TaskTracker,
}

impl Parts {
    fn feeds(&self, engine: &Engine, system_proxy: &Arc<SystemProxy>, stop: &CancellationToken) -> rss::Config {
        let as_providers = |plugins: &Plugins| Arc::new(feeds::PluginFeeds(plugins.clone())) as Arc<dyn rss::Providers>;
        rss::Config {
            providers: self.plugins.as_ref().map(as_providers),
            store: self.store.clone(),
            vault: Arc::clone(&self.vault),
            engine: engine.clone(),
            system_proxy: Arc::clone(system_proxy),
            tracker: self.tracker.clone(),
            stop: stop.child_token(),
        }
    }

    fn jobs(
        &self,
        engine: &Engine,
        configuration: &Arc<Configuration>,
        system_proxy: &Arc<SystemProxy>,
        (milestones, unpacker): (Milestones, Option<confined::OwnCommand>),
        stop: &CancellationToken,
    ) -> chains::Config {
        let plugins = self.plugins.clone().map(|plugins| PluginSteps {
            plugins,
            unpacker: unpacker.clone(),
            tools: self.tools.clone(),
            proxies: Box::new(webhooks::of_settings(engine.clone(), Arc::clone(system_proxy))),
            unpacking: Arc::new(Semaphore::new(1)),
        });
        chains::Config {
            store: self.store.clone(),
            vault: Arc::clone(&self.vault),
            engine: engine.clone(),
            milestones,
            chain_of: steps::chain_of(Arc::clone(configuration)),
            unpacker,
            tool: Arc::new(steps::OfUser {
                tools: self.tools.clone(),
                plugins,
            }),
            tracker: self.tracker.clone(),
            stop: stop.child_token(),
        }
    }
}

#[expect(clippy::too_many_lines, reason = "it puts the parts together, one after the other")]
async fn assemble(
    mut config: Config,
    mut transports: Vec<Arc<dyn Transport>>,
    parts: Parts,
) -> Result<Service, StartError> {
    let as_resolver = |plugins: &Plugins| Arc::new(plugins.clone()) as Arc<dyn Resolver>;
    config.engine.resolver = parts.plugins.as_ref().map(as_resolver);
    let system_proxy = config.engine.system_proxy.clone();
    let default_dir = config.engine.download_dir.clone();
    // Before the engine starts, so that nothing of the tasks that it continues is missed.
    let milestones = config.engine.milestones.subscribe();
    let of_jobs = (config.engine.milestones.subscribe(), config.unpacker.take());
    let milestones_of_plugins = config.engine.milestones.subscribe();
    let selections = Selections::default();
    let own_addresses = config
        .torrents
        .as_ref()
        .map(|of_torrents| of_torrents.settings.addresses.clone());
    let torrents = match config.torrents.take() {
        Some(of_torrents) => {
            let stored = Configuration::stored_torrents(&parts.store).await?;
            let settings = Engine::stored_settings(&parts.store, &parts.vault).await?;
            let stored = (&stored, settings, &system_proxy);
            Some(torrents::begin(of_torrents, stored, &selections, &mut transports))
        }
        None => None,
    };
    let engine = Engine::start(config.engine, parts.store.clone(), Arc::clone(&parts.vault), transports).await?;
    selections.begin(engine.clone());
    let (system_proxy, stop) = (Arc::new(system_proxy), CancellationToken::new());
    let rss = Subscriptions::start(parts.feeds(&engine, &system_proxy, &stop)).await?;
    let vault = Arc::clone(&parts.vault);
    let configuration =
        Configuration::load(parts.store.clone(), vault, engine.clone(), parts.tool_settings.clone()).await;
    let configuration = Arc::new(configuration.map_err(|error| match error {
        LoadError::Read(error) => StartError::Rows(error),
        LoadError::Sealed(error) => StartError::Webhooks(error),
    })?);
    if let (Some(torrents), Some(addresses)) = (&torrents, own_addresses) {
        if config.data_dir.is_some() {
            torrents::clean(torrents, &engine).await?;
        }
        let (own, system) = (configuration.torrents(), Arc::clone(&system_proxy));
        let following = torrents::follow(
            (torrents.clone(), addresses),
            own,
            engine.clone(),
            system,
            stop.child_token(),
        );
        parts.tracker.spawn(following);
    }
    let hooks = Hooks::start(hooks::Config {
        endpoints: configuration.endpoints(),
        names: egress::Names::default(),
        proxy_for: webhooks::proxies(engine.clone(), Arc::clone(&system_proxy)),
        tracker: parts.tracker.clone(),
        stop: stop.child_token(),
    });
    if let Some(plugins) = parts.plugins.clone() {
        let (engine, system) = (engine.clone(), Arc::clone(&system_proxy));
        parts
            .tracker
            .spawn(async move { webhooks::to_plugins(&plugins, milestones_of_plugins, engine, &system).await });
    }
    let relaying = webhooks::relay(milestones, hooks.clone());
    let ended = stop.child_token();
    parts
        .tracker
        .spawn(async move { ended.run_until_cancelled(relaying).await });
    let jobs = Jobs::start(parts.jobs(&engine, &configuration, &system_proxy, of_jobs, &stop)).await?;
    let history = History::load(parts.store.clone()).await?;
    let free_space = FreeSpace::new(default_dir.clone(), parts.tracker.clone());
    let (hub, worker) = hub::start(
        hub::Subsystems {
            engine: engine.clone(),
            plugins: parts.plugins.clone(),
            rss: rss.clone(),
            hooks: hooks.clone(),
            jobs: jobs.clone(),
            torrents: torrents.clone(),
            selections: selections.clone(),
        },
        Arc::clone(&configuration),
        history,
        free_space,
        parts.instance.into(),
    )
    .await?;
    parts.tracker.spawn(worker.run());
    Ok(Service {
        engine,
        plugins: parts.plugins,
        tools: parts.tools,
        rss,
        hooks,
        jobs,
        torrents,
        selections,
        store: parts.store,
        vault: parts.vault,
        hub,
        configuration,
        access: Arc::new(Access::new(parts.token)),
        blobs: Blobs::new(MAX_UPLOADS),
        exports: Blobs::new(MAX_EXPORTS),
        learned_limits: config.learned_limits,
        system_proxy,
        default_dir,
        logs: config.logs,
        version: env!("CARGO_PKG_VERSION"),
        started_at: Instant::now(),
        connections: AtomicU64::new(0),
        stop,
        was_asked_to_stop: AtomicBool::new(false),
        asked_to_stop: Notify::new(),
    })
}

/// Starts the background updates of plugins; each update reads the configuration again.
fn keep_current(service: &Arc<Service>) {
    let Some(plugins) = &service.plugins else { return };
    let of = Arc::downgrade(service);
    plugins.keep_current(move || {
        let service = of.upgrade()?;
        Some(plugin_host::market::Settings {
            proxies: service.proxies(),
            updates_itself: service.configuration.is_on(keys::PLUGIN_AUTO_UPDATE),
        })
    });
}

fn forward_logins(service: &Service, tracker: &TaskTracker) {
    let Some(plugins) = &service.plugins else { return };
    let (engine, stop) = (service.engine.clone(), service.stop.clone());
    tracker.spawn(logins::forward(plugins.clone(), engine, stop));
}

async fn listen(port: u16) -> Result<TcpListener, StartError> {
    TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
        .await
        .map_err(|source| StartError::Listen { port, source })
}

#[derive(Debug, Clone)]
struct Acceptor {
    router: Router,
    tracker: TaskTracker,
    stop: CancellationToken,
    force_close: CancellationToken,
    slots: Arc<ConnectionSlots<()>>,
}

impl Acceptor {
    /// Serves HTTP on a byte stream until either side ends it. Beyond the limit, the stream is closed at once.
    fn take<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(&self, stream: S) {
        let Some(slot) = self.slots.take(None) else {
            tracing::warn!("a connection was refused: too many are open");
            return;
        };
        let (handler, of_requests) = (TowerToHyperService::new(self.router.clone()), Arc::clone(&slot));
        let handler = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Arc::clone(&of_requests));
            handler.call(request)
        });
        let (stop, force_close) = (self.stop.clone(), self.force_close.clone());
        self.tracker.spawn(async move {
            let serving = http1::Builder::new()
                .timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(HEAD_BYTES)
                .serve_connection(TokioIo::new(Guarded::new(stream, Arc::clone(&slot))), handler)
                .with_upgrades();
            tokio::pin!(serving);
            let ended = tokio::select! {
                ended = &mut serving => ended,
                () = slot.evicted() => {
                    tracing::debug!("a connection that had proved nothing was closed for a newer one");
                    return;
                }
                () = stop.cancelled() => {
                    serving.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = &mut serving => ended,
                        () = force_close.cancelled() => Ok(()),
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
}

async fn accept(acceptor: Acceptor, listener: TcpListener) {
    loop {
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            () = acceptor.stop.cancelled() => return,
        };
        match stream {
            Ok((stream, _)) => {
                // Frames are small and latency matters more than throughput.
                let _best_effort = stream.set_nodelay(true);
                acceptor.take(stream);
            }
            Err(error) => {
                let made_room = acceptor.slots.evict_oldest();
                tracing::warn!(%error, made_room, "a connection could not be accepted");
                // Out of descriptors, for instance: retrying at once would spin.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
