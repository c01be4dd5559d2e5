//! The mirrors of one file, the first URL included: which are in use, which are trusted, and which delivered which
//! bytes.
//!
//! A mirror is trusted only after a range of it equals what the base sent, and once the file is complete a sample of
//! its bytes ([`SAMPLE_BYTES`]) is compared again. Equal strong entity tags or a checksum make that unnecessary.

use transfer::{ByteRange, RangeSet, SafeUrl, run::SAMPLE_BYTES};

use crate::answer::verdict::Facts;

/// Consecutive failures after which a mirror is dropped, if there is another.
const MAX_FAILURES: u32 = 3;

#[derive(Debug)]
pub(crate) struct Mirror {
    /// The URL in the source.
    pub(crate) home: SafeUrl,
    /// Its last redirect target; requested first, so that redirects are not followed again for each segment.
    pub(crate) current: SafeUrl,
    /// The facts of the file according to this mirror.
    pub(crate) facts: Facts,
    standing: Standing,
    active: u16,
    /// Failures since it last delivered anything.
    failures: u32,
    received: RangeSet,
    /// The bytes of the file that are from it, if that is recorded of all.
    delivered: RangeSet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Not requested or not compared yet.
    Untested,
    /// The base, or equal to it in all comparisons.
    Trusted,
    Dropped,
}

#[derive(Debug)]
pub(crate) struct Mirrors {
    list: Vec<Mirror>,
    base: usize,
    /// Whether it is recorded which bytes are from which mirror, the base included.
    attributes_all: bool,
}

impl Mirrors {
    /// With `attributes_all`, [`Mirrors::culprits`] knows who delivered what.
    pub(crate) fn new(urls: &[SafeUrl], attributes_all: bool) -> Self {
        let list = urls.iter().map(|url| Mirror {
            home: url.clone(),
            current: url.clone(),
            facts: Facts::default(),
            standing: Standing::Untested,
            active: 0,
            failures: 0,
            received: RangeSet::new(),
            delivered: RangeSet::new(),
        });
        Self {
            list: list.collect(),
            base: 0,
            attributes_all,
        }
    }

    pub(crate) fn get(&self, index: usize) -> &Mirror {
        &self.list[index]
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Mirror {
        &mut self.list[index]
    }

    /// The base: the mirror that the others are compared with.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    pub(crate) fn set_base(&mut self, index: usize) {
        self.base = index;
        self.list[index].standing = Standing::Trusted;
    }

    /// The next mirror after `index` that is not dropped, if any.
    pub(crate) fn next_after(&self, index: usize) -> Option<usize> {
        let count = self.list.len();
        (1..count)
            .map(|step| (index + step) % count)
            .find(|index| self.list[*index].standing != Standing::Dropped)
    }

    /// The mirror for the next of `wanted` connections: the least used one. `with_untested` says that there are bytes
    /// to compare a new one with; until then its share is kept free. `cap` is how many connections a mirror allows.
    pub(crate) fn choose(&self, wanted: u16, with_untested: bool, cap: impl Fn(&Mirror) -> u16) -> Option<usize> {
        let in_use = self
            .list
            .iter()
            .filter(|mirror| mirror.standing != Standing::Dropped)
            .count();
        let share = wanted.div_ceil(u16::try_from(in_use.max(1)).unwrap_or(u16::MAX));
        let is_kept_free = !with_untested && self.list.iter().any(|mirror| mirror.standing == Standing::Untested);
        let cap = |mirror: &Mirror| {
            if is_kept_free {
                cap(mirror).min(share)
            } else {
                cap(mirror)
            }
        };
        let usable = |mirror: &Mirror| match mirror.standing {
            Standing::Trusted => true,
            Standing::Untested => with_untested,
            Standing::Dropped => false,
        };
        let open = self
            .list
            .iter()
            .enumerate()
            .filter(|(_, mirror)| usable(mirror) && mirror.active < cap(mirror));
        open.min_by_key(|(_, mirror)| mirror.active).map(|(index, _)| index)
    }

    /// Whether bytes of `index` must be compared before use.
    pub(crate) fn is_untested(&self, index: usize) -> bool {
        self.list[index].standing == Standing::Untested && !self.has_base_tag(index)
    }

