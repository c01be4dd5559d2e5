//! Rate and connection limits per site, for all calls of a plugin together: a site sees one polite client. Pure.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

/// Requests that may be sent at once after a pause.
const BURST: u32 = 20;

/// Requests to a site for each second after that.
pub(crate) const PER_SECOND: u32 = 5;

/// The time between them.
const INTERVAL: Duration = Duration::from_millis(1000 / PER_SECOND as u64);

/// Concurrent requests to one site, of all calls together: as in browsers.
pub(crate) const CONNECTIONS: usize = 6;

/// Bounds the table; only a crawling plugin exceeds it, and then the oldest sites do not matter.
const MAX_SITES: usize = 256;

/// The rate limits of all sites.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    sites: HashMap<String, Site>,
}

#[derive(Debug)]
struct Site {
    /// When all requests so far would have been sent at one per [`INTERVAL`].
    paid: Instant,
    connections: Arc<Semaphore>,
}

impl Pace {
    /// The connections to `site`; a request holds one until its response is complete.
    pub(crate) fn connections(&mut self, site: &str, now: Instant) -> Arc<Semaphore> {
        Arc::clone(&self.site(site, now).connections)
    }

    /// Reserves the next request to `site`; returns the wait before it.
    pub(crate) fn take(&mut self, site: &str, now: Instant) -> Duration {
        let site = self.site(site, now);
        site.paid = site.paid.max(now) + INTERVAL;
        (site.paid - now).saturating_sub(INTERVAL * BURST)
    }

    fn site(&mut self, site: &str, now: Instant) -> &mut Site {
        if self.sites.len() >= MAX_SITES && !self.sites.contains_key(site) {
            let is_busy = |site: &Site| site.paid > now || Arc::strong_count(&site.connections) > 1;
            self.sites.retain(|_, site| is_busy(site));
        }
        if self.sites.len() >= MAX_SITES && !self.sites.contains_key(site) {
            self.sites.clear();
        }
        self.sites.entry(site.to_owned()).or_insert_with(|| Site {
            paid: now,
            connections: Arc::new(Semaphore::new(CONNECTIONS)),
        })
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
    fn only_so_many_sites_are_remembered_and_the_busy_ones_first() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let busy = pace.connections("busy", now);
        for site in 1..MAX_SITES {
            pace.connections(&site.to_string(), now);
        }
        pace.take("another", now);
        assert!(Arc::ptr_eq(&busy, &pace.connections("busy", now)));
        for site in 0..10 * MAX_SITES {
            pace.take(&site.to_string(), now);
        }
        assert!(pace.sites.len() <= MAX_SITES);
    }
}
