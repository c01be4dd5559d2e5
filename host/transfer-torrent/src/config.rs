//! What all torrents have in common.

use std::{net::IpAddr, ops::RangeInclusive, path::PathBuf, sync::Arc, time::Duration};

use egress::{ClientConfig, HttpClient, Names, client::ClientError};
use torrent::Encryption;
use transfer::{Lanes, SafeUrl};

use crate::chooser::Chooser;

/// What torrents are downloaded with.
#[derive(Debug)]
pub struct Config {
    /// Private directory of metainfo files and of the records that make a restart fast. Created when it is needed, and
    /// removed at the end if it is empty.
    pub directory: PathBuf,
    /// Where the nodes of the hash table are kept for the next session.
    pub dht_file: Option<PathBuf>,
    /// What the user decides.
    pub settings: Settings,
    /// For trackers, lists of trackers and web servers that have the files.
    pub http: HttpClient,
    /// The name resolver.
    pub names: Names,
    /// Threads for sockets and files.
    pub lanes: Lanes,
    /// Asked which files to download; without it all of them are.
    pub chooser: Option<Arc<dyn Chooser>>,
}

/// Where the nodes of the hash table are kept in the directory.
const DHT_FILE: &str = "dht";

/// For a tracker to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Connections to one tracker or web server that wait for their next request.
const IDLE_CONNECTIONS: usize = 2;

impl Config {
    /// The usual configuration with this directory: threads of its own, the system's names and trust, nobody who is asked.
    pub fn new(directory: impl Into<PathBuf>) -> Result<Self, ClientError> {
        let (directory, names) = (directory.into(), Names::default());
        Ok(Self {
            dht_file: Some(directory.join(DHT_FILE)),
            directory,
            settings: Settings::default(),
            http: HttpClient::new(ClientConfig {
                user_agent: egress::USER_AGENT.to_owned(),
                tls: egress::tls::trusting_system(),
                connect_timeout: CONNECT_TIMEOUT,
                idle_connections: IDLE_CONNECTIONS,
                names: names.clone(),
            })?,
            names,
            lanes: Lanes::default(),
            chooser: None,
        })
    }
}

/// What the user decides for all torrents. Ports and addresses count for the next session, which begins when
/// no torrent runs; the rest at once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices of the user")]
pub struct Settings {
    /// Ports of which the first free one accepts peers.
    pub ports: RangeInclusive<u16>,
    /// Addresses on which peers are accepted; none: they are not.
    pub addresses: Vec<IpAddr>,
    /// Ask and serve the distributed hash table (BEP 5).
    pub is_dht_on: bool,
    /// Announce to the local network (BEP 14).
    pub is_lsd_on: bool,
    /// Let peers tell each other about peers (BEP 11).
    pub is_exchange_on: bool,
    /// Ask the router for a port that leads here (UPnP, NAT-PMP).
    pub is_port_mapping_on: bool,
    /// Trackers for all torrents that are not private.
    pub trackers: Vec<SafeUrl>,
    /// URLs of lists of trackers for all torrents that are not private.
    pub tracker_lists: Vec<SafeUrl>,
    /// The proxy of trackers over HTTP and of their lists. With one, nothing is sent over UDP, which would show the address
    /// that the proxy hides.
    pub proxy: Option<SafeUrl>,
    /// Whether connections to peers look like random bytes.
    pub encryption: Encryption,
    /// The most connections of all torrents.
    pub max_connections: u16,
    /// The most connections of one.
    pub max_connections_per_torrent: u16,
}

impl Default for Settings {
    /// The ports that clients have used since the first one, and everything that finds peers.
    fn default() -> Self {
        Self {
            ports: 6881..=6891,
            addresses: vec![IpAddr::from([0, 0, 0, 0]), IpAddr::from([0u16; 8])],
            is_dht_on: true,
            is_lsd_on: true,
            is_exchange_on: true,
            is_port_mapping_on: true,
            trackers: Vec::new(),
            tracker_lists: Vec::new(),
            proxy: None,
            encryption: Encryption::default(),
            max_connections: 200,
            max_connections_per_torrent: 50,
        }
    }
}

impl Settings {
    pub(crate) fn discovery(&self) -> peer_discovery::Settings {
        peer_discovery::Settings {
            is_dht_on: self.is_dht_on,
            is_lsd_on: self.is_lsd_on,
            is_port_mapping_on: self.is_port_mapping_on,
            additional_trackers: self.trackers.clone(),
            tracker_lists: self.tracker_lists.clone(),
            announced_address: None,
            proxy: self.proxy.clone(),
        }
    }
}
