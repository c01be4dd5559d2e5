//! The distributed hash table (BEP 5), a node for each family of addresses (BEP 32).
//!
//! `node` is the pure state machine; this is what sends, receives, keeps nodes over a restart and finds the first ones.

mod file;
mod id;
mod lookup;
mod message;
mod node;
mod store;
mod table;

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
    path::PathBuf,
    time::{Duration, Instant},
};

use egress::{
    Family, Names, Reach,
    udp::{self, Datagrams},
};
use futures_util::future::join_all;
use metainfo::InfoHash;
use tokio::time::sleep_until;

use crate::{
    client::random,
    peer::{Found, Origin},
    session::{self, Shared},
    status::NodeStatus,
};
use file::Kept;
use id::NodeId;
use node::{Effect, Node, Start};

/// The first nodes are looked up again, if no node is known.
const BOOTSTRAP_RETRY: Duration = Duration::from_secs(30);

/// The longest wait between two such attempts, without a network for example.
const MAX_BOOTSTRAP_RETRY: Duration = Duration::from_mins(10);

/// For looking a first node up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// First nodes that are asked, those of torrents included.
const MAX_BOOTSTRAP: usize = 32;

/// The nodes are kept this often, and at the end.
const KEEP_INTERVAL: Duration = Duration::from_mins(10);

/// After a socket that has failed.
const RETRY: Duration = Duration::from_mins(1);

/// What the table needs of the session's configuration.
#[derive(Debug)]
pub(crate) struct Config {
    addresses: Vec<SocketAddr>,
    bootstrap: Vec<(String, u16)>,
    file: Option<PathBuf>,
    names: Names,
}

impl Config {
    pub(crate) fn of(config: &session::Config) -> Self {
        Self {
            addresses: config.dht_addresses.clone(),
            bootstrap: config.dht_bootstrap.clone(),
            file: config.dht_file.clone(),
            names: config.names.clone(),
        }
    }

    /// The user named nodes in private networks or on this machine.
    fn is_open(&self) -> bool {
        self.bootstrap.iter().any(|(host, _)| match host.parse::<IpAddr>() {
            Ok(address) => egress::address::is_here(address),
            Err(_) => egress::name::is_local(host),
        })
    }

    /// Each family has a file of its own.
    fn file(&self, family: Family) -> Option<PathBuf> {
        let file = self.file.as_ref()?;
        Some(match family {
            Family::V4 => file.clone(),
            Family::V6 => {
                let mut name = file.clone().into_os_string();
                name.push("6");
                name.into()
            }
        })
    }
}

/// Runs until the session stops.
pub(crate) async fn run(config: Config, shared: Shared) {
    let nodes = config
        .addresses
        .iter()
        .map(|address| serve_always(&config, *address, shared.clone()));
    join_all(nodes).await;
}

/// The node of one family, again and again while it is switched on.
async fn serve_always(config: &Config, address: SocketAddr, mut shared: Shared) {
    let family = if address.is_ipv6() { Family::V6 } else { Family::V4 };
    loop {
        let is_on = shared.settings.borrow_and_update().dht();
        if is_on {
            // The port may be taken; any other one serves as well, because nodes learn it from our packets.
            let any = SocketAddr::new(address.ip(), 0);
            match Datagrams::bind(address).or_else(|_| Datagrams::bind(any)) {
                Ok(socket) => {
                    let ended = serve(config, family, &socket, &mut shared).await;
                    report(&shared, family, None);
                    if ended.is_break() {
                        return;
                    }
                }
                Err(error) => tracing::debug!(%address, %error, "the hash table has no socket"),
            }
        }
        tokio::select! {
            () = shared.stop.cancelled() => return,
            changed = shared.settings.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY), if is_on => {}
        }
    }
}

fn report(shared: &Shared, family: Family, node: Option<NodeStatus>) {
    shared.status.send_if_modified(|status| {
        let known = match family {
            Family::V4 => &mut status.dht.v4,
            Family::V6 => &mut status.dht.v6,
        };
        let is_new = *known != node;
        *known = node;
        is_new
    });
}

enum Happened {
    Changed,
    Received(usize, SocketAddr),
    Bootstrap(Vec<SocketAddr>),
    Failed,
    Clock,
    Stop,
}

/// One life of a node.
struct Life<'a> {
    config: &'a Config,
    family: Family,
    socket: &'a Datagrams,
    node: Node,
    reach: Reach,
    bootstrap_at: Instant,
    bootstrap_wait: Duration,
    keep_at: Instant,
}

/// Serves until it is switched off or fails; breaks when the session stops.
async fn serve(config: &Config, family: Family, socket: &Datagrams, shared: &mut Shared) -> ControlFlow<()> {
    let now = Instant::now();
    let kept = config.file(family).and_then(|path| file::read(&path));
    let is_open = config.is_open();
    let start = Start {
        id: kept.as_ref().map_or_else(|| NodeId(random_id()), |kept| kept.id),
        family,
        port: shared.port,
        is_open,
        secret: random_id(),
        seed: u64::from(random()) << 32 | u64::from(random()),
    };
    let mut life = Life {
        config,
        family,
        socket,
        node: Node::new(start, now),
        reach: if is_open { Reach::Anywhere } else { Reach::Global },
        bootstrap_at: now,
        bootstrap_wait: BOOTSTRAP_RETRY,
        keep_at: now + KEEP_INTERVAL,
    };
    let mut effects = Vec::new();
    let known: Vec<_> = kept
        .into_iter()
        .flat_map(|kept| kept.nodes)
        .map(|(_, address)| address)
        .collect();
    life.node.bootstrap(&known, now, &mut effects);
    life.perform(effects, shared).await;
    shared.wanted.mark_changed();
    let ended = life.run(shared).await;
    life.keep();
    ended
}

