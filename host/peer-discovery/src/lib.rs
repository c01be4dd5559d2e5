//! Where the peers of a torrent come from: trackers, the distributed hash table, the local network; and how peers find us:
//! port mapping.
//!
//! *Owns* the protocols of trackers over HTTP and UDP and when which one is asked, a node of the hash table, discovery in
//! the local network, lists of trackers, and the ports that routers open.
//!
//! *Never* connects to a peer, and knows no piece and no task. Every address that it returns is a claim of others.
//!
//! Start reading at [`Discovery`] and [`Subscription`], then `state::State::apply` (trackers) and `dht::node`.
//!
//! # Layers
//!
//! - `handle`: the session and a torrent's subscription
//! - `driver`: the loop that owns them
//! - `dht`, `lsd`, `mapping`, `tracker_list`: what torrents share
//! - `session`: what a session begins with, and what its parts share
//! - `client`: asks trackers
//! - `state`: when which tracker is asked
//! - `tracker`: what is asked and answered
//! - `peer`, `settings`, `status`: vocabulary

mod client;
mod dht;
mod driver;
mod handle;
mod lsd;
mod mapping;
mod peer;
mod session;
mod settings;
mod state;
mod status;
mod tracker;
mod tracker_list;

pub use handle::{Discovery, Subscription};
pub use peer::{Found, MAX_BATCH, Origin, is_usable};
pub use session::{Config, DHT_BOOTSTRAP, ListView, STOP_TIME, TorrentSpec};
pub use settings::{MAX_ADDITIONAL, Settings};
pub use state::{TrackerSource, TrackerStatus, TrackerView};
pub use status::{DhtStatus, MappingStatus, NodeStatus, Status};
pub use tracker::Counters;
pub use tracker_list::parse as parse_tracker_list;
