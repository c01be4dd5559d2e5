//! Which piece comes next: by priority, then the rarest, or in order. Pure.
//!
//! Wanted pieces that nobody works on lie in buckets by priority and availability, so that the choice does not depend on
//! the number of pieces. Peers that have everything raise the availability of all pieces alike and are not counted.

use crate::bitfield::Bitfield;

/// Availabilities above this are alike: such pieces are not rare.
const COMMON: u16 = BUCKETS as u16 - 1;

/// Buckets of one priority.
const BUCKETS: u8 = 16;

/// Marks a piece that lies in no bucket.
const NOWHERE: u8 = u8::MAX;

/// How much a file is wanted. Pieces have the highest of their files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Not wanted.
    Skip,
    /// After all others.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// Before all others.
    High,
}

/// Chooses pieces.
#[derive(Debug)]
pub(crate) struct Picker {
    pieces: Box<[Piece]>,
    /// By priority from the highest, then from the rarest; none before the first piece is placed, so that a torrent that only
    /// seeds has none.
    buckets: Vec<Vec<u32>>,
    /// Pieces are asked for in order.
    pub(crate) is_sequential: bool,
    /// State of the generator that chooses among equally rare pieces.
    random: u64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Peers that have it, without those that have everything.
    availability: u16,
    bucket: u8,
    /// The class of priority that it belongs to: 0 is the most urgent.
    class: u8,
    index: u32,
}

/// The class of pieces that come before all priorities: the first and last of a file, if the user wants them first.
const URGENT: u8 = 0;
const CLASSES: u8 = 4;
/// The class of pieces that are not wanted.
const UNWANTED: u8 = CLASSES;

impl Picker {
    /// No piece is wanted.
    pub(crate) fn new(pieces: u32, seed: u64) -> Self {
        let piece = Piece {
            availability: 0,
            bucket: NOWHERE,
            class: UNWANTED,
            index: 0,
        };
        Self {
            pieces: vec![piece; pieces as usize].into(),
            buckets: Vec::new(),
            is_sequential: false,
            random: seed | 1,
        }
    }

    /// Says how much a piece is wanted.
    pub(crate) fn set_priority(&mut self, piece: u32, priority: Priority, is_urgent: bool) {
        let class = match (priority, is_urgent) {
            (Priority::Skip, _) => UNWANTED,
            (_, true) => URGENT,
            (Priority::High, false) => 1,
            (Priority::Normal, false) => 2,
            (Priority::Low, false) => 3,
        };
        let was_placed = self.take(piece);
        self.pieces[piece as usize].class = class;
        if was_placed {
            self.place(piece);
        }
    }

    /// Whether the piece is wanted at all.
    pub(crate) fn wants(&self, piece: u32) -> bool {
        self.pieces[piece as usize].class != UNWANTED
    }

    /// Peers that have the piece, without those that have everything.
    pub(crate) fn availability(&self, piece: u32) -> u16 {
        self.pieces[piece as usize].availability
    }

    pub(crate) fn add_availability(&mut self, piece: u32) {
        self.change_availability(piece, self.pieces[piece as usize].availability.saturating_add(1));
    }

    pub(crate) fn remove_availability(&mut self, piece: u32) {
        self.change_availability(piece, self.pieces[piece as usize].availability.saturating_sub(1));
    }

    fn change_availability(&mut self, piece: u32, availability: u16) {
        let before = self.pieces[piece as usize].availability;
        self.pieces[piece as usize].availability = availability;
        if before.min(COMMON) != availability.min(COMMON) && self.take(piece) {
            self.place(piece);
        }
    }

    /// Makes a piece one that may be chosen: it is missing, and nobody works on it.
    pub(crate) fn place(&mut self, piece: u32) {
        let Piece {
            availability,
            bucket,
            class,
            ..
        } = self.pieces[piece as usize];
        if bucket != NOWHERE {
            return;
        }
        // Unwanted pieces lie in a bucket as well, so that a change of priority finds them; it is never searched.
        let bucket = if class == UNWANTED {
            UNWANTED_BUCKET
        } else {
            class * BUCKETS + u8::try_from(availability.min(COMMON)).expect("it is below the number of buckets")
        };
        let place = &mut self.pieces[piece as usize];
        place.bucket = bucket;
        if bucket != UNWANTED_BUCKET {
            self.buckets.resize(usize::from(CLASSES * BUCKETS), Vec::new());
            let bucket = &mut self.buckets[usize::from(bucket)];
            place.index = u32::try_from(bucket.len()).expect("there are fewer pieces than 2^32");
            bucket.push(piece);
        }
    }

    /// Takes a piece out of the choice. Returns whether it was there.
    pub(crate) fn take(&mut self, piece: u32) -> bool {
        let Piece { bucket, index, .. } = self.pieces[piece as usize];
        if bucket == NOWHERE {
            return false;
        }
        self.pieces[piece as usize].bucket = NOWHERE;
        if bucket != UNWANTED_BUCKET {
            let bucket = &mut self.buckets[usize::from(bucket)];
            bucket.swap_remove(index as usize);
            if let Some(moved) = bucket.get(index as usize) {
                self.pieces[*moved as usize].index = index;
            }
        }
        true
    }

