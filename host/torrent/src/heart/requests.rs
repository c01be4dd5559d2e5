//! Which blocks are asked for, of whom, and what becomes of them. Pure.

use std::time::Duration;

use super::{CloseReason, Effect, MAX_PIPELINES, PeerId, Pieces, State, Violation, peer::Peer};
use crate::{geometry::Block, wire::message::Message};

/// A peer that owes data this long is asked for nothing else; its blocks are asked of others.
const SNUB_TIME: Duration = Duration::from_secs(30);

/// A peer that says nothing this long is gone: clients send a message at least every two minutes.
const SILENCE_TIME: Duration = Duration::from_secs(150);

/// We say something at least this often.
const KEEP_ALIVE_EVERY: Duration = Duration::from_secs(100);

/// Of how many peers a block is asked once every missing block was asked of one.
const MAX_ENDGAME: u8 = 2;

/// The same for a peer that has nothing else to do: those that were asked before may be the slow ones.
const MAX_ENDGAME_OF_IDLE: u8 = 4;

/// Blocks that a peer is asked for in the endgame before it has delivered some.
const ENDGAME_PIPELINE: usize = 8;

/// Bytes that a peer may send unasked: blocks that crossed our cancellations.
const MAX_UNASKED_BYTES: u64 = 16 * 1024 * 1024;

/// The most pieces that are begun at once. Bounds their bookkeeping; each holds at least one open request.
const MAX_ACTIVE: usize = 1024;

