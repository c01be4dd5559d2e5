//! [`Link`]: the device link of one service. It drives the pure parts: takes requests, asks other devices, and stores
//! before it acknowledges.
//!
//! Everything durable is behind one lock that is held across a commit, so that memory and disk never differ in order. If
//! a commit fails, it may or may not have happened: the state is dropped, and loaded again before its next use.

mod clock;
mod exchange;
mod owner;
mod pair;
mod receive;
mod rounds;
mod stored;

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, OnceLock},
    time::Instant,
};

use egress::Names;
use futures_util::future::BoxFuture;
use protocol::{LinkDeviceInfo, LinkDiscoveredPeer, LinkPairingRequestDto, LinkRow, LinkRows};
use tokio::sync::{Notify, oneshot};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    clock::{lock, unix_ms},
    pair::Outgoing,
    stored::Known,
};
use crate::{
    constants::{MAX_ADDRESSES, MAX_NAME_BYTES},
    crypto::{
        identity::{Fingerprint, Identity},
        transcript::About,
    },
    device::is_dialled,
    discovery::{Mdns, Snapshot},
    error::Unavailable,
    message::Task,
    pairing::{
        initiator::Places,
        refusal::Refusal,
        responder::{Reply, Responder},
    },
    peer::Peers,
};

/// What changed, for clients that follow.
#[derive(Debug)]
pub enum Change {
    /// The paired devices.
    Devices(Vec<LinkDeviceInfo>),
    /// The devices that ask to be paired.
    Requests(Vec<LinkPairingRequestDto>),
    /// The devices nearby.
    Discovered(Vec<LinkDiscoveredPeer>),
}

/// A download that a paired device sends.
#[derive(Debug)]
pub struct Delivery {
    /// The download.
    pub task: Task,
    /// Who sends it.
    pub from: Fingerprint,
    /// That device's name.
    pub device_name: String,
    /// Whether its URL may lead to private addresses.
    pub allow_private: bool,
    /// The id that the task must get. The same delivery has the same one, however often it is made.
    pub task_id: String,
}

/// Why a delivery is not taken.
#[derive(Debug)]
pub enum NotTaken {
    /// The task cannot be: the sender must change it.
    Refused(String),
    /// Not now.
    Unavailable(String),
}

/// What the link needs of the service that it is part of.
pub trait Service: std::fmt::Debug + Send + Sync + 'static {
    /// Reads what is stored.
    fn load(&self) -> BoxFuture<'_, Result<Vec<LinkRow>, Unavailable>>;

    /// Stores: when this resolves, it is on the disk, all of it.
    fn commit(&self, rows: LinkRows) -> BoxFuture<'_, Result<(), Unavailable>>;

    /// Creates the task of a delivery, and gives its id.
    fn deliver(&self, delivery: Delivery) -> BoxFuture<'_, Result<String, NotTaken>>;

    /// The default download directory; empty: not known yet.
    fn save_dir(&self) -> String;

    /// The interfaces on which this device announces itself and searches, by name; an empty list is all of them, `None`
    /// that it does not.
    fn interfaces(&self) -> Option<Vec<String>>;

    /// Whether the device link is switched on.
    fn is_offered(&self) -> bool;

    /// Publishes a change. Must not wait.
    fn publish(&self, change: Change);
}

/// What a link is started with.
#[derive(Debug, Clone)]
pub struct Config {
    /// What this device says of itself.
    pub about: About,
    /// Where its API listens.
    pub listener: SocketAddr,
    /// The name resolver.
    pub names: Names,
}

impl Config {
    /// With the system's resolver.
    pub fn new(about: About, listener: SocketAddr) -> Self {
        Self {
            about,
            listener,
            names: Names::default(),
        }
    }

    /// Whether other machines can connect.
    fn is_reachable(&self) -> bool {
        !self.listener.ip().is_loopback()
    }

    /// The only address where the API listens; `None`: on all of this machine's.
    fn only_address(&self) -> Option<IpAddr> {
        Some(self.listener.ip()).filter(|address| !address.is_unspecified())
    }

    /// A name as devices may have it.
    pub fn plain_name(name: &str) -> String {
        let mut plain: String = name.chars().filter(|char| !char.is_control()).collect();
        plain = plain.trim().to_owned();
        while plain.len() > MAX_NAME_BYTES {
            plain.pop();
        }
        plain
    }
}

