//! The protocols of trackers: what is asked, what is answered, and why there is no answer. Pure.

pub(crate) mod http;
pub(crate) mod text;
pub(crate) mod udp;

use std::{net::IpAddr, net::SocketAddr, time::Duration};

use metainfo::InfoHash;

/// The most peers that are taken from one answer. At most [`crate::MAX_BATCH`] are asked for; some trackers ignore that.
pub(crate) const MAX_PEERS: usize = crate::MAX_BATCH;

/// What an announce tells beyond the counters (BEP 3, BEP 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    /// A regular one.
    None,
    /// The first one to a tracker.
    Started,
    /// The download has just become complete.
    Completed,
    /// The torrent ends here.
    Stopped,
    /// All that was selected is complete, but not the torrent.
    Paused,
}

/// What a torrent has moved, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sent to peers in this session.
    pub uploaded: u64,
    /// Received from peers in this session.
    pub downloaded: u64,
    /// Missing until the torrent is complete. Without an info dictionary this is unknown; say at least 1.
    pub left: u64,
    /// All that was selected is there, though something is missing.
    pub is_partial_seed: bool,
    /// Peers that would be welcome; 0 if there are enough.
    pub wanted_peers: u32,
}

/// An announce.
#[derive(Debug, Clone)]
pub(crate) struct Announce {
    pub(crate) info_hash: InfoHash,
    pub(crate) peer_id: [u8; 20],
    /// Tells our announces from those of others behind the same address, and is the same for a torrent's life.
    pub(crate) key: u32,
    pub(crate) port: u16,
    pub(crate) counters: Counters,
    pub(crate) event: Event,
    /// The address to tell the tracker, if the user set one.
    pub(crate) address: Option<IpAddr>,
    /// What the tracker gave to be returned to it.
    pub(crate) tracker_id: Option<Box<[u8]>>,
}

impl Announce {
    fn wanted_peers(&self) -> u32 {
        let most = u32::try_from(MAX_PEERS).unwrap_or(u32::MAX);
        if self.event == Event::Stopped {
            0
        } else {
            self.counters.wanted_peers.min(most)
        }
    }
}

/// A tracker's answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) interval: Option<Duration>,
    pub(crate) min_interval: Option<Duration>,
    pub(crate) seeds: Option<u32>,
    pub(crate) leechers: Option<u32>,
    /// How often the torrent was downloaded.
    pub(crate) downloads: Option<u32>,
    pub(crate) warning: Option<String>,
    pub(crate) tracker_id: Option<Box<[u8]>>,
    /// Our address, as the tracker sees it (BEP 24).
    pub(crate) own_address: Option<IpAddr>,
    /// At most [`MAX_PEERS`].
    pub(crate) peers: Vec<SocketAddr>,
}

/// When a tracker that failed may be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    /// It did not say.
    Default,
    /// After this time (BEP 31, or `Retry-After`).
    After(Duration),
    /// Never by itself (BEP 31).
    Never,
}

/// Why a tracker gave no peers. The text is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct TrackerFailure {
    /// What failed; nothing secret of the URL, no control characters.
    pub(crate) message: String,
    /// When to ask again.
    pub(crate) retry: Retry,
}

impl TrackerFailure {
    pub(crate) fn new(message: impl AsRef<str>) -> Self {
        Self {
            message: text::shown(message.as_ref()),
            retry: Retry::Default,
        }
    }
}
