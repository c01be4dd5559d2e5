//! Pieces that are being downloaded, block by block. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{PeerId, ban::Suspect};
use crate::geometry::{Block, Geometry};

/// A block of an active piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    /// Asked of so many peers.
    Asked(u8),
    /// Its data is arriving from this peer.
    Arriving(PeerId),
    /// Here; from the contributor of this number.
    Here(u16),
}

/// A piece that is being downloaded.
#[derive(Debug)]
pub(crate) struct Active {
    slots: Box<[Slot]>,
    /// Blocks that are not here.
    missing: u32,
    /// Blocks that nobody was asked for.
    free: u32,
    /// Where the search for a free block begins.
    cursor: u32,
    /// Who sent blocks of it.
    contributors: Vec<Suspect>,
    /// The only peer that may be asked for it: one that is under suspicion.
    only: Option<PeerId>,
}

/// All active pieces.
#[derive(Debug, Default)]
pub(crate) struct ActivePieces {
    pieces: BTreeMap<u32, Active>,
    /// Those that have free blocks.
    open: BTreeSet<u32>,
}

impl ActivePieces {
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(crate) fn has(&self, piece: u32) -> bool {
        self.pieces.contains_key(&piece)
    }

    pub(crate) fn numbers(&self) -> Vec<u32> {
        self.pieces.keys().copied().collect()
    }

    /// Pieces with free blocks, in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = u32> + '_ {
        self.open.iter().copied()
    }

    /// Whether the piece has free blocks.
    pub(crate) fn is_open(&self, piece: u32) -> bool {
        self.open.contains(&piece)
    }

    /// Begins a piece.
    pub(crate) fn begin(&mut self, piece: u32, geometry: Geometry, only: Option<PeerId>) {
        let blocks = geometry.blocks(piece);
        self.pieces.insert(
            piece,
            Active {
                slots: vec![Slot::Free; blocks as usize].into(),
                missing: blocks,
                free: blocks,
                cursor: 0,
                contributors: Vec::new(),
                only,
            },
        );
        self.open.insert(piece);
    }

    /// Ends a piece, and says who sent blocks of it.
    pub(crate) fn end(&mut self, piece: u32) -> Option<Vec<Suspect>> {
        self.open.remove(&piece);
        self.pieces.remove(&piece).map(|active| active.contributors)
    }

    /// Whether `peer` may be asked for blocks of the piece.
    pub(crate) fn may_ask(&self, piece: u32, peer: PeerId) -> bool {
        let active = self.pieces.get(&piece);
        active.is_some_and(|active| active.only.is_none_or(|only| only == peer))
    }

    /// Whether only `peer` works on the piece.
    pub(crate) fn is_only_of(&self, piece: u32, peer: PeerId) -> bool {
        self.pieces.get(&piece).is_some_and(|active| active.only == Some(peer))
    }

    /// Marks the next free block of the piece as asked for.
    pub(crate) fn ask_next(&mut self, piece: u32) -> Option<u32> {
        let active = self.pieces.get_mut(&piece)?;
        if active.free == 0 {
            return None;
        }
        let count = active.slots.len();
        let start = active.cursor as usize;
        let index = (start..count)
            .chain(0..start)
            .find(|index| active.slots[*index] == Slot::Free)?;
        active.slots[index] = Slot::Asked(1);
        active.free -= 1;
        let index = number(index);
        active.cursor = index + 1;
        if active.free == 0 {
            self.open.remove(&piece);
        }
        Some(index)
    }

    /// Blocks that were asked of fewer than `most` peers and have not begun to arrive.
    pub(crate) fn waiting(&self, piece: u32, most: u8) -> impl Iterator<Item = u32> + '_ {
        let slots = self.pieces.get(&piece).map(|active| &active.slots);
        let waiting = slots.into_iter().flatten().enumerate();
        waiting.filter_map(move |(index, slot)| matches!(slot, Slot::Asked(by) if *by < most).then_some(number(index)))
    }

    /// Marks a block as asked of one more peer.
    pub(crate) fn ask_again(&mut self, block: Block) {
        if let Some(Slot::Asked(by)) = self.slot(block) {
            *by = by.saturating_add(1);
        }
    }

    /// A peer no longer owes the block: it refused, left, or takes too long.
    pub(crate) fn release(&mut self, block: Block, peer: PeerId) {
        let is_free = match self.slot(block) {
            Some(slot @ Slot::Asked(0 | 1)) => {
                *slot = Slot::Free;
                true
            }
            Some(Slot::Asked(by)) => {
                *by -= 1;
                false
            }
            Some(slot @ Slot::Arriving(_)) if *slot == Slot::Arriving(peer) => {
                *slot = Slot::Free;
                true
            }
            _ => false,
        };
        if is_free {
            let active = self.pieces.get_mut(&block.piece).expect("its slot was just found");
            active.free += 1;
            self.open.insert(block.piece);
        }
    }

    /// Whether the data of `block` is to be kept, which begins to arrive from `peer`. Of a block that was asked of several
    /// peers only the first one's data is kept, so that no two write the same bytes.
    pub(crate) fn begin_block(&mut self, block: Block, peer: PeerId) -> bool {
        let was_free = match self.slot(block) {
            Some(slot @ (Slot::Free | Slot::Asked(_))) => {
                let was_free = *slot == Slot::Free;
                *slot = Slot::Arriving(peer);
                was_free
            }
            _ => return false,
        };
        if was_free {
            let active = self.pieces.get_mut(&block.piece).expect("its slot was just found");
            active.free -= 1;
            if active.free == 0 {
                self.open.remove(&block.piece);
            }
        }
        true
    }

    /// Whether the block arrives from this peer.
    pub(crate) fn is_arriving(&self, block: Block, peer: PeerId) -> bool {
        let slots = self.pieces.get(&block.piece).map(|active| &active.slots);
        slots.and_then(|slots| slots.get(block.index() as usize)) == Some(&Slot::Arriving(peer))
    }

    /// Marks a block as here. Returns whether its piece is now complete; `None` if the block was not arriving from `peer`.
    pub(crate) fn end_block(&mut self, block: Block, peer: PeerId, suspect: Suspect) -> Option<bool> {
        let active = self.pieces.get_mut(&block.piece)?;
        let slot = active.slots.get_mut(block.index() as usize)?;
        if *slot != Slot::Arriving(peer) {
            return None;
        }
        let known = active
            .contributors
            .iter()
            .position(|contributor| *contributor == suspect);
        let number = known.unwrap_or_else(|| {
            active.contributors.push(suspect);
            active.contributors.len() - 1
        });
        *slot = Slot::Here(u16::try_from(number).unwrap_or(u16::MAX));
        active.missing -= 1;
        Some(active.missing == 0)
    }

    /// Whether nothing of the piece is here or on its way.
    pub(crate) fn is_untouched(&self, piece: u32) -> bool {
        let active = self.pieces.get(&piece);
        active.is_some_and(|active| active.free as usize == active.slots.len())
    }

    /// Gives up the claim of a peer that left on pieces of its own.
    pub(crate) fn forget(&mut self, peer: PeerId) {
        for active in self.pieces.values_mut().filter(|active| active.only == Some(peer)) {
            active.only = None;
        }
    }

    fn slot(&mut self, block: Block) -> Option<&mut Slot> {
        self.pieces.get_mut(&block.piece)?.slots.get_mut(block.index() as usize)
    }
}

/// The number of a block.
fn number(index: usize) -> u32 {
    u32::try_from(index).expect("a piece has fewer blocks")
}
