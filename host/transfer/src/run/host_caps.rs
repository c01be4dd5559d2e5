//! How many connections a host allows, learned from its refusals, for a limited time.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How long a refusal is remembered. Limits change with a server's load, and retrying costs one refused request.
const TTL: Duration = Duration::from_mins(30);

/// Beyond this the table is cleared, which only costs refused requests.
const MAX_HOSTS: usize = 1024;

/// The learned limits, shared by all runs.
#[derive(Debug, Default)]
pub struct HostCaps(Mutex<HashMap<String, (u16, Instant)>>);

impl HostCaps {
    /// The most connections that `host` is known to allow.
    pub fn get(&self, host: &str) -> Option<u16> {
        let mut caps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (cap, learned) = *caps.get(host)?;
        if learned.elapsed() < TTL {
            return Some(cap);
        }
        caps.remove(host);
        None
    }

    /// How many hosts it has a limit of.
    pub fn hosts(&self) -> usize {
        let mut caps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        caps.retain(|_, (_, learned)| learned.elapsed() < TTL);
        caps.len()
    }

    /// Forgets every limit.
    pub fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Records that `host` accepted `connections` at once and refused one more.
    pub fn learn(&self, host: &str, connections: u16) {
        let mut caps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if caps.len() >= MAX_HOSTS && !caps.contains_key(host) {
            caps.clear();
        }
        caps.insert(host.to_owned(), (connections.max(1), Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_refusal_counts_and_one_connection_is_always_allowed() {
        let caps = HostCaps::default();
        assert_eq!(caps.get("a"), None);
        caps.learn("a", 4);
        caps.learn("a", 0);
        assert_eq!((caps.get("a"), caps.hosts()), (Some(1), 1));
        caps.forget();
        assert_eq!((caps.get("a"), caps.hosts()), (None, 0));
    }

    #[test]
    fn the_table_is_bounded() {
        let caps = HostCaps::default();
        for n in 0..=MAX_HOSTS {
            caps.learn(&n.to_string(), 2);
        }
        assert!(caps.hosts() <= MAX_HOSTS);
    }
}