    /// Whether `index` and the base have the same strong entity tag, which guarantees the same bytes.
    pub(crate) fn has_base_tag(&self, index: usize) -> bool {
        let base = self.list[self.base].facts.strong_etag();
        base.is_some() && base == self.list[index].facts.strong_etag()
    }

    pub(crate) fn trust(&mut self, index: usize) {
        self.list[index].standing = Standing::Trusted;
    }

    /// Drops `index`. Returns the bytes that it delivered.
    pub(crate) fn drop_mirror(&mut self, index: usize) -> RangeSet {
        self.list[index].standing = Standing::Dropped;
        std::mem::take(&mut self.list[index].received)
    }

    pub(crate) fn opened(&mut self, index: usize) {
        self.list[index].active += 1;
    }

    pub(crate) fn closed(&mut self, index: usize) {
        self.list[index].active = self.list[index].active.saturating_sub(1);
    }

    pub(crate) fn active_on(&self, host: Option<&str>) -> u16 {
        self.list
            .iter()
            .filter(|mirror| mirror.current.as_url().host_str() == host)
            .map(|mirror| mirror.active)
            .sum()
    }

    /// Counts a failure of `index`. Returns whether to drop it: it never delivered anything, or failed too often.
    pub(crate) fn failed(&mut self, index: usize) -> bool {
        let mirror = &mut self.list[index];
        mirror.failures += 1;
        mirror.standing == Standing::Untested || mirror.failures >= MAX_FAILURES
    }

    /// Records that `index` delivered `range`. The base's own bytes are not recorded.
    pub(crate) fn received(&mut self, index: usize, range: ByteRange) {
        self.list[index].failures = 0;
        if index != self.base {
            self.list[index].received.insert(range);
        }
        if self.attributes_all {
            for (other, mirror) in self.list.iter_mut().enumerate() {
                if other == index {
                    mirror.delivered.insert(range);
                } else {
                    mirror.delivered.remove(range);
                }
            }
        }
    }

    /// The mirrors that delivered a whole one of these wrong pieces, each with their number. If there is none, the
    /// mirror that delivered most of the wrong bytes, since nobody else is more likely to have been wrong.
    pub(crate) fn culprits(&self, wrong: &[ByteRange]) -> Vec<(usize, usize)> {
        let in_use = |(_, mirror): &(usize, &Mirror)| mirror.standing != Standing::Dropped;
        let mirrors = || self.list.iter().enumerate().filter(in_use);
        let whole = |mirror: &Mirror| wrong.iter().filter(|piece| mirror.delivered.covers(**piece)).count();
        let alone: Vec<_> = mirrors()
            .map(|(index, mirror)| (index, whole(mirror)))
            .filter(|(_, pieces)| *pieces > 0)
            .collect();
        if !alone.is_empty() {
            return alone;
        }
        let bytes = |mirror: &Mirror, piece: &ByteRange| {
            let missing: u64 = mirror.delivered.gaps(*piece).into_iter().map(ByteRange::len).sum();
            piece.len() - missing
        };
        let share = |mirror: &Mirror| wrong.iter().map(|piece| bytes(mirror, piece)).sum::<u64>();
        let touched = |mirror: &Mirror| wrong.iter().filter(|piece| bytes(mirror, piece) > 0).count();
        let worst = mirrors().max_by_key(|(_, mirror)| share(mirror));
        let worst = worst.filter(|(_, mirror)| share(mirror) > 0);
        worst
            .map(|(index, mirror)| (index, touched(mirror)))
            .into_iter()
            .collect()
    }

    /// Whether a mirror is left that is none of these.
    pub(crate) fn has_others_than(&self, some: &[(usize, usize)]) -> bool {
        let mut mirrors = self.list.iter().enumerate();
        mirrors.any(|(index, mirror)| {
            mirror.standing != Standing::Dropped && !some.iter().any(|(culprit, _)| *culprit == index)
        })
    }

    /// Clears the records of deliveries, because the file starts over.
    pub(crate) fn start_over(&mut self) {
        for mirror in &mut self.list {
            mirror.received = RangeSet::new();
            mirror.delivered = RangeSet::new();
            mirror.facts = Facts::default();
            if mirror.standing == Standing::Trusted {
                mirror.standing = Standing::Untested;
            }
        }
    }