/// The device link. Clones share it.
#[derive(Debug, Clone)]
pub struct Link(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: Config,
    service: Arc<dyn Service>,
    peers: Peers,
    identity: OnceLock<Arc<Identity>>,
    known: tokio::sync::Mutex<Option<Known>>,
    pairing: Mutex<Pairing>,
    nearby: Mutex<Nearby>,
    /// Devices that answered when they were last asked.
    online: Mutex<HashSet<Fingerprint>>,
    /// Devices whose outbox is being sent.
    sending: Mutex<HashSet<Fingerprint>>,
    /// Devices of which downloads are being taken, and how many.
    receiving: Mutex<HashMap<Fingerprint, usize>>,
    /// Notified when a deadline of a pairing may have changed.
    deadlines: Notify,
    /// Something may be sent or asked before its time.
    wake: Notify,
    tracker: TaskTracker,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Pairing {
    responder: Responder,
    outgoing: Places<Outgoing>,
    /// Third messages that wait, by session.
    waiting: HashMap<String, oneshot::Sender<Result<Reply, Refusal>>>,
}

#[derive(Debug, Default)]
struct Nearby {
    snapshot: Snapshot,
    mdns: Mdns,
}

impl Link {
    /// A link whose background work is spawned on `tracker` and ends with `stop`.
    pub fn start(
        config: Config,
        service: Arc<dyn Service>,
        tracker: &TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self, egress::client::ClientError> {
        let pairing = Pairing {
            responder: Responder::new(config.about.clone()),
            outgoing: Places::default(),
            waiting: HashMap::new(),
        };
        let link = Self(Arc::new(Inner {
            peers: Peers::new(config.names.clone())?,
            config,
            service,
            identity: OnceLock::new(),
            known: tokio::sync::Mutex::default(),
            pairing: Mutex::new(pairing),
            nearby: Mutex::default(),
            online: Mutex::default(),
            sending: Mutex::default(),
            receiving: Mutex::default(),
            deadlines: Notify::new(),
            wake: Notify::new(),
            tracker: tracker.clone(),
            stop,
        }));
        link.clone().spawn(link.clone().expire_pairings());
        link.clone().spawn(link.clone().poll());
        Ok(link)
    }

    /// Spawns work that ends with the link.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.0.stop.clone();
        self.0.tracker.spawn(stop.run_until_cancelled_owned(work));
    }

    /// Carries work out to its end even if the caller goes away; the end of the service stops it.
    async fn finished<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        let stop = self.0.stop.clone();
        let done = self.0.tracker.spawn(stop.run_until_cancelled_owned(work)).await;
        let ending = || Unavailable("the service is ending".to_owned());
        done.map_err(|_| ending())?.ok_or_else(ending)
    }

    /// This device's fingerprint for `/ping`: once it is known, and while the link is switched on.
    pub fn announced_fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint().filter(|_| self.0.service.is_offered())
    }

    /// This device's fingerprint, once it is known.
    pub fn fingerprint(&self) -> Option<&Fingerprint> {
        self.0.identity.get().map(|identity| identity.fingerprint())
    }

    /// What this device says of itself.
    pub fn about(&self) -> &About {
        &self.0.config.about
    }

    /// Where this device can be reached: at most four addresses, the one towards `peer` first.
    fn addresses(&self, peer: Option<IpAddr>) -> Vec<String> {
        let config = &self.0.config;
        if !config.is_reachable() {
            return Vec::new();
        }
        let all: Vec<IpAddr> = if let Some(only) = config.only_address() {
            vec![only]
        } else {
            let towards = peer.and_then(egress::udp::own_address_towards);
            let others = if_addrs::get_if_addrs().unwrap_or_default();
            let others = others.into_iter().map(|interface| interface.ip());
            towards.into_iter().chain(others).collect()
        };
        let mut addresses: Vec<String> = Vec::new();
        for address in all.into_iter().filter(|address| is_dialled(*address)) {
            let address = SocketAddr::new(address, config.listener.port()).to_string();
            if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
                addresses.push(address);
            }
        }
        addresses
    }

    fn publish_requests(&self) {
        let requests = lock(&self.0.pairing).responder.requests(Instant::now(), unix_ms());
        self.0.service.publish(Change::Requests(requests));
    }
}
