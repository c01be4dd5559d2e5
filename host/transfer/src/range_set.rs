//! A set of byte ranges: the valid bytes of a file. Always sorted; ranges never touch or overlap.

use std::fmt;

/// A half-open range of bytes, `start..end`. Never empty inside a [`RangeSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl ByteRange {
    /// `start..end`; an end before the start makes an empty range at `start`.
    pub fn new(start: u64, end: u64) -> Self {
        Self {
            start,
            end: end.max(start),
        }
    }

    /// Number of bytes.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A set of bytes as sorted ranges with gaps between them.
///
/// ```
/// use transfer::{ByteRange, RangeSet};
///
/// let mut there = RangeSet::new();
/// there.insert(ByteRange::new(0, 10));
/// assert_eq!(there.insert(ByteRange::new(5, 20)), 10, "ten of these bytes were new");
/// assert_eq!(there.gaps(ByteRange::new(0, 30)), [ByteRange::new(20, 30)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RangeSet(Vec<ByteRange>);

impl RangeSet {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `range`. Returns how many of its bytes were new.
    pub fn insert(&mut self, range: ByteRange) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Merge everything from the first range that reaches our start to the last that begins by our end.
        let first = self.0.partition_point(|held| held.end < range.start);
        let last = self.0.partition_point(|held| held.start <= range.end);
        let melted = &self.0[first..last];
        let held: u64 = melted.iter().map(|other| overlap(*other, range)).sum();
        let start = melted.first().map_or(range.start, |other| other.start.min(range.start));
        let end = melted.last().map_or(range.end, |other| other.end.max(range.end));
        self.0.splice(first..last, [ByteRange { start, end }]);
        range.len() - held
    }

    /// Removes `range`.
    pub fn remove(&mut self, range: ByteRange) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|held| held.end <= range.start);
        let last = self.0.partition_point(|held| held.start < range.end);
        let mut kept = Vec::with_capacity(2);
        for held in &self.0[first..last] {
            kept.extend([
                ByteRange::new(held.start, range.start),
                ByteRange::new(range.end, held.end),
            ]);
        }
        kept.retain(|part| !part.is_empty());
        self.0.splice(first..last, kept);
    }

    /// Number of bytes in the set.
    pub fn len(&self) -> u64 {
        self.0.iter().map(|range| range.len()).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of `range` is in it.
    pub fn covers(&self, range: ByteRange) -> bool {
        let next = self.0.partition_point(|held| held.end < range.end.max(range.start + 1));
        range.is_empty()
            || self
                .0
                .get(next)
                .is_some_and(|held| held.start <= range.start && range.end <= held.end)
    }

    /// The ranges in order.
    pub fn iter(&self) -> impl Iterator<Item = ByteRange> + '_ {
        self.0.iter().copied()
    }

    /// The parts of `within` that are not in the set, in order.
    pub fn gaps(&self, within: ByteRange) -> Vec<ByteRange> {
        let mut gaps = Vec::new();
        let mut at = within.start;
        for held in &self.0[self.0.partition_point(|held| held.end <= within.start)..] {
            if held.start >= within.end {
                break;
            }
            if held.start > at {
                gaps.push(ByteRange {
                    start: at,
                    end: held.start,
                });
            }
            at = held.end;
        }
        if at < within.end {
            gaps.push(ByteRange {
                start: at,
                end: within.end,
            });
        }
        gaps
    }

    /// The end of the run of bytes that begins at `start`; `start` itself if that byte is missing.
    pub fn contiguous_end(&self, start: u64) -> u64 {
        let next = self.0.partition_point(|held| held.end <= start);
        self.0
            .get(next)
            .filter(|held| held.start <= start)
            .map_or(start, |held| held.end)
    }
}

impl FromIterator<ByteRange> for RangeSet {
    fn from_iter<I: IntoIterator<Item = ByteRange>>(ranges: I) -> Self {
        let mut set = Self::new();
        for range in ranges {
            set.insert(range);
        }
        set
    }
}

fn overlap(one: ByteRange, other: ByteRange) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 64;

    /// The set as one flag per byte.
    fn flags(set: &RangeSet) -> Vec<bool> {
        (0..SIZE)
            .map(|at| set.iter().any(|range| range.start <= at && at < range.end))
            .collect()
    }

    fn range() -> impl Strategy<Value = ByteRange> {
        (0..=SIZE, 0..=SIZE).prop_map(|(a, b)| ByteRange::new(a.min(b), a.max(b)))
    }

    proptest! {
        #[test]
        fn the_set_agrees_with_one_flag_per_byte(steps in prop::collection::vec((any::<bool>(), range()), 0..40)) {
            let mut set = RangeSet::new();
            let mut model = vec![false; usize::try_from(SIZE).unwrap()];
            for (is_insert, range) in steps {
                let bytes = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
                let new = model[bytes.clone()].iter().filter(|held| !**held).count() as u64;
                model[bytes].fill(is_insert);
                if is_insert {
                    prop_assert_eq!(set.insert(range), new);
                } else {
                    set.remove(range);
                }
                prop_assert_eq!(flags(&set), model.clone());
                prop_assert!(set.0.windows(2).all(|pair| pair[0].end < pair[1].start), "sorted and apart: {:?}", set);
                prop_assert!(set.iter().all(|range| !range.is_empty()));
            }
        }

        #[test]
        fn gaps_are_exactly_what_is_missing(held in prop::collection::vec(range(), 0..10), within in range()) {
            let set: RangeSet = held.into_iter().collect();
            let mut filled = set.clone();
            for gap in set.gaps(within) {
                prop_assert_eq!(filled.insert(gap), gap.len(), "a gap holds nothing");
                prop_assert!(gap.start >= within.start && gap.end <= within.end);
            }
            prop_assert!(filled.covers(within));
            prop_assert_eq!(set.covers(within), set.gaps(within).is_empty());
        }

        #[test]
        fn contiguous_end_is_the_first_missing_byte(held in prop::collection::vec(range(), 0..10), start in 0..SIZE) {
            let set: RangeSet = held.into_iter().collect();
            let expected = (start..SIZE).find(|at| !flags(&set)[usize::try_from(*at).unwrap()]).unwrap_or(SIZE);
            prop_assert_eq!(set.contiguous_end(start), expected);
        }
    }
}
