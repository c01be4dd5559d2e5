//! How many connections are worthwhile. Pure.
//!
//! With a configured number there is nothing to measure. Otherwise a run starts with one connection, because on most
//! networks one is enough, and tries more while that would save time. Additional ones that increased the rate stay;
//! others are not replaced when they end (or are ended at once if they decreased it), and the next try is delayed. A
//! network that loses packets, or a server that throttles each connection, reaches the ceiling within a second; a
//! network that one connection saturates stays at one.

use std::time::Duration;

/// The shortest time over which a rate is measured.
const MIN_WINDOW: Duration = Duration::from_millis(100);

/// The longest time over which a rate is measured.
const MAX_WINDOW: Duration = Duration::from_secs(1);

/// Additional connections must increase the rate this much to stay. Less is noise of a shared network.
const GAIN: f64 = 1.10;

/// Measurements without gain after which the added connections are given up. The first is within their slow start, and
/// with packet loss any single one may be unlucky.
const STRIKES: u32 = 3;

/// A rate that grew by this much since the previous window is not stable yet, as in the slow start of TCP.
const GROWING: f64 = 1.25;

/// Windows to wait for a growing rate.
const MAX_GROWING_WINDOWS: u32 = 6;

/// Additional connections whose best rate is this much lower are ended at once.
const HARM: f64 = 0.95;

/// More connections are tried only if the rest takes at least this long, in seconds.
const WORTH_SECONDS: f64 = 1.0;

/// Wait after a failed try; doubles with each one up to [`MAX_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// The longest wait between tries: networks change, and a try costs little.
const MAX_PAUSE: Duration = Duration::from_mins(1);

/// A measurement of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Time since the run began.
    pub(crate) at: Duration,
    /// Bytes received since the run began.
    pub(crate) received: u64,
    /// Bytes still missing.
    pub(crate) missing: u64,
    /// Time from a request to its first byte.
    pub(crate) delay: Duration,
}

/// The number of connections a run should have.
#[derive(Debug)]
pub(crate) struct Ramp {
    wanted: u16,
    tolerated: u16,
    ceiling: u16,
    search: Option<Search>,
}

#[derive(Debug)]
struct Search {
    window: Option<Sample>,
    attempt: Option<Attempt>,
    /// The rate of the window before, and for how many windows it has been growing.
    growth: (f64, u32),
    next_try: Duration,
    pause: Duration,
}

/// A try of more connections.
#[derive(Debug)]
struct Attempt {
    count_before: u16,
    rate_before: f64,
    best: f64,
    looks: u32,
}

impl Ramp {
    /// `segments` connections, or as many as pay if that is 0; never more than `ceiling`.
    pub(crate) fn new(segments: u16, ceiling: u16) -> Self {
        let ceiling = ceiling.max(1);
        let search = (segments == 0).then_some(Search {
            window: None,
            attempt: None,
            growth: (0.0, 0),
            next_try: Duration::ZERO,
            pause: FIRST_PAUSE,
        });
        let wanted = segments.clamp(1, ceiling);
        Self {
            wanted,
            tolerated: wanted,
            ceiling,
            search,
        }
    }

    /// The number of connections to have now.
    pub(crate) fn wanted(&self) -> u16 {
        self.wanted.min(self.ceiling)
    }

    /// How many connections may finish their leases. More than [`Ramp::wanted`] after a try without gain or harm:
    /// ending them would discard bytes in flight.
    pub(crate) fn tolerated(&self) -> u16 {
        self.tolerated.max(self.wanted).min(self.ceiling)
    }

    /// The host refused one more than `allowed` connections.
    pub(crate) fn refused(&mut self, allowed: u16) {
        self.ceiling = self.ceiling.min(allowed.max(1));
        self.wanted = self.wanted.min(self.ceiling);
        if let Some(search) = &mut self.search {
            search.attempt = None;
            search.window = None;
        }
    }

    /// Adds a measurement; changes [`Ramp::wanted`] once there are enough.
    pub(crate) fn look(&mut self, sample: Sample) {
        let Some(search) = &mut self.search else { return };
        let Some(start) = search.window else {
            search.window = Some(sample);
            return;
        };
        let elapsed = sample.at.saturating_sub(start.at);
        if elapsed < (sample.delay * 3).clamp(MIN_WINDOW, MAX_WINDOW) {
            return;
        }
        search.window = Some(sample);
        let rate = as_f64(sample.received.saturating_sub(start.received)) / elapsed.as_secs_f64();
        if let Some(attempt) = &mut search.attempt {
            attempt.best = attempt.best.max(rate);
            attempt.looks += 1;
            if rate >= attempt.rate_before * GAIN {
                search.attempt = None;
                search.pause = FIRST_PAUSE;
            } else {
                if attempt.looks >= STRIKES {
                    self.wanted = attempt.count_before;
                    if attempt.best < attempt.rate_before * HARM {
                        self.tolerated = self.wanted;
                    }
                    search.attempt = None;
                    search.next_try = sample.at + search.pause;
                    search.pause = (search.pause * 2).min(MAX_PAUSE);
                }
                return;
            }
        }
        if search.is_growing(rate) {
            return;
        }
        let seconds_left = as_f64(sample.missing) / rate.max(1.0);
        if self.wanted < self.ceiling && sample.at >= search.next_try && seconds_left > WORTH_SECONDS {
            // A long rest justifies a large step.
            let factor = if seconds_left > 4.0 * WORTH_SECONDS { 4 } else { 2 };
            search.attempt = Some(Attempt {
                count_before: self.wanted,
                rate_before: rate,
                best: 0.0,
                looks: 0,
            });
            search.growth = (rate, MAX_GROWING_WINDOWS);
            self.wanted = self.wanted.saturating_mul(factor).min(self.ceiling);
            self.tolerated = self.tolerated.max(self.wanted);
        }
    }
}

