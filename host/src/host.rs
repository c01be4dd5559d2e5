//! [`Host`]: a complete service in the process of an embedding program.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use agent::{AccessKey, Agent, NoRandom, PresetKey};
use daemon::Daemon;
use engine::{Engine, SystemProxy};
use service::Service;
use transfer::{Failure, Transport};
use transfer_ftp::FtpTransport;
use transfer_http::HttpTransport;
use transfer_sftp::SftpTransport;

use crate::{plugins, programs};

/// How long clients may take to receive their last responses at shutdown.
const ANSWER_GRACE: Duration = Duration::from_millis(500);

/// How long runs may take to save their progress at shutdown.
const RUN_GRACE: Duration = Duration::from_secs(10);

/// A running service: engine, plugins and all APIs on one address.
///
/// It reads no environment and no configuration outside its data directory, does not change global state of the
/// process, and leaves signals and the descriptor limit to the program. Call [`Host::shutdown`] to end it; dropping it
/// loses nothing that was acknowledged, like a crash.
///
/// This program is `examples/embed`:
///
/// ```ignore
#[doc = include_str!("../../examples/embed/main.rs")]
/// ```
#[derive(Debug)]
pub struct Host {
    service: Service,
}

/// The configuration of a [`Host`].
#[derive(Debug)]
pub struct Builder {
    data_dir: PathBuf,
    save_dir: PathBuf,
    address: SocketAddr,
    access_key: Option<AccessKey>,
    language: Option<String>,
    system_proxy: SystemProxy,
    http: transfer_http::Config,
    ftp: transfer_ftp::Config,
    sftp: transfer_sftp::Config,
    transports: Vec<Arc<dyn Transport>>,
    peer_addresses: Option<Vec<IpAddr>>,
    svc: Option<PathBuf>,
}