fn random_id() -> [u8; 20] {
    let mut id = [0; 20];
    getrandom::fill(&mut id).expect("the operating system has random numbers");
    id
}

impl Life<'_> {
    async fn run(&mut self, shared: &mut Shared) -> ControlFlow<()> {
        let mut buffer = [0; message::MAX_BYTES];
        loop {
            let happened = self.next(&mut buffer, shared).await;
            let now = Instant::now();
            let mut effects = Vec::new();
            match happened {
                Happened::Stop => return ControlFlow::Break(()),
                Happened::Failed => return ControlFlow::Continue(()),
                Happened::Changed => {
                    if !shared.settings.borrow_and_update().dht() {
                        shared.settings.mark_changed();
                        return ControlFlow::Continue(());
                    }
                    let wanted = shared.wanted.borrow_and_update().clone();
                    let torrents: BTreeSet<InfoHash> = wanted.iter().map(|wanted| wanted.info_hash).collect();
                    self.node.set_torrents(&torrents, now, &mut effects);
                }
                Happened::Received(length, from) => {
                    self.node.receive(from, &buffer[..length], now, &mut effects);
                }
                Happened::Bootstrap(addresses) => {
                    self.bootstrap_at = now + self.bootstrap_wait;
                    self.bootstrap_wait = (self.bootstrap_wait * 2).min(MAX_BOOTSTRAP_RETRY);
                    self.node.bootstrap(&addresses, now, &mut effects);
                }
                Happened::Clock => {
                    self.node.tick(now, &mut effects);
                    if now >= self.keep_at {
                        self.keep_at = now + KEEP_INTERVAL;
                        self.keep();
                    }
                }
            }
            self.perform(effects, shared).await;
            if let Ok(address) = self.socket.local_address() {
                let nodes = self.node.len();
                report(shared, self.family, Some(NodeStatus { address, nodes }));
            }
        }
    }

    async fn next(&self, buffer: &mut [u8], shared: &mut Shared) -> Happened {
        let wake = self.node.wake_at().min(self.keep_at);
        let needs_nodes = self.node.len() == 0;
        let nodes: Vec<_> = if needs_nodes {
            let wanted = shared.wanted.borrow();
            let nodes = wanted.iter().flat_map(|wanted| wanted.nodes.clone());
            nodes.take(MAX_BOOTSTRAP).collect()
        } else {
            Vec::new()
        };
        let bootstrap = async {
            sleep_until(self.bootstrap_at.into()).await;
            self.first_nodes(&nodes).await
        };
        tokio::select! {
            biased;
            () = shared.stop.cancelled() => Happened::Stop,
            changed = shared.settings.changed() => if changed.is_ok() { Happened::Changed } else { Happened::Stop },
            changed = shared.wanted.changed() => if changed.is_ok() { Happened::Changed } else { Happened::Stop },
            got = self.socket.receive(buffer) => match got {
                Ok((length, from)) => Happened::Received(length, from),
                Err(_) => Happened::Failed,
            },
            () = sleep_until(wake.into()) => Happened::Clock,
            addresses = bootstrap, if needs_nodes => Happened::Bootstrap(addresses),
        }
    }

    /// The addresses of the first nodes. Those of torrents are reached only where those of everybody are.
    async fn first_nodes(&self, of_torrents: &[(String, u16)]) -> Vec<SocketAddr> {
        let named = self.config.bootstrap.iter().chain(of_torrents).take(MAX_BOOTSTRAP);
        let lookups = named.map(|(host, port)| async move {
            let found = udp::resolve(&self.config.names, (host, *port), self.reach, LOOKUP_TIMEOUT).await;
            found.unwrap_or_default()
        });
        join_all(lookups).await.concat()
    }

    async fn perform(&mut self, effects: Vec<Effect>, shared: &Shared) {
        for effect in effects {
            match effect {
                Effect::Send(to, datagram) => {
                    // A datagram that is lost here is as good as one that is lost on its way.
                    let _lost = self.socket.send_to(&datagram, to, self.reach).await;
                }
                Effect::Found(info_hash, peers) => {
                    let found = Found {
                        origin: Origin::Dht,
                        peers,
                    };
                    // The loop that takes it ends after this source.
                    let _ended = shared.found.send((info_hash, found)).await;
                }
            }
        }
    }

    /// Keeps the nodes for the next start. Small, and written once in minutes.
    fn keep(&self) {
        let Some(path) = self.config.file(self.family).filter(|_| self.node.len() > 0) else {
            return;
        };
        let kept = Kept {
            id: self.node.id(),
            nodes: self.node.nodes(),
        };
        if let Err(error) = private_files::replace(&path, &file::write(&kept)) {
            tracing::debug!(%error, "the nodes of the hash table are not kept");
        }
    }
}
