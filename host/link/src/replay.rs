//! The nonces that were used. Pure; the rows it gives are stored before the request is carried out, so that a nonce is
//! refused after a restart, too.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    constants::{MAX_NONCES, NONCE_SECS},
    crypto::identity::Fingerprint,
};

/// Why a nonce is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Used {
    /// It was used before.
    Replayed,
    /// The device used too many in a short time.
    TooMany,
}

/// Recent nonces.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    of_device: BTreeMap<Fingerprint, Nonces>,
}

#[derive(Debug, Default)]
struct Nonces {
    until: BTreeMap<String, i64>,
    by_end: BTreeSet<(i64, String)>,
}

impl Nonces {
    fn forget(&mut self, now: i64) {
        while let Some((until, nonce)) = self.by_end.first().cloned() {
            if until > now {
                break;
            }
            self.by_end.pop_first();
            self.until.remove(&nonce);
        }
    }
}

impl Replay {
    /// Takes a nonce of an authenticated request with this time stamp. Gives the time at which it is forgotten: until the
    /// clock has shown that time, the nonce is refused, also if the clock is set back meanwhile. It is counted from the
    /// later of clock and time stamp, so that the request's time stamp is refused before.
    pub(crate) fn take(&mut self, now: i64, timestamp: i64, device: &Fingerprint, nonce: &str) -> Result<i64, Used> {
        let nonces = self.of_device.entry(device.clone()).or_default();
        nonces.forget(now);
        if nonces.until.contains_key(nonce) {
            return Err(Used::Replayed);
        }
        if nonces.until.len() >= MAX_NONCES {
            return Err(Used::TooMany);
        }
        let until = now.max(timestamp) + NONCE_SECS;
        nonces.until.insert(nonce.to_owned(), until);
        nonces.by_end.insert((until, nonce.to_owned()));
        Ok(until)
    }

    /// Adds a stored nonce.
    pub(crate) fn restore(&mut self, device: Fingerprint, nonce: String, until: i64) {
        let nonces = self.of_device.entry(device).or_default();
        nonces.by_end.insert((until, nonce.clone()));
        nonces.until.insert(nonce, until);
    }

    /// Forgets what is over.
    pub(crate) fn forget(&mut self, now: i64) {
        self.of_device.retain(|_, nonces| {
            nonces.forget(now);
            !nonces.until.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::constants::MAX_SKEW_SECS;

    fn device(number: u8) -> Fingerprint {
        Fingerprint::read(&format!("{number:064x}")).unwrap()
    }

    /// What the test knows of a nonce that was taken.
    struct Taken {
        stamp: i64,
        until: i64,
        /// The latest that the clock has shown since.
        latest: i64,
    }

    proptest! {
        /// However requests, restarts and changes of the clock are mixed: a nonce is refused until the clock has reached the
        /// time that was given for it; by then the time stamp it was sent with is refused; and every other nonce is taken.
        #[test]
        fn a_nonce_is_refused_for_as_long_as_its_time_stamp_is_not(
            steps in prop::collection::vec((0_u8..3, 0_u8..6, -150_i64..200, -120_i64..=120, any::<[bool; 2]>()), 1..120),
        ) {
            let mut replay = Replay::default();
            let mut known: BTreeMap<(u8, u8), Taken> = BTreeMap::new();
            let mut now = 1_000_000_i64;
            for (from, nonce, passed, skew, [restarts, is_copy]) in steps {
                now += passed;
                for taken in known.values_mut() {
                    taken.latest = taken.latest.max(now);
                    prop_assert!(now < taken.until || now - taken.stamp > MAX_SKEW_SECS);
                }
                if restarts {
                    replay = Replay::default();
                    // Rows are removed once their time is over.
                    for ((from, nonce), taken) in known.iter().filter(|(_, taken)| taken.latest < taken.until) {
                        replay.restore(device(*from), nonce.to_string(), taken.until);
                    }
                    replay.forget(now);
                }
                let earlier = known.get(&(from, nonce));
                // A copy has the time stamp of the original, because that is part of the tag.
                let stamp = earlier.filter(|_| is_copy).map_or(now + skew, |taken| taken.stamp);
                if (stamp - now).abs() > MAX_SKEW_SECS {
                    continue;
                }
                let answer = replay.take(now, stamp, &device(from), &nonce.to_string());
                match earlier {
                    Some(taken) if taken.latest < taken.until => prop_assert_eq!(answer, Err(Used::Replayed)),
                    // The clock was there and was set back: remembered or not.
                    Some(taken) if now < taken.until => {}
                    _ => prop_assert!(answer.is_ok()),
                }
                if let Ok(until) = answer {
                    prop_assert_eq!(until, now.max(stamp) + NONCE_SECS);
                    known.insert((from, nonce), Taken { stamp, until, latest: now });
                }
            }
        }
    }

    #[test]
    fn memory_of_one_device_is_bounded_and_does_not_shut_out_another() {
        let mut replay = Replay::default();
        for nonce in 0..MAX_NONCES {
            replay.take(0, 0, &device(1), &nonce.to_string()).unwrap();
        }
        assert_eq!(replay.take(0, 0, &device(1), "more"), Err(Used::TooMany));
        assert!(replay.take(0, 0, &device(2), "more").is_ok());
        assert!(replay.take(NONCE_SECS, NONCE_SECS, &device(1), "more").is_ok());
        replay.forget(10 * NONCE_SECS);
        assert!(replay.of_device.is_empty());
    }
}
