//! The speed of one place among the concurrent fetches, across the segments that it fetches: one segment is often complete
//! before a speed can be told. Pure.

use std::{collections::VecDeque, time::Duration};

use transfer::SPEED_WINDOW;

/// Reads are summed up over this time, so that there are few sums.
const GRAIN: Duration = Duration::from_millis(100);

/// What came over the last [`SPEED_WINDOW`] of waiting for the server.
#[derive(Debug, Default)]
pub(crate) struct Speed {
    sums: VecDeque<(Duration, u64)>,
    time: Duration,
    bytes: u64,
    /// Of the segment that is being fetched.
    segment: (Duration, u64),
}

impl Speed {
    /// Counts a read of so many bytes that took `time`. Returns the rate if it is no more than `limit` bytes a second over
    /// the window.
    pub(crate) fn count(&mut self, time: Duration, bytes: u64, limit: u64) -> Option<u64> {
        self.segment.0 += time;
        self.segment.1 += bytes;
        match self.sums.back_mut() {
            Some((sum, brought)) if *sum < GRAIN => {
                *sum += time;
                *brought += bytes;
            }
            _ => self.sums.push_back((time, bytes)),
        }
        self.time += time;
        self.bytes += bytes;
        while let Some((oldest, brought)) = self.sums.front().copied()
            && self.time >= SPEED_WINDOW + oldest
        {
            self.sums.pop_front();
            self.time -= oldest;
            self.bytes -= brought;
        }
        let rate = rate(self.time, self.bytes);
        (self.time >= SPEED_WINDOW && rate <= limit).then_some(rate)
    }

    /// The rate of the segment that is complete; the next one begins.
    pub(crate) fn completed(&mut self) -> u64 {
        let (time, bytes) = std::mem::take(&mut self.segment);
        rate(time, bytes)
    }
}

fn rate(time: Duration, bytes: u64) -> u64 {
    u64::try_from(u128::from(bytes) * 1000 / time.as_millis().max(1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_told_after_the_window_and_from_it_alone() {
        let mut speed = Speed::default();
        let second = Duration::from_secs(1);
        for _ in 0..9 {
            assert_eq!(speed.count(second, 10, 10), None);
        }
        assert_eq!(speed.count(second, 10, 9), None, "10 bytes a second are faster");
        assert_eq!(speed.count(second, 10, 10), Some(10));
        assert_eq!(speed.count(second, 1000, 10), None);
        for _ in 0..9 {
            assert_eq!(
                speed.count(second, 0, 10),
                None,
                "what came fast is in the window still"
            );
        }
        assert_eq!(speed.count(second, 0, 10), Some(0));
        for _ in 0..100_000 {
            speed.count(Duration::from_millis(1), 1, 0);
        }
        assert!(speed.sums.len() <= 101, "{}", speed.sums.len());
    }
}
