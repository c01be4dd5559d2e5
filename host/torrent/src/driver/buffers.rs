//! Memory of pieces that arrive.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::limits::{MAX_BUFFERED_BYTES, MAX_BUFFERED_PIECE};

/// Buffers that are kept for the next pieces: clearing new memory costs as much as filling it.
const MAX_SPARE: usize = 4;

/// Bytes of pieces in memory, of all torrents of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    pub(super) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= MAX_BUFFERED_BYTES);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Where the blocks of a piece go.
#[derive(Debug)]
pub(super) enum Buffer {
    Memory(Vec<u8>),
    /// To the disk at once.
    Disk,
}

/// The buffers of a torrent's pieces.
#[derive(Debug)]
pub(super) struct Buffers {
    budget: Budget,
    pieces: HashMap<u32, Buffer>,
    spare: Vec<Vec<u8>>,
}

impl Buffers {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            budget,
            pieces: HashMap::new(),
            spare: Vec::new(),
        }
    }

    /// The buffer of a piece, made when its first block arrives.
    pub(super) fn get(&mut self, piece: u32, length: u32) -> &mut Buffer {
        let budget = &self.budget;
        let spare = &mut self.spare;
        self.pieces.entry(piece).or_insert_with(|| {
            if length > MAX_BUFFERED_PIECE || !budget.take(length as usize) {
                return Buffer::Disk;
            }
            let fits = spare.iter().position(|buffer| buffer.len() == length as usize);
            Buffer::Memory(fits.map_or_else(|| vec![0; length as usize], |index| spare.swap_remove(index)))
        })
    }

    pub(super) fn memory(&mut self, piece: u32) -> Option<&mut [u8]> {
        match self.pieces.get_mut(&piece)? {
            Buffer::Memory(bytes) => Some(bytes),
            Buffer::Disk => None,
        }
    }

    /// Takes the buffer of a complete piece; [`Buffers::recycle`] returns its memory.
    pub(super) fn take(&mut self, piece: u32) -> Option<Buffer> {
        self.pieces.remove(&piece)
    }

    pub(super) fn discard(&mut self, piece: u32) {
        if let Some(Buffer::Memory(bytes)) = self.pieces.remove(&piece) {
            self.recycle(bytes);
        }
    }

    pub(super) fn recycle(&mut self, bytes: Vec<u8>) {
        self.budget.give_back(bytes.len());
        if self.spare.len() < MAX_SPARE {
            self.spare.push(bytes);
        }
    }

    /// Frees everything.
    pub(super) fn clear(&mut self) {
        let pieces: Vec<_> = self.pieces.keys().copied().collect();
        for piece in pieces {
            self.discard(piece);
        }
        self.spare = Vec::new();
    }

    /// Frees what is kept for pieces to come.
    pub(super) fn shrink(&mut self) {
        self.spare = Vec::new();
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        self.clear();
    }
}
