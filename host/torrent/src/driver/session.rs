//! All torrents, and the port on which peers connect to them.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use admission::{ConnectionSlots, Limits, throttle::Source};
use egress::peer;
use metainfo::InfoHash;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, broadcast, mpsc, watch},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{Failure, FailureKind};

use super::{
    buffers::Budget,
    environment::Environment,
    introduction,
    limits::{HANDSHAKE_TIME, MAX_COMMANDS, MAX_EVENTS},
    permits::Permits,
    torrent,
};
use crate::{
    config::{Connections, Encryption, SessionConfig, TorrentSpec},
    handle::{Command, Incoming, Torrent},
    storage::resume::ResumeFile,
    view::{Event, Status, TorrentView},
};

/// The first letters of our identity, as clients choose them: two letters and a version.
const CLIENT: &[u8; 8] = b"-SV0100-";

/// Connections of one address that have not sent their handshake.
const MAX_NEW_PER_SOURCE: usize = 8;

/// Connections of all addresses that have not.
const MAX_NEW: usize = 64;

/// Threads that open, sync and rename files at the same time.
const MAX_FILE_WORKERS: usize = 8;

/// Accepted connections of all kinds, however many the user allows.
const MAX_ACCEPTED: usize = 10_000;

/// How long accepting pauses when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// All torrents. Clones are the same session.
#[derive(Debug, Clone)]
pub struct Session(Arc<Environment>);

/// Why a session did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No port of the range is free.
    #[error("cannot accept peers on {address}, ports {first} to {last}; choose another range")]
    Ports {
        /// The address.
        address: IpAddr,
        /// The first port.
        first: u16,
        /// The last port.
        last: u16,
        /// What happened at the last one.
        source: io::Error,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    Random,
}

/// Why a torrent was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// Its peers cannot be reached through the proxy.
    #[error("peers cannot be reached through a proxy of scheme {scheme}; use http, socks4 or socks5")]
    Proxy {
        /// The proxy's scheme.
        scheme: String,
    },
    /// The session has it already.
    #[error("the torrent {0} is in the session already")]
    Duplicate(InfoHash),
    /// The session is ending.
    #[error("the session is ending")]
    Stopping,
}

impl Session {
    /// Starts accepting peers. Without addresses none are accepted; connections are still made. Must be called within a runtime.
    pub fn start(config: SessionConfig) -> Result<Self, StartError> {
        let listeners = listen(&config)?;
        let port = listeners
            .first()
            .and_then(|listener| listener.local_addr().ok())
            .map(|address| address.port());
        let mut peer_id = [0; 20];
        getrandom::fill(&mut peer_id).map_err(|_| StartError::Random)?;
        peer_id[..8].copy_from_slice(CLIENT);
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let inner = Arc::new(Environment {
            peer_id,
            port,
            state_directory: config.state_directory,
            lanes: config.lanes,
            filter: config.filter,
            webseeds: config.webseeds,
            names: config.names,
            handles: Arc::default(),
            budget: Budget::default(),
            file_permits: Semaphore::new(MAX_FILE_WORKERS),
            check_permits: Arc::new(Semaphore::new(processors.clamp(1, 4))),
            disk_permits: Arc::new(Semaphore::new(processors.clamp(2, 8))),
            connections: Permits::new(config.connections.total),
            half_open: Permits::new(config.connections.half_open),
            per_torrent: AtomicUsize::new(config.connections.per_torrent),
            is_exchange_on: AtomicBool::new(config.is_exchange_on),
            encryption: Mutex::new(config.encryption),
            events: broadcast::channel(MAX_EVENTS).0,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            torrents: Mutex::default(),
            slots: ConnectionSlots::new(Limits {
                // Those that have sent their handshake are counted as connections.
                total: MAX_ACCEPTED,
                unauthenticated: MAX_NEW,
                unauthenticated_per_source: MAX_NEW_PER_SOURCE,
            }),
        });
        for listener in listeners {
            inner.tasks.spawn(accept(Arc::clone(&inner), listener));
        }
        Ok(Self(inner))
    }

    /// Port on which peers are accepted.
    pub fn port(&self) -> Option<u16> {
        self.0.port
    }

    /// Our identity towards peers and trackers.
    pub fn peer_id(&self) -> [u8; 20] {
        self.0.peer_id
    }

