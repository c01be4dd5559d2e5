//! A live torrent: the engine's handle, and the task that feeds it with peers.

use std::collections::VecDeque;

use egress::peer::PeerReach;
use metainfo::InfoHash;
use peer_discovery::{Counters, Found, Origin, Subscription};
use tokio::{sync::oneshot, task::JoinHandle, time::Instant};
use tokio_util::task::TaskTracker;
use torrent::{CommandError, PeerSource, Status, Torrent, TorrentView};
use transfer::{Failure, FailureKind, Outcome};

/// Peers that are asked for at once.
pub(crate) const WANTED_PEERS: u32 = 80;

/// Batches of peers that are kept for the torrent whose metadata is being fetched.
const MAX_HEARD: usize = 8;

/// The search for the peers of a torrent, which outlives the torrent that fetches the metadata: trackers are asked again
/// only after half an hour or so.
#[derive(Debug)]
pub(crate) struct Search {
    subscription: Subscription,
    /// The newest batches that were found while the metadata was fetched.
    heard: VecDeque<Found>,
    is_for_metadata: bool,
}

impl Search {
    pub(crate) fn new(subscription: Subscription, is_for_metadata: bool) -> Self {
        let heard = VecDeque::new();
        Self {
            subscription,
            heard,
            is_for_metadata,
        }
    }

    fn note(&mut self, found: &Found) {
        if self.is_for_metadata {
            self.heard.truncate(MAX_HEARD - 1);
            self.heard.push_front(found.clone());
        }
    }

    /// The search for the same torrent with its metadata. Peers of a private torrent come from its trackers alone.
    fn with_metadata(mut self, is_private: bool) -> Self {
        self.is_for_metadata = false;
        self.heard
            .retain(|found| !is_private || found.origin == Origin::Tracker);
        self
    }
}

/// A torrent of the session, and what belongs to it. Dropping it removes it in the background.
#[derive(Debug)]
pub(crate) struct Swarm {
    pub(crate) torrent: Torrent,
    /// The bytes uploaded since it was added that earlier runs have reported.
    pub(crate) counted: u64,
    /// When its last run ended.
    pub(crate) left_at: Option<Instant>,
    /// Says how the task that feeds it is to end; dropping it ends the search as well.
    end: oneshot::Sender<Release>,
    feeder: JoinHandle<Option<Search>>,
}

/// The torrent leaves the session, and the search for its peers goes on.
#[derive(Debug)]
struct Release;

impl Swarm {
    /// Feeds `torrent` with what `search` finds, and has found, until it is closed.
    pub(crate) fn new(torrent: Torrent, search: Search, max_peers: u32, tasks: &TaskTracker) -> Self {
        let (end, ended) = oneshot::channel();
        let feeder = Box::new(Feeder {
            torrent: torrent.clone(),
            search,
            max_peers,
            is_complete: false,
            is_private: false,
        });
        Self {
            torrent,
            counted: 0,
            left_at: None,
            end,
            feeder: tasks.spawn(feeder.run(ended)),
        }
    }

    pub(crate) fn info_hash(&self) -> InfoHash {
        self.torrent.info_hash()
    }

    /// Whether it is still part of the session and has not failed.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.torrent.view().status, Status::Failed(_) | Status::Removed)
    }

    /// As [`Swarm::close`], except that the search for peers goes on for the same torrent.
    pub(crate) async fn release(self) -> Option<Search> {
        let _ended = self.end.send(Release);
        self.feeder.await.ok().flatten()
    }

    /// Syncs its files, writes its record and takes it out of the session; its trackers learn it.
    pub(crate) async fn close(self) {
        drop(self.end);
        let _panicked = self.feeder.await;
    }
}

struct Feeder {
    torrent: Torrent,
    search: Search,
    max_peers: u32,
    /// Everything wanted is there, and trackers know.
    is_complete: bool,
    is_private: bool,
}

impl Feeder {
    async fn run(mut self: Box<Self>, mut end: oneshot::Receiver<Release>) -> Option<Search> {
        let mut watch = self.torrent.watch();
        watch.mark_changed();
        let mut is_live = true;
        let mut finds = true;
        // What rarely happens is in boxes: a future has room for its largest part, and hundreds of torrents seed.
        for found in std::mem::take(&mut self.search.heard) {
            Box::pin(self.found(found)).await;
        }
        let release = loop {
            tokio::select! {
                release = &mut end => break release,
                found = self.search.subscription.next(), if finds => match found {
                    Some(found) => Box::pin(self.found(found)).await,
                    None => finds = false,
                },
                changed = watch.changed(), if is_live => match changed {
                    Ok(()) => Box::pin(self.report()).await,
                    Err(_) => is_live = false,
                },
            }
        };
        Box::pin(self.report()).await;
        if let Err(CommandError::Failed(failure)) = Box::pin(self.torrent.close()).await {
            tracing::warn!(torrent = %self.torrent.info_hash(), %failure, "the record of a torrent was not written");
        }
        if let Ok(Release) = release {
            return Some(self.search.with_metadata(self.is_private));
        }
        Box::pin(self.search.subscription.stop()).await;
        None
    }

    async fn found(&mut self, found: Found) {
        self.search.note(&found);
        let source = match found.origin {
            Origin::Tracker => PeerSource::Tracker,
            Origin::Dht => PeerSource::Dht,
            Origin::Lsd => PeerSource::LocalNetwork,
        };
        // Discovery has left out peers on this machine that nothing of the user's led to.
        let _gone = self
            .torrent
            .add_peers(found.peers, source, PeerReach::AlsoThisMachine)
            .await;
    }

    async fn report(&mut self) {
        let view = self.torrent.view();
        if !self.is_private && view.info.as_ref().is_some_and(metainfo::Info::is_private) {
            self.is_private = true;
            self.search.subscription.set_private().await;
        }
        // Until its files are looked at, what was said when it was added holds.
        if view.wanted_bytes > 0 || !matches!(view.status, Status::Paused | Status::Checking) {
            self.search.subscription.report(counters(&view, self.max_peers));
        }
        if view.status == Status::Seeding && !std::mem::replace(&mut self.is_complete, true) {
            if view.downloaded > 0 {
                self.search.subscription.completed().await;
            } else {
                // Trackers were told what was missing before its files were looked at.
                self.search.subscription.announce_now().await;
            }
        }
    }
}

/// What trackers are told of a torrent.
fn counters(view: &TorrentView, max_peers: u32) -> Counters {
    let pieces = view.info.as_ref().map(metainfo::Info::piece_count);
    let is_whole = pieces.is_some_and(|pieces| pieces == view.pieces_have);
    let missing = view.wanted_bytes.saturating_sub(view.done_bytes);
    let peers = u32::try_from(view.peers).unwrap_or(u32::MAX);
    Counters {
        uploaded: view.uploaded,
        downloaded: view.downloaded,
        left: if is_whole { 0 } else { missing.max(1) },
        is_partial_seed: !is_whole && view.status == Status::Seeding,
        wanted_peers: WANTED_PEERS.min(max_peers.saturating_sub(peers)),
    }
}

/// The end of a run whose torrent is gone.
pub(crate) fn removed() -> Outcome {
    Outcome::Failed(Failure::new(
        FailureKind::Internal,
        "the torrent left its session although nothing asked for that; resume it",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    fn size<A, B, F>(_future_of: impl FnOnce(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_torrent_that_only_seeds_takes_little_memory() {
        let (feeder, run) = (size(Feeder::run), size(run::run));
        assert!(feeder <= 384, "{feeder}");
        assert!(run <= 1536, "{run}");
    }
}