impl State {
    /// Whether the data of a block, which begins to arrive, is to be kept. An error closes the connection.
    pub(crate) fn begin_block(&mut self, now: Duration, id: PeerId, block: Block) -> Result<bool, CloseReason> {
        self.now = now;
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(false);
        };
        peer.last_heard = now;
        let Some(position) = peer.asked.iter().position(|asked| *asked == block) else {
            peer.unasked += u64::from(block.length);
            self.wasted += u64::from(block.length);
            return if peer.unasked > MAX_UNASKED_BYTES {
                Err(CloseReason::Violation(Violation::UnaskedData))
            } else {
                Ok(false)
            };
        };
        let is_kept = self
            .pieces
            .as_mut()
            .is_some_and(|pieces| pieces.active.begin_block(block, id));
        if !is_kept {
            peer.asked.remove(position);
            peer.received(0, now);
            self.asked -= 1;
            self.wasted += u64::from(block.length);
        }
        Ok(is_kept)
    }

    /// Whether the data of a block that began to arrive from this peer is still to be kept.
    pub(crate) fn is_arriving(&self, id: PeerId, block: Block) -> bool {
        let pieces = self.pieces.as_ref();
        pieces.is_some_and(|pieces| pieces.active.is_arriving(block, id))
    }

    /// The data of a block is here.
    pub(super) fn block_arrived(&mut self, id: PeerId, block: Block, effects: &mut Vec<Effect>) {
        let now = self.now;
        let (Some(peer), Some(pieces)) = (self.peers.get_mut(&id), &mut self.pieces) else {
            return;
        };
        if let Some(position) = peer.asked.iter().position(|asked| *asked == block) {
            peer.asked.remove(position);
            self.asked -= 1;
        }
        peer.received(block.length, now);
        let suspect = peer.suspect();
        match pieces.active.end_block(block, id, suspect) {
            None => self.wasted += u64::from(block.length),
            Some(false) => {}
            Some(true) => {
                let contributors = pieces.active.end(block.piece).expect("its last block just arrived");
                pieces.checking.insert(block.piece, contributors);
                effects.push(Effect::Check(block.piece));
            }
        }
        if pieces.picker.is_exhausted() {
            self.cancel_elsewhere(id, block, effects);
        }
        self.fill(id, effects);
    }

    /// In the endgame, a block that arrived need not be sent by others.
    fn cancel_elsewhere(&mut self, by: PeerId, block: Block, effects: &mut Vec<Effect>) {
        for (id, peer) in self.peers.iter_mut().filter(|(id, _)| **id != by) {
            if let Some(position) = peer.asked.iter().position(|asked| *asked == block) {
                peer.asked.remove(position);
                self.asked -= 1;
                effects.push(Effect::Send(*id, Message::Cancel(block)));
            }
        }
    }

    /// Opens as many requests as the peer deserves.
    pub(super) fn fill(&mut self, id: PeerId, effects: &mut Vec<Effect>) {
        let Some(peer) = self.peers.get_mut(&id) else {
            return;
        };
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        if (peer.useful > 0) != peer.is_interesting {
            peer.is_interesting = peer.useful > 0;
            let message = if peer.is_interesting {
                Message::Interested
            } else {
                Message::NotInterested
            };
            effects.push(Effect::Send(id, message));
        }
        let may_be_asked = !peer.is_banned && (!peer.is_choking_us || !peer.allowed_fast.is_empty());
        let pipeline = peer.pipeline as usize;
        // Requests are sent in groups: one write for many of them.
        if !peer.is_interesting || !may_be_asked || peer.is_snubbing || peer.asked.len() > pipeline * 3 / 4 {
            return;
        }
        let is_suspect = self.bans.is_suspect(peer.suspect());
        while peer.asked.len() < pipeline && self.asked < MAX_PIPELINES {
            let Some(block) = pieces.next_block(id, peer, is_suspect) else {
                break;
            };
            peer.asked.push_back(block);
            if peer.asked.len() == 1 {
                peer.last_data = self.now;
            }
            self.asked += 1;
            effects.push(Effect::Send(id, Message::Request(block)));
        }
    }

    /// Opens requests with every peer that has room for them.
    pub(super) fn fill_all(&mut self, effects: &mut Vec<Effect>) {
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            self.fill(id, effects);
        }
    }

    pub(super) fn choked(&mut self, id: PeerId, effects: &mut Vec<Effect>) {
        let Some(mut peer) = self.peers.remove(&id) else {
            return;
        };
        peer.is_choking_us = true;
        // With the fast extension, each open request is answered or rejected; without it, choking drops them all.
        if !peer.features.fast {
            self.release(id, &mut peer, effects);
        }
        self.peers.insert(id, peer);
        self.fill_all(effects);
    }

    pub(super) fn rejected(&mut self, id: PeerId, block: Block, effects: &mut Vec<Effect>) {
        let (Some(peer), Some(pieces)) = (self.peers.get_mut(&id), &mut self.pieces) else {
            return;
        };
        // One that is not open crossed our cancellation.
        let Some(position) = peer.asked.iter().position(|asked| *asked == block) else {
            return;
        };
        peer.asked.remove(position);
        self.asked -= 1;
        peer.allowed_fast.retain(|piece| *piece != block.piece);
        pieces.active.release(block, id);
        if peer.asked.is_empty() {
            self.fill_all(effects);
        }
    }

    /// Everything that a peer owes is asked of others.
    pub(super) fn release(&mut self, id: PeerId, peer: &mut Peer, effects: &mut Vec<Effect>) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        for block in peer.asked.drain(..) {
            self.asked -= 1;
            pieces.active.release(block, id);
            if pieces.active.is_untouched(block.piece) {
                pieces.active.end(block.piece);
                pieces.picker.place(block.piece);
                effects.push(Effect::Discard(block.piece));
            }
        }
        peer.piece = None;
    }

    /// Drops a piece that is no longer wanted.
    pub(super) fn give_up(&mut self, piece: u32, effects: &mut Vec<Effect>) {
        for (id, peer) in &mut self.peers {
            let before = peer.asked.len();
            peer.asked.retain(|block| {
                let stays = block.piece != piece;
                if !stays {
                    effects.push(Effect::Send(*id, Message::Cancel(*block)));
                }
                stays
            });
            self.asked -= u32::try_from(before - peer.asked.len()).expect("few requests are open");
            if peer.piece == Some(piece) {
                peer.piece = None;
            }
        }
        if let Some(pieces) = &mut self.pieces {
            pieces.active.end(piece);
            pieces.picker.place(piece);
        }
        effects.push(Effect::Discard(piece));
    }

    /// Peers that owe data for too long, and peers that are gone.
    pub(super) fn check_times(&mut self, effects: &mut Vec<Effect>) {
        let now = self.now;
        let is_complete = self.pieces.as_ref().is_some_and(|pieces| pieces.missing == 0);
        let mut snubbing = Vec::new();
        for (id, peer) in &mut self.peers {
            let is_useless =
                is_complete && (peer.is_seed() || peer.is_upload_only) && !peer.is_interested && !peer.is_web();
            if now.saturating_sub(peer.last_heard) > SILENCE_TIME && !peer.is_web() {
                effects.push(Effect::Close(*id, CloseReason::Silent));
            } else if is_useless {
                effects.push(Effect::Close(*id, CloseReason::Useless));
            } else if !peer.asked.is_empty() && now.saturating_sub(peer.last_data) > SNUB_TIME {
                snubbing.push(*id);
            }
            if now.saturating_sub(peer.last_said) > KEEP_ALIVE_EVERY {
                peer.last_said = now;
                effects.push(Effect::Send(*id, Message::KeepAlive));
            }
        }
        for id in snubbing {
            let Some(mut peer) = self.peers.remove(&id) else {
                continue;
            };
            let owed = peer.asked.iter();
            effects.extend(owed.map(|block| Effect::Send(id, Message::Cancel(*block))));
            peer.is_snubbing = true;
            peer.last_data = now;
            self.release(id, &mut peer, effects);
            self.peers.insert(id, peer);
        }
        // After a while a peer that snubbed us is tried again, with one request.
        for peer in self.peers.values_mut() {
            if peer.is_snubbing && now.saturating_sub(peer.last_data) > SNUB_TIME {
                peer.is_snubbing = false;
                peer.pipeline = 2;
            }
        }
    }
}

