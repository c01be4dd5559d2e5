//! The state of what torrents share, for interfaces.

use std::net::{IpAddr, SocketAddr};

/// The sources that all torrents share, for interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// The hash table.
    pub dht: DhtStatus,
    /// Why the local network is not asked, though it should be.
    pub lsd_error: Option<String>,
    /// The port that the router opened.
    pub mapping: MappingStatus,
}

/// The state of the hash table, for interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DhtStatus {
    /// The node of IPv4, if it runs.
    pub v4: Option<NodeStatus>,
    /// The node of IPv6, if it runs.
    pub v6: Option<NodeStatus>,
}

/// A node of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    /// Its socket.
    pub address: SocketAddr,
    /// How many other nodes it knows.
    pub nodes: usize,
}

/// The port that the router opened, for interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MappingStatus {
    /// The port that leads to ours; trackers are told this one.
    pub external_port: Option<u16>,
    /// The router's address on the other side, as it says.
    pub external_address: Option<IpAddr>,
    /// Why there is none.
    pub error: Option<String>,
}
