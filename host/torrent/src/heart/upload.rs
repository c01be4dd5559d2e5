//! What peers get from us: pieces and metadata. Pure.

use super::{CloseReason, Effect, PeerId, State, Violation, choke::Candidate, peer::Peer};
use crate::{
    geometry::Block,
    wire::{
        extension::{MAX_QUEUED_REQUESTS, METADATA_BLOCK_BYTES, Metadata},
        message::Message,
    },
};

/// Requests of metadata that a peer may make, as a multiple of its blocks: losing some is no crime.
const MAX_METADATA_ROUNDS: u32 = 4;

impl State {
    pub(super) fn requested(&mut self, id: PeerId, block: Block, effects: &mut Vec<Effect>) -> Result<(), CloseReason> {
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        let pieces = self.pieces.as_ref().filter(|pieces| pieces.geometry.may_ask(block));
        let Some(pieces) = pieces else {
            return Err(CloseReason::Violation(Violation::Request));
        };
        if peer.uploads.len() >= MAX_QUEUED_REQUESTS {
            return Err(CloseReason::Violation(Violation::RequestFlood));
        }
        let is_there = pieces.have.has(block.piece) && !pieces.withheld.has(block.piece);
        let is_served = is_there && (self.config.serves || peer.finishes(block));
        if peer.is_choked || !is_served {
            if peer.features.fast {
                effects.push(Effect::Send(id, Message::Reject(block)));
            }
            return Ok(());
        }
        if !peer.uploads.contains(&block) {
            peer.uploads.push_back(block);
            effects.push(Effect::Upload(id));
        }
        Ok(())
    }

    pub(super) fn cancelled(&mut self, id: PeerId, block: Block, effects: &mut Vec<Effect>) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        if let Some(position) = peer.uploads.iter().position(|asked| *asked == block) {
            peer.uploads.remove(position);
            if peer.features.fast {
                effects.push(Effect::Send(id, Message::Reject(block)));
            }
        }
    }

    /// The next block that a peer waits for.
    pub(crate) fn next_upload(&mut self, id: PeerId) -> Option<Block> {
        let serves = self.config.serves;
        let peer = self.peers.get_mut(&id)?;
        let block = peer.uploads.pop_front()?;
        peer.sent = Some(block.piece);
        if !serves {
            peer.allowance = peer.allowance.saturating_sub(block.length);
        }
        Some(block)
    }

    /// Begins or stops to serve peers.
    pub(super) fn serve(&mut self, serves: bool, effects: &mut Vec<Effect>) {
        self.config.serves = serves;
        if serves {
            self.rechoke(effects);
            return;
        }
        let geometry = self.pieces.as_ref().map(|pieces| pieces.geometry);
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            if let (Some(peer), Some(geometry)) = (self.peers.get_mut(&id), geometry) {
                peer.allowance = peer.sent.map_or(0, |piece| geometry.length(piece));
                let (kept, dropped): (Vec<_>, Vec<_>) =
                    peer.uploads.drain(..).partition(|block| Some(block.piece) == peer.sent);
                peer.uploads = kept.into();
                if peer.features.fast {
                    effects.extend(
                        dropped
                            .into_iter()
                            .map(|block| Effect::Send(id, Message::Reject(block))),
                    );
                }
            }
            self.choke_if_served(id, effects);
        }
    }

    /// Chokes a peer that got its last piece, when peers are no longer served.
    pub(super) fn choke_if_served(&mut self, id: PeerId, effects: &mut Vec<Effect>) {
        let is_done = |peer: &Peer| peer.uploads.is_empty() && peer.allowance == 0;
        if !self.config.serves && self.peers.get(&id).is_some_and(is_done) {
            self.choke(id, effects);
        }
    }

    /// Whether a peer waits for blocks.
    pub(crate) fn has_uploads(&self, id: PeerId) -> bool {
        self.peers.get(&id).is_some_and(|peer| !peer.uploads.is_empty())
    }

    pub(super) fn choke(&mut self, id: PeerId, effects: &mut Vec<Effect>) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        if peer.is_choked {
            return;
        }
        peer.is_choked = true;
        peer.choke_changed = self.now;
        effects.push(Effect::Send(id, Message::Choke));
        let dropped = peer.uploads.drain(..);
        if peer.features.fast {
            effects.extend(dropped.map(|block| Effect::Send(id, Message::Reject(block))));
        }
    }

    /// Serves peers at once while there are free slots.
    pub(super) fn rechoke_if_free(&mut self, effects: &mut Vec<Effect>) {
        let mut peers = self.peers.values();
        let served = self.peers.values().filter(|peer| !peer.is_choked).count();
        if self.config.serves
            && served < self.config.upload_slots
            && peers.any(|peer| peer.is_interested && peer.is_choked)
        {
            self.rechoke(effects);
        }
    }

    /// Chooses anew who is served.
    pub(super) fn rechoke(&mut self, effects: &mut Vec<Effect>) {
        self.rechoked = self.now;
        if !self.config.serves {
            let idle = self.peers.iter().filter(|(_, peer)| peer.uploads.is_empty());
            let idle: Vec<_> = idle.map(|(id, _)| *id).collect();
            for id in idle {
                self.choke(id, effects);
            }
            return;
        }
        let is_seeding = self.pieces.as_ref().is_some_and(|pieces| pieces.missing == 0);
        let interested = self.peers.iter().filter(|(_, peer)| peer.is_interested);
        let candidates = interested.map(|(id, peer)| Candidate {
            peer: *id,
            rate: if is_seeding { peer.up } else { peer.down }.per_second(),
            is_unchoked: !peer.is_choked,
            since: peer.choke_changed,
        });
        let candidates = candidates.collect();
        let served = self
            .choker
            .choose(candidates, self.config.upload_slots, is_seeding, self.now);
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            if !served.contains(&id) {
                self.choke(id, effects);
                continue;
            }
            if let Some(peer) = self.peers.get_mut(&id).filter(|peer| peer.is_choked) {
                peer.is_choked = false;
                peer.choke_changed = self.now;
                effects.push(Effect::Send(id, Message::Unchoke));
            }
        }
    }

    /// A peer asks for a block of the metadata.
    pub(super) fn metadata_requested(
        &mut self,
        id: PeerId,
        block: u32,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CloseReason> {
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        if peer.metadata == 0 {
            return Err(CloseReason::Violation(Violation::Extension));
        }
        let raw = self.pieces.as_ref().map_or(&[][..], |pieces| pieces.info.raw());
        let blocks = raw.len().div_ceil(METADATA_BLOCK_BYTES);
        peer.metadata_served += 1;
        if peer.metadata_served as usize > blocks.max(16) * MAX_METADATA_ROUNDS as usize {
            return Err(CloseReason::Violation(Violation::Metadata));
        }
        let data = raw.chunks(METADATA_BLOCK_BYTES).nth(block as usize);
        let answer = match data {
            Some(data) => Metadata::Data {
                block,
                total_bytes: raw.len() as u64,
                data,
            },
            None => Metadata::Reject(block),
        };
        effects.push(Effect::SendExtended(id, peer.metadata, answer.encode()));
        Ok(())
    }
}
