//! Which pieces we and our peers have, and which are wanted. Pure.

use super::{
    Announced, CloseReason, Effect, Opened, PeerId, Pieces, Priority, State, Violation, Wanted,
    active::ActivePieces,
    ban::Suspect,
    peer::{Has, Peer},
    picker::Picker,
};
use crate::{bitfield::Bitfield, geometry::Geometry, wire::message::Message};

impl Pieces {
    /// Whether the piece is wanted and missing.
    pub(super) fn lacks(&self, piece: u32) -> bool {
        !self.have.has(piece) && self.picker.wants(piece)
    }

    /// A peer no longer has these pieces.
    pub(super) fn forget(&mut self, has: &Has) {
        match has {
            Has::Everything => self.seeds -= 1,
            Has::Some(bits) => bits.iter().for_each(|piece| self.picker.remove_availability(piece)),
            Has::Nothing | Has::Early { .. } => {}
        }
    }

    /// Counts the pieces that `peer` has and that are wanted and missing.
    fn count_useful(&self, peer: &Peer) -> u32 {
        match &peer.has {
            Has::Everything => self.missing,
            Has::Some(bits) => {
                let useful = bits.iter().filter(|piece| self.lacks(*piece)).count();
                u32::try_from(useful).expect("there are fewer pieces than 2^32")
            }
            Has::Nothing | Has::Early { .. } => 0,
        }
    }
}

impl State {
    pub(super) fn open(&mut self, opened: Opened, effects: &mut Vec<Effect>) {
        let geometry = opened.geometry;
        self.fetch = None;
        self.pieces = Some(Pieces {
            picker: Picker::new(geometry.pieces(), self.config.seed),
            withheld: Bitfield::new(geometry.pieces()),
            have: opened.have,
            geometry,
            info: opened.info,
            active: ActivePieces::default(),
            checking: std::collections::BTreeMap::default(),
            missing: 0,
            seeds: 0,
            is_finished: false,
        });
        let ids: Vec<_> = self.peers.keys().copied().collect();
        for id in ids {
            self.read_early(id, geometry, effects);
        }
        self.want(&opened.wanted, effects);
        for (id, peer) in &self.peers {
            // They were told that we have nothing, or nothing at all.
            let have = self.pieces.as_ref().map(|pieces| pieces.have.iter());
            let all = have.into_iter().flatten();
            effects.extend(all.map(|piece| Effect::Send(*id, Message::Have(piece))));
            if peer.features.extended {
                effects.push(Effect::SendExtensions(*id));
            }
        }
    }

    /// Reads what a peer said before the number of pieces was known.
    fn read_early(&mut self, id: PeerId, geometry: Geometry, effects: &mut Vec<Effect>) {
        let (Some(peer), Some(pieces)) = (self.peers.get_mut(&id), &mut self.pieces) else {
            return;
        };
        match std::mem::replace(&mut peer.has, Has::Nothing) {
            Has::Early { bits, pieces: early } => {
                let read = if bits.is_empty() {
                    Some(Bitfield::new(geometry.pieces()))
                } else {
                    Bitfield::from_bytes(&bits, geometry.pieces())
                };
                match read {
                    Some(mut read) if early.iter().all(|piece| *piece < geometry.pieces()) => {
                        for piece in early {
                            read.insert(piece);
                        }
                        read.iter().for_each(|piece| pieces.picker.add_availability(piece));
                        peer.has = Has::Some(read);
                    }
                    _ => effects.push(Effect::Close(id, CloseReason::Violation(Violation::Pieces))),
                }
            }
            Has::Everything => {
                pieces.seeds += 1;
                peer.has = Has::Everything;
            }
            other => peer.has = other,
        }
    }

