//! Notices that the machine slept. Pure.

use std::time::{Duration, Instant};

/// How much longer the time of day must have passed than the clock that stands still during sleep. Clocks that are kept
/// right by a time server are changed by less at once.
const SHORTEST_SLEEP: Duration = Duration::from_secs(10);

/// Two clocks, as they were when they were last looked at.
#[derive(Debug)]
pub(crate) struct Watch {
    awake: Instant,
    unix_ms: i64,
}

impl Watch {
    /// From now on.
    pub(crate) fn new(awake: Instant, unix_ms: i64) -> Self {
        Self { awake, unix_ms }
    }

    /// Whether the machine slept since the last look. A time of day that was set forward by as much looks the same; one that
    /// was set back does not.
    pub(crate) fn has_slept(&mut self, awake: Instant, unix_ms: i64) -> bool {
        let passed = awake.saturating_duration_since(self.awake);
        let of_day = u64::try_from(unix_ms.saturating_sub(self.unix_ms)).unwrap_or(0);
        *self = Self::new(awake, unix_ms);
        Duration::from_millis(of_day).saturating_sub(passed) >= SHORTEST_SLEEP
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever else happens to the clocks, each sleep is noticed once, and nothing else is taken for one.
        #[test]
        fn each_sleep_is_noticed_once(steps in prop::collection::vec((1_u64..60_000, 0_u64..100_000_000, -9_999_i64..9_999), 1..50)) {
            let (mut awake, mut unix_ms) = (Instant::now(), 1_800_000_000_000_i64);
            let mut watch = Watch::new(awake, unix_ms);
            for (passed, slept, set) in steps {
                awake += Duration::from_millis(passed);
                unix_ms += i64::try_from(passed + slept).unwrap() + set;
                let jumped = i64::try_from(slept).unwrap() + set;
                let is_sleep = jumped >= i64::try_from(SHORTEST_SLEEP.as_millis()).unwrap();
                prop_assert_eq!(watch.has_slept(awake, unix_ms), is_sleep);
                prop_assert!(!watch.has_slept(awake, unix_ms));
            }
        }
    }

    #[test]
    fn a_clock_that_is_set_back_is_no_sleep() {
        let start = Instant::now();
        let mut watch = Watch::new(start, 1_800_000_000_000);
        assert!(!watch.has_slept(start + Duration::from_secs(15), 1_000_000_000_000));
        assert!(!watch.has_slept(start + Duration::from_secs(30), 1_000_000_015_000));
        assert!(watch.has_slept(start + Duration::from_secs(45), 1_800_000_000_000));
    }
}
