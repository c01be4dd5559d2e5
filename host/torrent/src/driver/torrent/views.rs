//! What is shown of a torrent.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
};

use super::Torrent;
use crate::{
    config::PeerSource,
    storage::{Places, Storage},
    view::{FileView, PeerView, PiecesView, Status, TorrentView},
};

/// Seconds over which rates are measured.
const WINDOW: usize = 5;

/// Bytes that were moved in the last seconds.
#[derive(Debug, Default)]
pub(super) struct Rates {
    totals: VecDeque<(u64, u64)>,
}

impl Rates {
    pub(super) fn tick(&mut self, totals: (u64, u64)) {
        if self.totals.len() > WINDOW {
            self.totals.pop_front();
        }
        self.totals.push_back(totals);
    }

    /// Bytes per second, down and up.
    pub(super) fn get(&self) -> (u64, u64) {
        let (Some(first), Some(last)) = (self.totals.front(), self.totals.back()) else {
            return (0, 0);
        };
        let seconds = (self.totals.len() as u64 - 1).max(1);
        ((last.0 - first.0) / seconds, (last.1 - first.1) / seconds)
    }

    pub(super) fn are_set(&self) -> bool {
        self.get() != (0, 0)
    }
}

impl TorrentView {
    pub(in crate::driver) fn new(status: Status) -> Self {
        Self {
            status,
            info: None,
            path: None,
            wanted_bytes: 0,
            done_bytes: 0,
            downloaded: 0,
            uploaded: 0,
            wasted: 0,
            download_rate: 0,
            upload_rate: 0,
            peers: 0,
            seeds: 0,
            banned: 0,
            pieces_have: 0,
            checked_pieces: 0,
        }
    }
}

impl Torrent {
    /// Brings the view up to date.
    pub(super) fn publish(&self) {
        let (download_rate, upload_rate) = self.rates.get();
        let view = self.shared.with(|core| {
            let connected = core.state.peers().filter(|(_, peer)| !peer.is_web());
            let (mut peers, mut seeds) = (0, 0);
            for (_, peer) in connected {
                peers += 1;
                seeds += usize::from(peer.is_seed());
            }
            TorrentView {
                info: self.info.clone(),
                path: self.storage.as_deref().map(Storage::top),
                wanted_bytes: self.wanted_bytes,
                done_bytes: self.done_bytes.min(self.wanted_bytes),
                downloaded: core.downloaded,
                uploaded: core.uploaded,
                wasted: core.state.wasted,
                download_rate,
                upload_rate,
                peers,
                seeds,
                banned: core.state.bans(),
                pieces_have: core
                    .state
                    .have()
                    .map_or(self.have.count(), crate::bitfield::Bitfield::count),
                checked_pieces: self.checked.load(Ordering::Relaxed),
                ..TorrentView::new(self.status.clone())
            }
        });
        self.view.send_replace(Arc::new(view));
    }

    pub(super) fn peers(&self) -> Vec<PeerView> {
        let pieces = self.info.as_ref().map_or(0, metainfo::Info::piece_count);
        self.shared.with(|core| {
            let connected = core.state.peers().filter(|(_, peer)| !peer.is_web());
            let views = connected.map(|(_, peer)| PeerView {
                address: peer.address,
                peer_id: peer.id,
                client: peer.client.clone(),
                source: if peer.is_incoming {
                    PeerSource::Incoming
                } else {
                    core.candidates.source(peer.address).unwrap_or(PeerSource::Incoming)
                },
                pieces: peer.count(pieces),
                have: peer.pieces(pieces),
                download_rate: peer.down.per_second(),
                upload_rate: peer.up.per_second(),
                downloaded: peer.down.total(),
                uploaded: peer.up.total(),
                is_choking_us: peer.is_choking_us,
                is_interested: peer.is_interested,
                is_choked: peer.is_choked,
                is_interesting: peer.is_interesting,
                is_snubbing: peer.is_snubbing,
                is_incoming: peer.is_incoming,
            });
            views.collect()
        })
    }

    pub(super) fn files(&self) -> Vec<FileView> {
        let Some(info) = &self.info else {
            return Vec::new();
        };
        let target = &self.beginning.target;
        let places = self.storage.as_ref().map_or_else(
            || {
                let top = target.name.as_ref().unwrap_or_else(|| info.name());
                Places::renamed(top.to_string(), info, &target.paths)
            },
            |storage| storage.places(),
        );
        let priority = |index| self.priority(index);
        self.shared.with(|core| {
            let have = core.state.have().unwrap_or(&self.have);
            FileView::all(info, &target.directory, &places, have, priority)
        })
    }

    pub(super) fn pieces(&self) -> Option<PiecesView> {
        self.info.as_ref()?;
        self.shared.with(|core| {
            let have = core.state.have().unwrap_or(&self.have);
            Some(PiecesView {
                have: have.as_bytes().to_vec(),
                availability: core.state.availability(),
            })
        })
    }
}
