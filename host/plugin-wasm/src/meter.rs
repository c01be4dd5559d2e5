//! What a call has used so far, and which limit ended it. Pure; the engine tells it what happens.

use std::time::Duration;

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

    /// Time was spent computing: a tick in guest code, or the host's work for it.
    pub(crate) fn charge(&mut self, spent: Duration) -> Result<(), Exceeded> {
        self.cpu_used = self.cpu_used.saturating_add(spent);
        if self.cpu_used > self.cpu_budget {
            return Err(Exceeded::Cpu(self.cpu_budget));
        }
        Ok(())
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
}