impl Pieces {
    /// The next block to ask `peer` for, marked as asked.
    fn next_block(&mut self, id: PeerId, peer: &mut Peer, is_suspect: bool) -> Option<Block> {
        let piece = self
            .current_piece(id, peer, is_suspect)
            .or_else(|| self.begin_piece(id, peer, is_suspect));
        if let Some(piece) = piece {
            peer.piece = Some(piece);
            let index = self.active.ask_next(piece)?;
            return Some(self.geometry.block(piece, index));
        }
        if is_suspect || !self.picker.is_exhausted() || peer.asked.len() >= ENDGAME_PIPELINE {
            return None;
        }
        let block = self.endgame_block(id, peer)?;
        self.active.ask_again(block);
        Some(block)
    }

    /// An active piece with free blocks: preferably the one that the peer works on.
    fn current_piece(&self, id: PeerId, peer: &Peer, is_suspect: bool) -> Option<u32> {
        let fits = |piece: &u32| {
            peer.has(*piece)
                && peer.serves(*piece)
                && self.active.may_ask(*piece, id)
                && (!is_suspect || self.active.is_only_of(*piece, id))
                && self.picker.wants(*piece)
        };
        let own = peer.piece.filter(|piece| self.active.is_open(*piece) && fits(piece));
        own.or_else(|| self.active.open().find(fits))
    }

    /// A piece that nobody works on. A peer under suspicion gets it for itself.
    fn begin_piece(&mut self, id: PeerId, peer: &Peer, is_suspect: bool) -> Option<u32> {
        if self.active.len() >= MAX_ACTIVE {
            return None;
        }
        let piece = if peer.is_choking_us {
            let mut allowed = peer.allowed_fast.iter().copied();
            allowed.find(|piece| peer.has(*piece) && self.picker.is_placed(*piece))?
        } else {
            match &peer.has {
                super::peer::Has::Everything => self.picker.choose(None)?,
                super::peer::Has::Some(bits) => self.picker.choose(Some(bits))?,
                super::peer::Has::Nothing | super::peer::Has::Early { .. } => return None,
            }
        };
        self.picker.take(piece);
        self.active.begin(piece, self.geometry, is_suspect.then_some(id));
        Some(piece)
    }

    /// A block that another peer owes.
    fn endgame_block(&self, id: PeerId, peer: &Peer) -> Option<Block> {
        let numbers = self.active.numbers().into_iter();
        let most = if peer.asked.is_empty() {
            MAX_ENDGAME_OF_IDLE
        } else {
            MAX_ENDGAME
        };
        let fitting =
            numbers.filter(|piece| peer.has(*piece) && peer.serves(*piece) && self.active.may_ask(*piece, id));
        let blocks = fitting.flat_map(|piece| {
            let waiting = self.active.waiting(piece, most);
            waiting.map(move |index| self.geometry.block(piece, index))
        });
        let mut blocks = blocks;
        blocks.find(|block| !peer.asked.contains(block))
    }
}