impl Search {
    /// Whether the present connections still speed up by themselves; a comparison now would be too early.
    fn is_growing(&mut self, rate: f64) -> bool {
        let (before, windows) = self.growth;
        let is_growing = rate > before * GROWING && windows < MAX_GROWING_WINDOWS;
        self.growth = (rate, if is_growing { windows + 1 } else { 0 });
        is_growing
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate of a rate")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u64 = 10_000_000_000;

    /// Runs a simulated link for `seconds` and returns the counts that were wanted after each look.
    fn simulate(ramp: &mut Ramp, seconds: u64, rate: impl Fn(u16, u64) -> u64) -> Vec<u16> {
        let mut received = 0;
        (0..seconds * 20)
            .map(|tick| {
                received += rate(ramp.wanted(), tick) / 20;
                let at = Duration::from_millis(tick * 50);
                ramp.look(Sample {
                    at,
                    received,
                    missing: SIZE - received,
                    delay: Duration::from_millis(20),
                });
                ramp.wanted()
            })
            .collect()
    }

    #[test]
    fn a_link_that_one_connection_fills_is_left_to_one() {
        let mut ramp = Ramp::new(0, 16);
        let wanted = simulate(&mut ramp, 60, |_, _| 100_000_000);
        let extra = wanted.iter().filter(|wanted| **wanted > 1).count();
        assert!(
            extra * 20 < wanted.len(),
            "more than one connection {extra} of {} looks",
            wanted.len()
        );
    }

    #[test]
    fn a_cap_on_each_connection_is_met_with_all_within_a_second() {
        let mut ramp = Ramp::new(0, 16);
        let wanted = simulate(&mut ramp, 2, |count, _| u64::from(count) * 1_000_000);
        assert_eq!(wanted[20..], [16; 20], "{wanted:?}");
    }

    #[test]
    fn a_connection_that_still_speeds_up_is_given_time() {
        let mut ramp = Ramp::new(0, 16);
        let doubling = |_, tick: u64| 1_000_000 << (tick / 3).min(3);
        let wanted = simulate(&mut ramp, 1, doubling);
        assert_eq!(wanted[..10], [1; 10], "{wanted:?}");
    }

    #[test]
    fn noise_does_not_make_the_count_swing() {
        let mut ramp = Ramp::new(0, 16);
        // Four connections fill the link; single measurements are off by up to 8 %.
        let noise = |tick: u64| 100 + (tick * 7919 % 17) - 8;
        let wanted = simulate(&mut ramp, 120, |count, tick| {
            u64::from(count.min(4)) * 50_000 * noise(tick)
        });
        let changes = wanted.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!(changes <= 16, "{changes} changes in two minutes: {wanted:?}");
    }

    #[test]
    fn a_refusal_is_final_for_the_run() {
        let mut ramp = Ramp::new(0, 16);
        simulate(&mut ramp, 2, |count, _| u64::from(count) * 1_000_000);
        ramp.refused(4);
        assert!(
            simulate(&mut ramp, 60, |count, _| u64::from(count) * 1_000_000)
                .iter()
                .all(|wanted| *wanted <= 4)
        );
    }

    #[test]
    fn little_is_not_worth_more_connections() {
        let mut ramp = Ramp::new(0, 16);
        for tick in 0..20 {
            let at = Duration::from_millis(tick * 50);
            ramp.look(Sample {
                at,
                received: tick * 1_000_000,
                missing: 5_000_000,
                delay: Duration::ZERO,
            });
        }
        assert_eq!(ramp.wanted(), 1);
    }

    proptest! {
        #[test]
        fn the_count_stays_between_one_and_the_ceiling(
            segments in 0u16..40,
            ceiling in 0u16..40,
            looks in prop::collection::vec((0u64..2000, 0u64..100_000_000, prop::option::of(0u16..20)), 0..60),
        ) {
            let mut ramp = Ramp::new(segments, ceiling);
            let (mut at, mut received) = (Duration::ZERO, 0);
            let mut limit = ceiling.max(1);
            for (millis, bytes, refused) in looks {
                at += Duration::from_millis(millis);
                received += bytes;
                ramp.look(Sample { at, received, missing: SIZE, delay: Duration::from_millis(50) });
                if let Some(allowed) = refused {
                    ramp.refused(allowed);
                    limit = limit.min(allowed.max(1));
                }
                prop_assert!((1..=limit).contains(&ramp.wanted()));
            }
        }
    }
}
