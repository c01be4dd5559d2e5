//! Counts wrong pairing codes, per source and in all. Pure, and bounded whatever is sent.

use std::{
    collections::{HashMap, VecDeque},
    time::Instant,
};

use admission::throttle::Source;

use crate::constants::{GUESS_WINDOW, MAX_GUESS_SOURCES, MAX_GUESSES, MAX_GUESSES_OF_SOURCE};

/// Recent wrong codes.
#[derive(Debug, Default)]
pub struct Guesses {
    /// Oldest first; `None` is what sources without a place of their own share.
    recent: VecDeque<(Instant, Option<Source>)>,
    of_source: HashMap<Option<Source>, usize>,
}

impl Guesses {
    fn forget(&mut self, now: Instant) {
        while let Some((at, source)) = self.recent.front().copied() {
            if now.saturating_duration_since(at) < GUESS_WINDOW {
                break;
            }
            self.recent.pop_front();
            if let Some(count) = self.of_source.get_mut(&source) {
                *count -= 1;
                if *count == 0 {
                    self.of_source.remove(&source);
                }
            }
        }
    }

    /// The place that counts this source.
    fn place(&self, source: Source) -> Option<Source> {
        let has_room = self.of_source.len() < MAX_GUESS_SOURCES;
        (has_room || self.of_source.contains_key(&Some(source))).then_some(source)
    }

    /// Whether no further code of this source is looked at now.
    pub fn is_throttled(&mut self, source: Source, now: Instant) -> bool {
        self.forget(now);
        let of_source = self.of_source.get(&self.place(source)).copied().unwrap_or(0);
        of_source >= MAX_GUESSES_OF_SOURCE || self.recent.len() >= MAX_GUESSES
    }

    /// Records a wrong code.
    pub fn record(&mut self, source: Source, now: Instant) {
        self.forget(now);
        if self.recent.len() < MAX_GUESSES {
            let place = self.place(source);
            self.recent.push_back((now, place));
            *self.of_source.entry(place).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use super::*;

    fn source(last: u32) -> Source {
        Source::of(Ipv4Addr::from_bits(0x0a00_0000 + last).into())
    }

    #[test]
    fn a_source_has_ten_guesses_in_two_minutes_and_all_have_two_hundred() {
        let mut guesses = Guesses::default();
        let start = Instant::now();
        for _ in 0..10 {
            assert!(!guesses.is_throttled(source(1), start));
            guesses.record(source(1), start);
        }
        assert!(guesses.is_throttled(source(1), start));
        assert!(!guesses.is_throttled(source(2), start));
        (2..192).for_each(|other| guesses.record(source(other), start));
        assert!(guesses.is_throttled(source(500), start));
        let later = start + Duration::from_mins(2);
        assert!(!guesses.is_throttled(source(1), later));
    }

    #[test]
    fn memory_does_not_grow_with_guesses_or_sources() {
        let mut guesses = Guesses::default();
        let start = Instant::now();
        for other in 0..10_000 {
            guesses.record(source(other), start);
        }
        assert!(guesses.recent.len() <= MAX_GUESSES && guesses.of_source.len() <= MAX_GUESS_SOURCES + 1);
    }
}