    /// Whether the piece may be chosen: it is wanted and missing, and nobody works on it.
    pub(crate) fn is_placed(&self, piece: u32) -> bool {
        let piece = self.pieces.get(piece as usize);
        piece.is_some_and(|piece| piece.bucket < UNWANTED_BUCKET)
    }

    /// The best piece among those that `has` holds, or of all. It stays in the choice until it is taken.
    pub(crate) fn choose(&mut self, has: Option<&Bitfield>) -> Option<u32> {
        if self.buckets.is_empty() {
            return None;
        }
        let has = |piece: &u32| has.is_none_or(|has| has.has(*piece));
        for class in 0..CLASSES {
            let found = if self.is_sequential {
                self.first_of(class, &has)
            } else {
                self.rarest_of(class, &has)
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The buckets of a class.
    fn of_class(class: u8) -> std::ops::Range<usize> {
        usize::from(class * BUCKETS)..usize::from((class + 1) * BUCKETS)
    }

    fn rarest_of(&mut self, class: u8, has: &impl Fn(&u32) -> bool) -> Option<u32> {
        for bucket in Self::of_class(class) {
            let length = self.buckets[bucket].len();
            if length == 0 {
                continue;
            }
            let start = self.next_random(length);
            let bucket = &self.buckets[bucket];
            let found = bucket[start..].iter().chain(&bucket[..start]).find(|piece| has(piece));
            if found.is_some() {
                return found.copied();
            }
        }
        None
    }

    fn first_of(&self, class: u8, has: &impl Fn(&u32) -> bool) -> Option<u32> {
        let buckets = &self.buckets[Self::of_class(class)];
        buckets.iter().flatten().filter(|piece| has(piece)).min().copied()
    }

    /// Whether any wanted piece waits to be chosen.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.buckets.iter().all(Vec::is_empty)
    }

    /// xorshift64*: the choice among equally rare pieces need not be unpredictable, only different on every peer.
    fn next_random(&mut self, below: usize) -> usize {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let number = self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        number as usize % below
    }
}

/// Marks a piece that is missing and not wanted.
const UNWANTED_BUCKET: u8 = u8::MAX - 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(pieces: u32) -> Picker {
        let mut picker = Picker::new(pieces, 7);
        for piece in 0..pieces {
            picker.set_priority(piece, Priority::Normal, false);
            picker.place(piece);
        }
        picker
    }

    #[test]
    fn rare_pieces_come_first_and_priorities_before_that() {
        let mut picker = placed(4);
        for piece in [0, 1, 3] {
            picker.add_availability(piece);
        }
        let all = Bitfield::full(4);
        assert_eq!(picker.choose(Some(&all)), Some(2));
        picker.set_priority(3, Priority::High, false);
        assert_eq!(picker.choose(Some(&all)), Some(3));
        picker.set_priority(1, Priority::Low, true);
        assert_eq!(picker.choose(Some(&all)), Some(1));
        picker.set_priority(2, Priority::Skip, true);
        for piece in [3, 1, 0] {
            assert!(picker.take(piece));
        }
        assert_eq!(picker.choose(Some(&all)), None);
        assert!(picker.is_exhausted());
    }

    #[test]
    fn in_order_the_lowest_piece_comes_first() {
        let mut picker = placed(5);
        picker.is_sequential = true;
        picker.add_availability(1);
        let mut has = Bitfield::full(5);
        has.remove(0);
        assert_eq!(picker.choose(Some(&has)), Some(1));
    }

    proptest! {
        #[test]
        fn a_choice_is_as_rare_as_any_and_always_found(
            steps in prop::collection::vec((0_u8..5, 0_u32..12), 0..120),
            has in prop::collection::vec(any::<bool>(), 12),
        ) {
            let mut picker = placed(12);
            let mut bits = Bitfield::new(12);
            for piece in (0..12).filter(|piece| has[*piece as usize]) {
                bits.insert(piece);
            }
            let mut free = [true; 12];
            for (step, piece) in steps {
                match step {
                    0 => picker.add_availability(piece),
                    1 => picker.remove_availability(piece),
                    2 => free[piece as usize] = { picker.place(piece); true },
                    3 => free[piece as usize] = { picker.take(piece); false },
                    _ => picker.set_priority(piece, [Priority::Skip, Priority::Normal][usize::from(picker.random.is_multiple_of(2))], false),
                }
                let candidates: Vec<_> = (0..12)
                    .filter(|piece| free[*piece as usize] && picker.wants(*piece) && bits.has(*piece))
                    .collect();
                let rarest = candidates.iter().map(|piece| picker.availability(*piece)).min();
                let chosen = picker.choose(Some(&bits));
                prop_assert_eq!(chosen.map(|piece| picker.availability(piece)), rarest);
                prop_assert!(chosen.is_none_or(|piece| candidates.contains(&piece)));
            }
        }
    }
}
