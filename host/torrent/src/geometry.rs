//! Sizes of pieces and blocks. Pure.

use std::ops::Range;

/// Bytes of one block: what one request asks for. Fixed by convention; most clients close connections that ask for more.
pub(crate) const BLOCK_BYTES: u32 = 16 * 1024;

/// How the bytes of a torrent are divided. The last piece and its last block may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Geometry {
    total_bytes: u64,
    piece_bytes: u32,
    pieces: u32,
}

/// A range of one piece, as requests and answers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Block {
    pub(crate) piece: u32,
    /// First byte, seen from the start of the piece.
    pub(crate) begin: u32,
    pub(crate) length: u32,
}

impl Block {
    /// The block's number within its piece.
    pub(crate) fn index(self) -> u32 {
        self.begin / BLOCK_BYTES
    }
}

impl Geometry {
    /// `piece_bytes` must not be 0, and the number of pieces must fit into 32 bits; [`metainfo`] checks both.
    pub(crate) fn new(piece_bytes: u32, total_bytes: u64) -> Self {
        let pieces = total_bytes.div_ceil(u64::from(piece_bytes));
        Self {
            total_bytes,
            piece_bytes,
            pieces: u32::try_from(pieces).expect("the number of pieces was checked when the torrent was parsed"),
        }
    }

    pub(crate) fn pieces(self) -> u32 {
        self.pieces
    }

    /// Where a piece begins in the torrent.
    pub(crate) fn offset(self, piece: u32) -> u64 {
        u64::from(piece) * u64::from(self.piece_bytes)
    }

    /// Bytes of a piece; 0 for one that does not exist.
    pub(crate) fn length(self, piece: u32) -> u32 {
        let rest = self.total_bytes.saturating_sub(self.offset(piece));
        u32::try_from(rest).unwrap_or(u32::MAX).min(self.piece_bytes)
    }

    pub(crate) fn blocks(self, piece: u32) -> u32 {
        self.length(piece).div_ceil(BLOCK_BYTES)
    }

    /// The block of this number; empty beyond the end of the piece.
    pub(crate) fn block(self, piece: u32, index: u32) -> Block {
        let begin = index.saturating_mul(BLOCK_BYTES);
        Block {
            piece,
            begin,
            length: self.length(piece).saturating_sub(begin).min(BLOCK_BYTES),
        }
    }

    /// Whether a peer may ask for `block`: inside its piece, and not longer than a block.
    pub(crate) fn may_ask(self, block: Block) -> bool {
        let end = u64::from(block.begin) + u64::from(block.length);
        block.piece < self.pieces
            && (1..=BLOCK_BYTES).contains(&block.length)
            && end <= u64::from(self.length(block.piece))
    }

    /// The pieces that contain bytes of `start..end`.
    pub(crate) fn pieces_of(self, start: u64, end: u64) -> Range<u32> {
        if start >= end {
            return 0..0;
        }
        let size = u64::from(self.piece_bytes);
        let first = u32::try_from(start / size).unwrap_or(self.pieces);
        let last = u32::try_from((end - 1) / size).unwrap_or(self.pieces);
        first.min(self.pieces)..last.saturating_add(1).min(self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_and_its_last_block_are_shorter() {
        let geometry = Geometry::new(40_000, 100_000);
        assert_eq!(geometry.pieces(), 3);
        assert_eq!(geometry.length(2), 20_000);
        assert_eq!(geometry.blocks(0), 3);
        assert_eq!(geometry.block(0, 2).length, 40_000 - 2 * BLOCK_BYTES);
        assert_eq!(geometry.block(2, 1).length, 20_000 - BLOCK_BYTES);
        assert_eq!(geometry.length(3), 0);
        assert_eq!(geometry.pieces_of(39_999, 40_001), 0..2);
        assert_eq!(geometry.pieces_of(5, 5), 0..0);
    }

    #[test]
    fn only_blocks_inside_a_piece_may_be_asked_for() {
        let geometry = Geometry::new(40_000, 100_000);
        let ask = |piece, begin, length| geometry.may_ask(Block { piece, begin, length });
        assert!(ask(0, 39_999, 1));
        assert!(!ask(0, 39_999, 2));
        assert!(!ask(0, u32::MAX, u32::MAX));
        assert!(!ask(3, 0, 1));
        assert!(!ask(0, 0, 0));
        assert!(!ask(0, 0, BLOCK_BYTES + 1));
    }
}