    /// Samples to compare with the base at the end: for each other mirror, the middle of its largest range.
    pub(crate) fn samples(&self) -> Vec<(usize, ByteRange)> {
        let sample = |range: ByteRange| {
            let length = range.len().min(SAMPLE_BYTES);
            let start = range.start + (range.len() - length) / 2;
            ByteRange::new(start, start + length)
        };
        let of_others = self.list.iter().enumerate().filter(|(index, _)| *index != self.base);
        of_others
            .filter_map(|(index, mirror)| {
                Some((index, sample(mirror.received.iter().max_by_key(|range| range.len())?)))
            })
            .collect()
    }

    /// Everything that other mirrors than the base delivered.
    pub(crate) fn brought_by_others(&mut self) -> RangeSet {
        let base = self.base;
        let others = self.list.iter_mut().enumerate().filter(|(index, _)| *index != base);
        others
            .flat_map(|(_, mirror)| std::mem::take(&mut mirror.received).iter().collect::<Vec<_>>())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(count: usize) -> Mirrors {
        let urls: Vec<_> = (0..count)
            .map(|n| SafeUrl::parse(&format!("http://m{n}.test/f")).unwrap())
            .collect();
        let mut mirrors = Mirrors::new(&urls, false);
        mirrors.set_base(0);
        mirrors
    }

    #[test]
    fn connections_are_spread_and_new_places_wait_for_something_to_compare_with() {
        let mut mirrors = mirrors(3);
        mirrors.opened(0);
        assert_eq!(mirrors.choose(6, false, |_| 16), Some(0));
        mirrors.opened(0);
        assert_eq!(
            mirrors.choose(6, false, |_| 16),
            None,
            "the others' shares are kept free"
        );
        assert_eq!(mirrors.choose(6, true, |_| 16), Some(1));
        mirrors.opened(1);
        assert_eq!(mirrors.choose(6, true, |_| 16), Some(2));
        mirrors.drop_mirror(2);
        assert_eq!(mirrors.choose(6, true, |_| 1), None);
    }

    #[test]
    fn a_place_that_only_fails_is_given_up() {
        let mut mirrors = mirrors(2);
        assert!(mirrors.failed(1), "it never received anything");
        assert!(!mirrors.failed(0) && !mirrors.failed(0));
        mirrors.received(0, ByteRange::new(0, 1));
        assert!(!mirrors.failed(0) && !mirrors.failed(0));
        assert!(mirrors.failed(0));
    }

    #[test]
    fn equal_strong_tags_need_no_comparison() {
        let mut mirrors = mirrors(2);
        assert!(mirrors.is_untested(1));
        for index in 0..2 {
            mirrors.get_mut(index).facts.etag = Some("\"a\"".into());
        }
        assert!(!mirrors.is_untested(1));
    }

    #[test]
    fn samples_lie_in_what_was_brought() {
        let mut mirrors = mirrors(3);
        mirrors.received(0, ByteRange::new(0, 10));
        mirrors.received(1, ByteRange::new(100, 100 + 3 * SAMPLE_BYTES));
        mirrors.received(1, ByteRange::new(10, 20));
        assert_eq!(
            mirrors.samples(),
            [(1, ByteRange::new(100 + SAMPLE_BYTES, 100 + 2 * SAMPLE_BYTES))]
        );
    }

    #[test]
    fn who_delivered_a_wrong_piece_alone_is_blamed_for_it_and_else_who_delivered_most() {
        let mut mirrors = mirrors(3);
        mirrors.attributes_all = true;
        mirrors.received(0, ByteRange::new(0, 100));
        mirrors.received(1, ByteRange::new(100, 200));
        mirrors.received(2, ByteRange::new(250, 300));
        let piece = |n: u64| ByteRange::new(n * 50, n * 50 + 50);
        assert_eq!(mirrors.culprits(&[piece(0), piece(2), piece(3)]), [(0, 1), (1, 2)]);
        assert_eq!(
            mirrors.culprits(&[ByteRange::new(60, 120)]),
            [(0, 1)],
            "most of it is of the first"
        );
        assert_eq!(mirrors.culprits(&[piece(4)]), [], "those bytes are of an earlier run");
        mirrors.received(1, piece(0));
        assert_eq!(mirrors.culprits(&[piece(0)]), [(1, 1)], "it was fetched again");
        assert!(mirrors.has_others_than(&[(1, 1)]));
        mirrors.drop_mirror(0);
        mirrors.drop_mirror(2);
        assert!(!mirrors.has_others_than(&[(1, 1)]));
    }
}
