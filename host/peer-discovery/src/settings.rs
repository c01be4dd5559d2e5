//! What the user decides about finding peers.

use std::net::IpAddr;

use transfer::SafeUrl;

/// The most trackers that all torrents may get besides their own. Each of them is asked for each torrent: five hundred
/// torrents with so many already keep the announces busy all the time.
pub const MAX_ADDITIONAL: usize = 100;

/// What may be changed while the session runs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the user, independent of the others"
)]
pub struct Settings {
    /// Asks and serves the distributed hash table (BEP 5).
    pub is_dht_on: bool,
    /// Announces to the local network (BEP 14).
    pub is_lsd_on: bool,
    /// Asks the router for a port that leads here (UPnP, NAT-PMP).
    pub is_port_mapping_on: bool,
    /// Trackers for all torrents that are not private.
    pub additional_trackers: Vec<SafeUrl>,
    /// URLs of lists of trackers for all torrents that are not private; read once a day.
    pub tracker_lists: Vec<SafeUrl>,
    /// The address that trackers are told, for hosts behind an address that they cannot see.
    pub announced_address: Option<IpAddr>,
    /// For trackers over HTTP, lists of trackers, and nothing else: what uses UDP is off with a proxy, because a datagram
    /// would show the address that the proxy hides.
    pub proxy: Option<SafeUrl>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            is_dht_on: true,
            is_lsd_on: true,
            is_port_mapping_on: true,
            additional_trackers: Vec::new(),
            tracker_lists: Vec::new(),
            announced_address: None,
            proxy: None,
        }
    }
}

impl Settings {
    pub(crate) fn dht(&self) -> bool {
        self.is_dht_on && self.proxy.is_none()
    }

    pub(crate) fn lsd(&self) -> bool {
        self.is_lsd_on && self.proxy.is_none()
    }

    pub(crate) fn port_mapping(&self) -> bool {
        self.is_port_mapping_on && self.proxy.is_none()
    }
}
