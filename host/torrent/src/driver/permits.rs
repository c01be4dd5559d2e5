//! A number of things that may exist at the same time, which changes while they do.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Permits(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    most: AtomicUsize,
    used: AtomicUsize,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Permit(Permits);

impl Permits {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Counts {
            most: AtomicUsize::new(most),
            used: AtomicUsize::new(0),
        }))
    }

    /// Changes how many there are. Those that were taken beyond a lower number stay until they are given back.
    pub(super) fn set(&self, most: usize) {
        self.0.most.store(most, Ordering::Relaxed);
    }

    /// One of them, if there is one left.
    pub(super) fn take(&self) -> Option<Permit> {
        let most = self.0.most.load(Ordering::Relaxed);
        let fits = |used: usize| (used < most).then_some(used + 1);
        let taken = self.0.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.ok().map(|_| Permit(self.clone()))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.used.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_number_holds_for_new_ones() {
        let permits = Permits::new(2);
        let (first, second) = (permits.take(), permits.take());
        assert!(first.is_some() && second.is_some() && permits.take().is_none());
        permits.set(1);
        drop(first);
        assert!(permits.take().is_none());
        drop(second);
        assert!(permits.take().is_some());
        permits.set(0);
        assert!(permits.take().is_none());
    }
}
