//! What is known of a tracker, for interfaces.

use std::time::Instant;

use transfer::SafeUrl;

/// Who named a tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackerSource {
    /// The torrent, or the user for this torrent.
    Torrent,
    /// The user, for all torrents.
    Custom,
    /// A list of trackers that the user subscribed to.
    List,
}

/// What becomes of a tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackerStatus {
    /// It was not asked yet: it is behind another one of its tier, or has no turn yet.
    NotContacted,
    /// It is being asked.
    Announcing,
    /// Its last answer was one.
    Working,
    /// Its last answer was none, or a refusal.
    Failed,
    /// It asked never to be asked again (BEP 31).
    Disabled,
}

/// A tracker of a torrent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerView {
    /// May hold a secret in its path and query; [`SafeUrl`] prints without the query.
    pub url: SafeUrl,
    /// From 0.
    pub tier: usize,
    /// Who named it.
    pub source: TrackerSource,
    /// What becomes of it.
    pub status: TrackerStatus,
    /// Peers of the last answer.
    pub peers: Option<usize>,
    /// Complete peers, as the tracker counts.
    pub seeds: Option<u32>,
    /// Incomplete peers.
    pub leechers: Option<u32>,
    /// Completed downloads.
    pub downloads: Option<u32>,
    /// When it is asked next; `None` if it is being asked, is not its tier's turn or is disabled.
    pub next_announce: Option<Instant>,
    /// Its refusal or warning, or why there was no answer.
    pub message: Option<String>,
}
