//! How fast a plugin may ask one site, whatever it is called for: the site sees one polite client. Pure.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// Requests that may come at once after a pause.
const BURST: u32 = 20;

/// The time between requests after that.
const INTERVAL: Duration = Duration::from_millis(200);

/// Sites remembered at once; more are only met by a plugin that wanders, and then the oldest do not matter.
const MAX_SITES: usize = 256;

/// When the next request to each site may go.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// For each origin the time at which all its requests so far would be paid for, one each [`INTERVAL`].
    paid: HashMap<String, Instant>,
}

impl Pace {
    /// Takes the next turn at `site`; answers how long to wait for it.
    pub(crate) fn take(&mut self, site: &str, now: Instant) -> Duration {
        if self.paid.len() >= MAX_SITES && !self.paid.contains_key(site) {
            self.paid.retain(|_, paid| *paid > now);
        }
        if self.paid.len() >= MAX_SITES && !self.paid.contains_key(site) {
            self.paid.clear();
        }
        let paid = self.paid.entry(site.to_owned()).or_insert(now);
        *paid = (*paid).max(now) + INTERVAL;
        (*paid - now).saturating_sub(INTERVAL * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_requests_come_one_by_one_and_pauses_are_forgiven() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(pace.take("a", now), Duration::ZERO);
        }
        assert_eq!(pace.take("a", now), INTERVAL);
        assert_eq!(pace.take("a", now), INTERVAL * 2);
        assert_eq!(pace.take("b", now), Duration::ZERO);
        assert_eq!(pace.take("a", now + Duration::from_mins(1)), Duration::ZERO);
    }

    #[test]
    fn only_so_many_sites_are_remembered() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        for site in 0..10 * MAX_SITES {
            pace.take(&site.to_string(), now);
        }
        assert!(pace.paid.len() <= MAX_SITES);
    }
}