    /// What happens to torrents from now on. A subscriber that lags behind loses the oldest events, and is told so.
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.0.events.subscribe()
    }

    /// Adds a torrent. What its files need is reported by its status.
    pub fn add(&self, spec: TorrentSpec) -> Result<Torrent, AddError> {
        // In a box, so that it does not lie again in each future that it is passed to.
        let spec = Box::new(spec);
        let info_hash = spec.content.info_hash();
        if let Some(proxy) = spec.proxy.as_ref().filter(|proxy| !peer::can_lead(proxy)) {
            return Err(AddError::Proxy {
                scheme: proxy.scheme().to_owned(),
            });
        }
        let mut torrents = self.0.lock();
        if self.0.stop.is_cancelled() {
            return Err(AddError::Stopping);
        }
        if torrents.contains_key(&info_hash) {
            return Err(AddError::Duplicate(info_hash));
        }
        let (commands, received) = mpsc::channel(MAX_COMMANDS);
        let (view, viewed) = watch::channel(Arc::new(TorrentView::new(Status::Paused)));
        let torrent = Torrent {
            info_hash,
            commands,
            view: viewed,
        };
        torrents.insert(info_hash, torrent.clone());
        drop(torrents);
        let (inner, added) = (Arc::clone(&self.0), torrent.view.clone());
        self.0.tasks.spawn(async move {
            let (directory, lanes) = (spec.directory.clone(), inner.lanes.clone());
            let session = Arc::clone(&inner);
            let ran = lanes
                .run(&directory, move || torrent::run(session, spec, received, view))
                .await;
            if let Err(error) = ran {
                tracing::error!(%info_hash, %error, "a torrent ended");
            }
            inner.take_out(info_hash, &added);
        });
        Ok(torrent)
    }

    /// Changes the limits of connections. Those that are open stay.
    pub fn set_connections(&self, connections: Connections) {
        self.0.connections.set(connections.total);
        self.0.half_open.set(connections.half_open);
        self.0.per_torrent.store(connections.per_torrent, Ordering::Relaxed);
    }

    /// Changes whether peers tell each other about peers. At once; peers that are connected may learn of it when they
    /// connect again.
    pub fn set_exchange(&self, is_on: bool) {
        self.0.is_exchange_on.store(is_on, Ordering::Relaxed);
    }

    /// Changes whether connections to peers are obfuscated. Those that are open stay.
    pub fn set_encryption(&self, encryption: Encryption) {
        *self.0.encryption.lock().unwrap_or_else(PoisonError::into_inner) = encryption;
    }

    /// Removes the record of a torrent that is not in the session: nothing of it is known afterwards, and files of it belong
    /// to the user. A torrent without a record is no failure.
    pub async fn forget(&self, info_hash: InfoHash) -> Result<(), Failure> {
        if self.get(info_hash).is_some() {
            let message = format!("the torrent {info_hash} is in the session; remove it");
            return Err(Failure::new(FailureKind::InUse, message));
        }
        let mut record = ResumeFile::new(&self.0.state_directory, info_hash);
        self.0.blocking(move || record.remove()).await
    }

    /// The torrent of this hash.
    pub fn get(&self, info_hash: InfoHash) -> Option<Torrent> {
        self.0.lock().get(&info_hash).cloned()
    }

    /// All torrents.
    pub fn torrents(&self) -> Vec<Torrent> {
        self.0.lock().values().cloned().collect()
    }

    /// Stops all torrents, and waits until their files are synced and their records written.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

/// Listens on the first port that is free on all addresses. An address that the system does not have, as without IPv6, is
/// left out if there is another one.
fn listen(config: &SessionConfig) -> Result<Vec<TcpListener>, StartError> {
    let mut failed = None;
    for port in config.ports.clone() {
        let mut listeners = Vec::new();
        let mut is_taken = false;
        for address in &config.addresses {
            // With port 0, the system chooses one; the other addresses then use the same.
            let chosen = listeners
                .first()
                .and_then(|listener: &TcpListener| listener.local_addr().ok());
            let port = chosen.map_or(port, |chosen| chosen.port());
            match peer::listen(SocketAddr::new(*address, port)) {
                Ok(listener) => listeners.push(listener),
                Err(error) => {
                    is_taken |= error.kind() == io::ErrorKind::AddrInUse;
                    failed = Some((*address, error));
                }
            }
        }
        if !listeners.is_empty() && !is_taken {
            return Ok(listeners);
        }
    }
    match failed {
        None => Ok(Vec::new()),
        Some((address, source)) => Err(StartError::Ports {
            address,
            first: *config.ports.start(),
            last: *config.ports.end(),
            source,
        }),
    }
}

/// Accepts peers until the session stops.
async fn accept(session: Arc<Environment>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = session.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let Some(slot) = session.slots.take(Some(Source::of(address.ip()))) else {
                    continue;
                };
                let session = Arc::clone(&session);
                let tasks = session.tasks.clone();
                tasks.spawn(async move {
                    tokio::select! {
                        () = slot.evicted() => {}
                        () = session.stop.cancelled() => {}
                        () = route(&session, stream, address, &slot) => {}
                    }
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot accept a peer");
                session.slots.evict_oldest();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Reads a peer's handshake, and hands the connection to its torrent.
async fn route(
    session: &Environment,
    mut stream: TcpStream,
    address: SocketAddr,
    slot: &Arc<admission::ConnectionSlot<Source>>,
) {
    let address = SocketAddr::new(address.ip().to_canonical(), address.port());
    if !session.allows(address.ip()) {
        return;
    }
    let torrents = || session.lock().keys().copied().collect();
    let hearing = introduction::hear(&mut stream, session.encryption(), torrents);
    let Ok(Ok((handshake, keys))) = timeout(HANDSHAKE_TIME, hearing).await else {
        return;
    };
    let torrent = session
        .lock()
        .get(&handshake.info_hash)
        .map(|torrent| torrent.commands.clone());
    let (Some(torrent), Ok(stream)) = (torrent, stream.into_std()) else {
        return;
    };
    slot.authenticate();
    let incoming = Incoming {
        stream,
        address,
        handshake,
        keys,
        slot: Arc::clone(slot),
    };
    // A torrent that has too much to do accepts no more peers.
    let _is_full = torrent.try_send(Box::new(Command::Join(incoming)));
}