    /// Applies what the user wants.
    pub(super) fn want(&mut self, wanted: &Wanted, effects: &mut Vec<Effect>) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        pieces.picker.is_sequential = wanted.is_sequential;
        for piece in &wanted.lost {
            pieces.have.remove(*piece);
            pieces.withheld.remove(*piece);
        }
        pieces.missing = 0;
        for (piece, (priority, is_first)) in (0..).zip(&wanted.priorities) {
            pieces.picker.set_priority(piece, *priority, *is_first);
            if !pieces.have.has(piece) {
                if *priority != Priority::Skip {
                    pieces.missing += 1;
                }
                if !pieces.active.has(piece) && !pieces.checking.contains_key(&piece) {
                    pieces.picker.place(piece);
                }
            }
        }
        pieces.is_finished = false;
        let unwanted = pieces
            .active
            .numbers()
            .into_iter()
            .filter(|piece| !pieces.picker.wants(*piece));
        for piece in unwanted.collect::<Vec<_>>() {
            self.give_up(piece, effects);
        }
        self.count_useful();
        self.finish_if_complete(effects);
        self.fill_all(effects);
    }

    /// Counts anew what each peer is good for.
    fn count_useful(&mut self) {
        let Some(pieces) = &self.pieces else {
            return;
        };
        for peer in self.peers.values_mut() {
            peer.useful = pieces.count_useful(peer);
        }
    }

    pub(super) fn finish_if_complete(&mut self, effects: &mut Vec<Effect>) {
        if let Some(pieces) = &mut self.pieces
            && pieces.missing == 0
            && !pieces.is_finished
        {
            pieces.is_finished = true;
            effects.push(Effect::Finished);
        }
    }

    /// A peer says what it has: as its first message, and aria2 also later, instead of many single pieces.
    pub(super) fn peer_has_set(
        &mut self,
        id: PeerId,
        announced: Announced<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), CloseReason> {
        let wrong = Err(CloseReason::Violation(Violation::Pieces));
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        if let Some(pieces) = &mut self.pieces {
            pieces.forget(&peer.has);
        }
        peer.has = Has::Nothing;
        match (announced, &mut self.pieces) {
            (Announced::None, _) => {}
            (Announced::All, None) => peer.has = Has::Everything,
            (Announced::All, Some(pieces)) => {
                pieces.seeds += 1;
                peer.has = Has::Everything;
            }
            (Announced::Bits(bits), None) => {
                peer.has = Has::Early {
                    bits: bits.to_vec(),
                    pieces: Vec::new(),
                };
            }
            (Announced::Bits(bits), Some(pieces)) => {
                let Some(bits) = Bitfield::from_bytes(bits, pieces.geometry.pieces()) else {
                    return wrong;
                };
                if bits.is_full() {
                    pieces.seeds += 1;
                    peer.has = Has::Everything;
                } else {
                    bits.iter().for_each(|piece| pieces.picker.add_availability(piece));
                    peer.has = Has::Some(bits);
                }
            }
        }
        if let Some(pieces) = &self.pieces {
            peer.useful = pieces.count_useful(peer);
        }
        self.fill(id, effects);
        Ok(())
    }

    /// A peer got a piece.
    pub(super) fn peer_has(&mut self, id: PeerId, piece: u32, effects: &mut Vec<Effect>) -> Result<(), CloseReason> {
        let wrong = Err(CloseReason::Violation(Violation::Pieces));
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        let Some(pieces) = &mut self.pieces else {
            return if peer.keep_early(piece) { Ok(()) } else { wrong };
        };
        if piece >= pieces.geometry.pieces() {
            return wrong;
        }
        let is_new = match &mut peer.has {
            Has::Everything => false,
            Has::Some(bits) => bits.insert(piece),
            Has::Nothing | Has::Early { .. } => {
                let mut bits = Bitfield::new(pieces.geometry.pieces());
                bits.insert(piece);
                peer.has = Has::Some(bits);
                true
            }
        };
        if is_new {
            pieces.picker.add_availability(piece);
            if pieces.lacks(piece) {
                peer.useful += 1;
                self.fill(id, effects);
            }
        }
        Ok(())
    }

    /// A peer lost a piece.
    pub(super) fn peer_lost(&mut self, id: PeerId, piece: u32) -> Result<(), CloseReason> {
        let (Some(peer), Some(pieces)) = (self.peers.get_mut(&id), &mut self.pieces) else {
            return Ok(());
        };
        if piece >= pieces.geometry.pieces() {
            return Err(CloseReason::Violation(Violation::Pieces));
        }
        let had = match &mut peer.has {
            Has::Everything => {
                pieces.seeds -= 1;
                let mut bits = Bitfield::full(pieces.geometry.pieces());
                bits.iter().for_each(|piece| pieces.picker.add_availability(piece));
                bits.remove(piece);
                peer.has = Has::Some(bits);
                true
            }
            Has::Some(bits) => bits.remove(piece),
            Has::Nothing | Has::Early { .. } => false,
        };
        if had {
            pieces.picker.remove_availability(piece);
            if pieces.lacks(piece) {
                peer.useful -= 1;
            }
        }
        Ok(())
    }

    /// A complete piece was hashed, and written if it is right.
    pub(super) fn piece_checked(&mut self, piece: u32, is_right: bool, effects: &mut Vec<Effect>) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        let Some(contributors) = pieces.checking.remove(&piece) else {
            return;
        };
        if is_right {
            self.got(piece, &contributors, effects);
            return;
        }
        self.wasted += u64::from(pieces.geometry.length(piece));
        pieces.picker.place(piece);
        if let Some(culprit) = self.bans.accuse(&contributors) {
            for (id, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.suspect() == culprit) {
                peer.is_banned = true;
                effects.push(Effect::Banned(peer.address));
                effects.push(Effect::Close(*id, CloseReason::Banned));
            }
        }
        self.fill_all(effects);
    }

    fn got(&mut self, piece: u32, contributors: &[Suspect], effects: &mut Vec<Effect>) {
        let Some(pieces) = &mut self.pieces else {
            return;
        };
        if let [only] = contributors {
            self.bans.acquit(*only);
        }
        let was_wanted = pieces.lacks(piece);
        if !pieces.have.insert(piece) {
            return;
        }
        effects.push(Effect::Got(piece));
        if was_wanted {
            pieces.missing -= 1;
        }
        for (id, peer) in &mut self.peers {
            let has = peer.has(piece);
            if has && was_wanted {
                peer.useful = peer.useful.saturating_sub(1);
            }
            // A peer that has it needs no message.
            if !has {
                effects.push(Effect::Send(*id, Message::Have(piece)));
            }
            if peer.is_interesting && peer.useful == 0 {
                peer.is_interesting = false;
                effects.push(Effect::Send(*id, Message::NotInterested));
            }
        }
        self.finish_if_complete(effects);
    }

    pub(super) fn metadata_checked(&mut self, is_right: bool, suspects: &[Suspect], effects: &mut Vec<Effect>) {
        if is_right {
            // The next input opens the pieces.
            self.fetch = None;
            return;
        }
        if let Some(fetch) = &mut self.fetch {
            fetch.was_wrong();
        }
        if let [culprit] = suspects {
            self.bans.accuse(suspects);
            let theirs = self.peers.iter().filter(|(_, peer)| peer.suspect() == *culprit);
            effects.extend(theirs.map(|(id, _)| Effect::Close(*id, CloseReason::Banned)));
        }
        self.fetch_metadata(effects);
    }
}
