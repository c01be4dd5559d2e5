//! Sets of pieces, in the form in which peers exchange them: the first piece is the highest bit of the first byte.

/// A set of pieces below a fixed number.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bitfield {
    bytes: Box<[u8]>,
    length: u32,
    count: u32,
}

impl Bitfield {
    /// The empty set of pieces below `length`.
    pub(crate) fn new(length: u32) -> Self {
        Self {
            bytes: vec![0; bytes_of(length)].into(),
            length,
            count: 0,
        }
    }

    /// All pieces below `length`.
    pub(crate) fn full(length: u32) -> Self {
        let mut bytes = vec![0xff; bytes_of(length)];
        if let (Some(last), rest @ 1..) = (bytes.last_mut(), length % 8) {
            *last = 0xff << (8 - rest);
        }
        Self {
            bytes: bytes.into(),
            length,
            count: length,
        }
    }

    /// Reads what a peer sent; `None` if the size is wrong, or a bit behind the last piece is set.
    pub(crate) fn from_bytes(bytes: &[u8], length: u32) -> Option<Self> {
        if bytes.len() != bytes_of(length) {
            return None;
        }
        let spare = match length % 8 {
            0 => 0,
            used => 0xff_u8 >> used,
        };
        if bytes.last().is_some_and(|last| last & spare != 0) {
            return None;
        }
        Some(Self {
            bytes: bytes.into(),
            length,
            count: bytes.iter().map(|byte| byte.count_ones()).sum(),
        })
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn len(&self) -> u32 {
        self.length
    }

    /// Number of pieces in the set.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count == self.length
    }

    /// Whether the piece is in the set; `false` for one that does not exist.
    pub(crate) fn has(&self, piece: u32) -> bool {
        let byte = self.bytes.get(piece as usize / 8);
        byte.is_some_and(|byte| byte & mask(piece) != 0)
    }

    /// Adds a piece. Returns whether it is new; a piece that does not exist is ignored.
    pub(crate) fn insert(&mut self, piece: u32) -> bool {
        if piece >= self.length || self.has(piece) {
            return false;
        }
        self.bytes[piece as usize / 8] |= mask(piece);
        self.count += 1;
        true
    }

    /// Removes a piece. Returns whether it was there.
    pub(crate) fn remove(&mut self, piece: u32) -> bool {
        if !self.has(piece) {
            return false;
        }
        self.bytes[piece as usize / 8] &= !mask(piece);
        self.count -= 1;
        true
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.length).filter(|piece| self.has(*piece))
    }
}

impl std::fmt::Debug for Bitfield {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bitfield({} of {})", self.count, self.length)
    }
}

/// Bytes of a bitfield of `length` pieces.
pub(crate) fn bytes_of(length: u32) -> usize {
    length.div_ceil(8) as usize
}

fn mask(piece: u32) -> u8 {
    0x80 >> (piece % 8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bitfield_of_the_wrong_size_or_with_spare_bits_is_refused() {
        assert!(Bitfield::from_bytes(&[0xff, 0x80], 9).is_some());
        assert!(Bitfield::from_bytes(&[0xff, 0xc0], 9).is_none());
        assert!(Bitfield::from_bytes(&[0xff], 9).is_none());
        assert!(Bitfield::from_bytes(&[0xff, 0, 0], 9).is_none());
        assert!(Bitfield::from_bytes(&[], 0).is_some_and(|empty| empty.is_full()));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_set(length in 1_u32..70, steps in prop::collection::vec((any::<bool>(), 0_u32..80), 0..60)) {
            let mut model = BTreeSet::new();
            let mut bits = Bitfield::new(length);
            for (is_added, piece) in steps {
                let changed = if is_added {
                    (piece < length && model.insert(piece), bits.insert(piece))
                } else {
                    (model.remove(&piece), bits.remove(piece))
                };
                prop_assert_eq!(changed.0, changed.1);
            }
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), model);
            prop_assert_eq!(Bitfield::from_bytes(bits.as_bytes(), length), Some(bits));
            prop_assert_eq!(Bitfield::full(length).count(), length);
            prop_assert_eq!(Bitfield::from_bytes(Bitfield::full(length).as_bytes(), length), Some(Bitfield::full(length)));
        }
    }
}
