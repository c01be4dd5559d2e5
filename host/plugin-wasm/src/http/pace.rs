//! How fast, and over how many connections, a plugin may ask one site, whatever it is called for: the site sees one
//! polite client. Pure.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::Semaphore;

/// Requests that may come at once after a pause.
const BURST: u32 = 20;

/// The time between requests after that.
const INTERVAL: Duration = Duration::from_millis(200);

/// Requests on their way to one site at once, of all calls together: what a browser opens.
const CONNECTIONS: usize = 6;

/// Sites remembered at once; more are only met by a plugin that wanders, and then the oldest do not matter.
const MAX_SITES: usize = 256;

/// When the next request to each site may go.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    sites: HashMap<String, Site>,
}

#[derive(Debug)]
struct Site {
    /// When all requests so far would be paid for, one each [`INTERVAL`].
    paid: Instant,
    connections: Arc<Semaphore>,
}

impl Pace {
    /// The connections to `site`; a request has one until its answer is there.
    pub(crate) fn connections(&mut self, site: &str, now: Instant) -> Arc<Semaphore> {
        Arc::clone(&self.site(site, now).connections)
    }

    /// Takes the next turn at `site`; answers how long to wait for it.
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