/// Why a [`Host`] cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration of the HTTP transport is invalid.
    #[error(transparent)]
    Http(#[from] Failure),
    /// The client for trackers cannot be made.
    #[error(transparent)]
    Trackers(#[from] egress::client::ClientError),
    /// The daemon cannot start: its data directory is in use or not accessible.
    #[error(transparent)]
    Daemon(#[from] daemon::StartError),
    /// The agent cannot start: its address is in use, or its directory is not accessible.
    #[error(transparent)]
    Agent(#[from] agent::StartError),
    /// There is no access key, and none can be generated.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
}

impl Builder {
    /// The listening address; by default a free port on the loopback. Port 0 selects a free one.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// The access key of clients. Without one, the key in the data directory is used; a new directory gets a random
    /// one. See [`Host::access_key`].
    #[must_use]
    pub fn access_key(mut self, key: AccessKey) -> Self {
        self.access_key = Some(key);
        self
    }

    /// The language of user interfaces and plugins, such as `en`.
    #[must_use]
    pub fn language(mut self, language: impl Into<String>) -> Self {
        self.language = Some(language.into());
        self
    }

    /// The system's proxies, for downloads whose settings use them.
    #[must_use]
    pub fn system_proxy(mut self, proxy: SystemProxy) -> Self {
        self.system_proxy = proxy;
        self
    }

    /// The configuration of HTTP downloads.
    #[must_use]
    pub fn http(mut self, config: transfer_http::Config) -> Self {
        self.http = config;
        self
    }

    /// The configuration of FTP downloads.
    #[must_use]
    pub fn ftp(mut self, config: transfer_ftp::Config) -> Self {
        self.ftp = config;
        self
    }

    /// The configuration of SFTP downloads. By default no host key is known and there is no key to log in with;
    /// `transfer_sftp::Config` names the files and the agent.
    #[must_use]
    pub fn sftp(mut self, config: transfer_sftp::Config) -> Self {
        self.sftp = config;
        self
    }

    /// The addresses on which peers of torrents are accepted; by default all of this machine. The port is a setting of the
    /// service, and none is open before the first torrent.
    #[must_use]
    pub fn accept_peers_on(mut self, addresses: impl Into<Vec<IpAddr>>) -> Self {
        self.peer_addresses = Some(addresses.into());
        self
    }

    /// Adds a transport beside HTTP, FTP, SFTP and BitTorrent.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transports.push(transport);
        self
    }

    /// Enables plugins, unpacking, and programs of the user such as `ffmpeg`. The code of plugins is compiled, archives
    /// are unpacked, and programs are supervised by child processes of the `svc` executable at this path, so that a bug
    /// in the compiler or in the reader of an archive cannot affect the program.
    #[must_use]
    pub fn plugins(mut self, svc: impl Into<PathBuf>) -> Self {
        self.svc = Some(svc.into());
        self
    }

    /// Starts the service. Once this returns, clients can connect, and unfinished downloads continue.
    pub async fn start(self) -> Result<Host, StartError> {
        let mut transports = self.transports;
        transports.push(Arc::new(HttpTransport::new(self.http)?));
        transports.push(Arc::new(FtpTransport::new(self.ftp)?));
        transports.push(Arc::new(SftpTransport::new(self.sftp)?));
        let mut config = daemon::Config::new(&self.data_dir, &self.save_dir);
        config.engine.system_proxy = self.system_proxy;
        config.market = plugins::market();
        let mut torrents = transfer_torrent::Config::new(command::directories::torrents(&self.data_dir))?;
        if let Some(addresses) = self.peer_addresses {
            torrents.settings.addresses = addresses;
        }
        config.torrents = Some(torrents);
        config.tools = self
            .svc
            .clone()
            .map(|svc| programs::launcher(svc, programs::USUAL_PATH));
        config.unpacker = self.svc.clone().map(programs::unpacker);
        config.plugins = self.svc.map(|svc| {
            let cache_folder = command::directories::compiled_plugins(&self.data_dir);
            let sandbox = plugins::sandbox(cache_folder, svc, self.language.as_deref());
            Arc::new(sandbox) as Arc<dyn plugin_host::runtime::Runtime>
        });
        // Before the daemon is started, so that nothing needs cleanup if it fails.
        let key = match self.access_key {
            Some(key) => PresetKey::Forced(key),
            None => PresetKey::Initial(AccessKey::random()?),
        };
        let daemon = Daemon::start(config, transports).await?;
        let directory = command::directories::agent(&self.data_dir);
        let mut config = agent::Config::new(agent::Edition::Headless, directory);
        config.bind = Some(self.address);
        config.preset_key = Some(key);
        config.language = self.language;
        let service = Service::start(daemon, config, RUN_GRACE).await?;
        Ok(Host { service })
    }
}

impl Host {
    /// A service that keeps its state in `data_dir` and saves downloads in `save_dir`, unless a queue or task names another
    /// directory. Both paths are absolute. Only one process at a time can use a data directory.
    pub fn builder(data_dir: impl Into<PathBuf>, save_dir: impl Into<PathBuf>) -> Builder {
        Builder {
            data_dir: data_dir.into(),
            save_dir: save_dir.into(),
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            access_key: None,
            language: None,
            system_proxy: SystemProxy::default(),
            http: transfer_http::Config::default(),
            ftp: transfer_ftp::Config::default(),
            sftp: transfer_sftp::Config::default(),
            transports: Vec::new(),
            peer_addresses: None,
            svc: None,
        }
    }

    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.service.agent().local_addr()
    }

    /// The access key, which clients send as `Authorization: Bearer KEY`.
    pub fn access_key(&self) -> Option<AccessKey> {
        self.service.agent().access_key()
    }

    /// The engine, for programs that watch or command downloads without going through an API.
    pub fn engine(&self) -> &Engine {
        self.service.daemon().engine()
    }

    /// The agent, for connections that need no socket.
    pub fn agent(&self) -> &Agent {
        self.service.agent()
    }

    /// Resolves once a client asked that the service ends; [`Host::shutdown`] is then the program's to call.
    pub async fn shutdown_requested(&self) {
        tokio::select! {
            _how_soon = self.service.agent().shutdown_requested() => {}
            () = self.service.daemon().asked_to_stop() => {}
        }
    }

    /// Ends the service. When this returns, all its tasks have ended, everything is saved, and the data directory is free.
    pub async fn shutdown(self) {
        self.service.shutdown(ANSWER_GRACE, RUN_GRACE).await;
    }
}
