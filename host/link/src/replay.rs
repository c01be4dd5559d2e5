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
    /// Takes a nonce of an authenticated request with this time stamp, at most once. Gives the time from which on it
    /// need not be remembered: counted from the later of clock and time stamp, so that neither a sender whose clock is
    /// ahead nor a clock that is set back lets it be used again.
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

    proptest! {
        /// However requests, restarts and clocks are mixed: no pair of device and nonce is taken twice while its time
        /// stamp is within the skew.
        #[test]
        fn no_nonce_is_taken_twice(steps in prop::collection::vec((0_u8..3, 0_u8..6, 0_i64..200, prop::bool::ANY), 1..120)) {
            let mut replay = Replay::default();
            let mut taken: BTreeMap<(u8, u8), (i64, i64)> = BTreeMap::new();
            let mut used = BTreeSet::new();
            let mut now = 1_000_000_i64;
            for (from, nonce, passed, restarts) in steps {
                now += passed;
                if restarts {
                    let mut again = Replay::default();
                    for ((from, nonce), (_, until)) in &taken {
                        again.restore(device(*from), nonce.to_string(), *until);
                    }
                    again.forget(now);
                    replay = again;
                }
                // A replay carries the time stamp of the original, because it is part of the tag.
                let stamp = taken.get(&(from, nonce)).map_or(now + i64::from(nonce) * 20, |(stamp, _)| *stamp);
                if (stamp - now).abs() > MAX_SKEW_SECS {
                    taken.remove(&(from, nonce));
                    continue;
                }
                let answer = replay.take(now, stamp, &device(from), &nonce.to_string());
                if taken.contains_key(&(from, nonce)) {
                    prop_assert!(answer.is_err());
                }
                if used.insert((from, nonce)) {
                    prop_assert!(answer.is_ok());
                }
                if let Ok(until) = answer {
                    taken.insert((from, nonce), (stamp, until));
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
