//! Resource usage of one call and of all calls together, and which limit ended a call. Pure.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use plugin_host::Exceeded;

/// How often running guest code is interrupted to be counted.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Counts one call's computing and memory against its limits.
#[derive(Debug)]
pub(crate) struct Meter {
    cpu_budget: Duration,
    cpu_used: Duration,
    memory_limit: usize,
    table_limit: usize,
    /// What was refused last. A guest that is refused memory traps like one that panics; only this tells them apart.
    refused: Option<Exceeded>,
    peak_memory: usize,
}

impl Meter {
    pub(crate) fn new(cpu_budget: Duration, memory_limit: usize, table_limit: usize) -> Self {
        Self {
            cpu_budget,
            cpu_used: Duration::ZERO,
            memory_limit,
            table_limit,
            refused: None,
            peak_memory: 0,
        }
    }

    /// Counts computing time anew, for the next call of an instance; its memory stays counted.
    pub(crate) fn begin_again(&mut self) {
        self.cpu_used = Duration::ZERO;
        self.refused = None;
    }

    /// Charges computing time: a tick of guest code, or the host's work for it.
    pub(crate) fn charge(&mut self, spent: Duration) -> Result<(), Exceeded> {
        self.cpu_used = self.cpu_used.saturating_add(spent);
        if self.cpu_used > self.cpu_budget {
            return Err(Exceeded::Cpu(self.cpu_budget));
        }
        Ok(())
    }

    /// The remaining computing time.
    pub(crate) fn cpu_left(&self) -> Duration {
        self.cpu_budget.saturating_sub(self.cpu_used)
    }

    /// Whether linear memory may grow to `desired` bytes.
    pub(crate) fn may_grow_memory(&mut self, desired: usize) -> bool {
        let fits = desired <= self.memory_limit;
        if fits {
            self.peak_memory = self.peak_memory.max(desired);
        } else {
            self.refused = Some(Exceeded::Memory(self.memory_limit));
        }
        fits
    }

    /// Whether a table may grow to `desired` elements.
    pub(crate) fn may_grow_table(&mut self, desired: usize) -> bool {
        let fits = desired <= self.table_limit;
        if !fits {
            self.refused = Some(Exceeded::Table(self.table_limit));
        }
        fits
    }

    /// What was refused, if a trap is its likely consequence.
    pub(crate) fn refused(&self) -> Option<Exceeded> {
        self.refused
    }

    pub(crate) fn cpu_used(&self) -> Duration {
        self.cpu_used
    }

    pub(crate) fn peak_memory(&self) -> usize {
        self.peak_memory
    }
}

/// A memory limit that several calls share, lower than the sum of their own limits.
#[derive(Debug)]
pub(crate) struct Share {
    limit: usize,
    used: AtomicUsize,
}

impl Share {
    pub(crate) fn of(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { limit, used })
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The memory that one call has taken from its shares; returned on drop.
#[derive(Debug)]
pub(crate) struct Taken {
    shares: [Arc<Share>; 2],
    bytes: usize,
}

impl Taken {
    pub(crate) fn nothing(shares: [Arc<Share>; 2]) -> Self {
        Self { shares, bytes: 0 }
    }

    /// Takes from all shares or from none.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        let [first, second] = &self.shares;
        if !first.take(bytes) {
            return false;
        }
        if !second.take(bytes) {
            first.give_back(bytes);
            return false;
        }
        self.bytes += bytes;
        true
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        for share in &self.shares {
            share.give_back(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn computing_ends_at_its_budget_and_not_before() {
        let mut meter = Meter::new(TICK * 3, 0, 0);
        for _ in 0..3 {
            meter.charge(TICK).unwrap();
        }
        assert_eq!(meter.charge(TICK), Err(Exceeded::Cpu(TICK * 3)));
    }

    #[test]
    fn a_refusal_is_remembered_and_the_peak_is_what_was_allowed() {
        let mut meter = Meter::new(TICK, 100, 10);
        assert!(meter.may_grow_memory(100));
        assert_eq!(meter.refused(), None);
        assert!(!meter.may_grow_memory(101));
        assert_eq!(meter.refused(), Some(Exceeded::Memory(100)));
        assert_eq!(meter.peak_memory(), 100);
        assert!(!meter.may_grow_table(11));
        assert_eq!(meter.refused(), Some(Exceeded::Table(10)));
    }

    #[test]
    fn calls_share_memory_and_give_back_what_they_had() {
        let (all, one, other) = (Share::of(10), Share::of(6), Share::of(6));
        let mut first = Taken::nothing([one.clone(), all.clone()]);
        let mut second = Taken::nothing([one, all.clone()]);
        let mut third = Taken::nothing([other, all]);
        assert!(first.take(2) && first.take(2) && second.take(2));
        assert!(!second.take(1), "its plugin has no more");
        assert!(!third.take(5), "there is no more");
        assert!(third.take(4), "what was refused is not held");
        drop(first);
        assert!(second.take(4) && !third.take(1));
    }
}
