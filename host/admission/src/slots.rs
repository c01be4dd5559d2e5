//! Every open connection has a slot. A client without authentication keeps its slot only as long as no newer one needs
//! it: so a flood of connections costs a bounded number of descriptors, and the newest request is still accepted.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::Hash,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections in total.
    pub total: usize,
    /// Connections of clients that have not authenticated.
    pub unauthenticated: usize,
    /// The part of those that one source may have.
    pub unauthenticated_per_source: usize,
}

/// The slots of one listener. `K` tells one source of connections from another.
#[derive(Debug)]
pub struct ConnectionSlots<K: Copy + Eq + Hash> {
    limits: Limits,
    /// Held for a moment, when a connection opens, authenticates or closes.
    table: Mutex<Table<K>>,
}

#[derive(Debug)]
struct Table<K> {
    next: u64,
    /// Connections that are open, authenticated or not.
    open: usize,
    /// Those that are not authenticated, in the order in which they were accepted.
    waiting: BTreeMap<u64, Waiting<K>>,
    by_source: HashMap<K, BTreeSet<u64>>,
}

#[derive(Debug)]
struct Waiting<K> {
    source: Option<K>,
    evicted: CancellationToken,
}

impl<K: Copy + Eq + Hash> Table<K> {
    /// Removes a connection from those without authentication.
    fn remove_waiting(&mut self, number: u64) -> Option<Waiting<K>> {
        let waiting = self.waiting.remove(&number)?;
        if let Some(source) = waiting.source
            && let Some(numbers) = self.by_source.get_mut(&source)
        {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_source.remove(&source);
            }
        }
        Some(waiting)
    }

    fn evict(&mut self, number: Option<u64>) -> bool {
        let waiting = number.and_then(|number| self.remove_waiting(number));
        waiting.is_some_and(|waiting| {
            waiting.evicted.cancel();
            // Its task ends soon; until then its descriptor must not count twice.
            self.open = self.open.saturating_sub(1);
            true
        })
    }

    fn oldest(&self) -> Option<u64> {
        self.waiting.keys().next().copied()
    }
}

impl<K: Copy + Eq + Hash> ConnectionSlots<K> {
    /// A listener's slots, all free.
    pub fn new(limits: Limits) -> Arc<Self> {
        let table = Table {
            next: 0,
            open: 0,
            waiting: BTreeMap::new(),
            by_source: HashMap::new(),
        };
        Arc::new(Self {
            limits,
            table: Mutex::new(table),
        })
    }

    fn table(&self) -> MutexGuard<'_, Table<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot for a new connection. If its source, or all clients without authentication together, are at their limit,
    /// the oldest of those is evicted for it. `None` if the total is reached and every connection is authenticated.
    /// Without a source (a proxy for many clients) only the total counts.
    pub fn take(self: &Arc<Self>, source: Option<K>) -> Option<Arc<ConnectionSlot<K>>> {
        let mut table = self.table();
        let of_source = source.and_then(|source| table.by_source.get(&source));
        let is_source_full =
            of_source.is_some_and(|of_source| of_source.len() >= self.limits.unauthenticated_per_source);
        if is_source_full {
            let oldest = of_source.and_then(|of_source| of_source.first().copied());
            table.evict(oldest);
        } else if table.waiting.len() >= self.limits.unauthenticated || table.open >= self.limits.total {
            let oldest = table.oldest();
            table.evict(oldest);
        }
        if table.open >= self.limits.total {
            return None;
        }
        let number = table.next;
        table.next += 1;
        table.open += 1;
        let evicted = CancellationToken::new();
        let waiting = Waiting {
            source,
            evicted: evicted.clone(),
        };
        table.waiting.insert(number, waiting);
        if let Some(source) = source {
            table.by_source.entry(source).or_default().insert(number);
        }
        drop(table);
        Some(Arc::new(ConnectionSlot {
            number,
            slots: Arc::clone(self),
            evicted,
            is_authenticated: AtomicBool::new(false),
            allowance: AtomicUsize::new(usize::MAX),
        }))
    }

    /// Evicts the oldest connection without authentication, for example when the system has no more descriptors.
    /// Returns whether there was one.
    pub fn evict_oldest(&self) -> bool {
        let mut table = self.table();
        let oldest = table.oldest();
        table.evict(oldest)
    }
}

/// The slot of one connection; free again when the last reference to it is dropped. An upgraded connection keeps it.
#[derive(Debug)]
pub struct ConnectionSlot<K: Copy + Eq + Hash> {
    number: u64,
    slots: Arc<ConnectionSlots<K>>,
    evicted: CancellationToken,
    is_authenticated: AtomicBool,
    /// Bytes that may still be read before the client has authenticated.
    allowance: AtomicUsize,
}

impl<K: Copy + Eq + Hash> ConnectionSlot<K> {
    /// The client of this connection has authenticated, or need not: it is not evicted, and reads are not limited.
    pub fn authenticate(&self) {
        if !self.is_authenticated.load(Ordering::Relaxed) && self.slots.table().remove_waiting(self.number).is_some() {
            self.is_authenticated.store(true, Ordering::Release);
        }
    }

    /// Whether it has.
    pub fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Acquire)
    }

    /// Resolves when the connection has to close for a newer one. Cancel-safe.
    pub async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// From now on the client may send this many bytes before it authenticates.
    pub fn limit_reading(&self, bytes: usize) {
        self.allowance.store(bytes, Ordering::Release);
    }

    /// Counts bytes that were read. Returns whether they were still allowed.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        if self.is_authenticated() {
            return true;
        }
        let allowance = self.allowance.load(Ordering::Acquire);
        if allowance == usize::MAX {
            return true;
        }
        // One task reads a connection, so nothing is lost between the two.
        self.allowance.store(allowance.saturating_sub(bytes), Ordering::Release);
        bytes <= allowance
    }

    /// Whether the client sent more than it may before it authenticates.
    pub fn is_overdrawn(&self) -> bool {
        !self.is_authenticated() && self.allowance.load(Ordering::Acquire) == 0
    }
}

impl<K: Copy + Eq + Hash> Drop for ConnectionSlot<K> {
    fn drop(&mut self) {
        let mut table = self.slots.table();
        let was_waiting = table.remove_waiting(self.number).is_some();
        // Eviction has removed it already.
        if was_waiting || *self.is_authenticated.get_mut() {
            table.open = table.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits = Limits {
        total: 6,
        unauthenticated: 4,
        unauthenticated_per_source: 2,
    };

    fn is_evicted(slot: &ConnectionSlot<u8>) -> bool {
        slot.evicted.is_cancelled()
    }

    #[test]
    fn a_source_loses_its_oldest_connection_to_its_newest() {
        let slots = ConnectionSlots::new(LIMITS);
        let taken: Vec<_> = (0..3).map(|_| slots.take(Some(1)).unwrap()).collect();
        let evicted: Vec<_> = taken.iter().map(|slot| is_evicted(slot)).collect();
        assert_eq!(evicted, [true, false, false]);
        let other = slots.take(Some(2)).unwrap();
        assert!(!is_evicted(&other) && !is_evicted(&taken[1]));
    }

    #[test]
    fn who_has_authenticated_is_never_evicted_and_counts_in_total() {
        let slots = ConnectionSlots::new(LIMITS);
        let kept: Vec<_> = (0..6)
            .map(|_| slots.take(Some(1)).unwrap())
            .inspect(|slot| slot.authenticate())
            .collect();
        assert!(kept.iter().all(|slot| !is_evicted(slot) && slot.is_authenticated()));
        assert!(slots.take(Some(1)).is_none() && !slots.evict_oldest());
        drop(kept);
        assert!(slots.take(Some(1)).is_some());
    }

    #[test]
    fn all_sources_together_are_bounded() {
        let slots = ConnectionSlots::new(LIMITS);
        let taken: Vec<_> = (0..5).map(|source| slots.take(Some(source)).unwrap()).collect();
        let evicted: Vec<_> = taken.iter().map(|slot| is_evicted(slot)).collect();
        assert_eq!(evicted, [true, false, false, false, false]);
        // One that was evicted cannot authenticate any more.
        taken[0].authenticate();
        assert!(!taken[0].is_authenticated());
    }

    #[test]
    fn reading_is_limited_until_the_client_authenticates() {
        let slots = ConnectionSlots::<u8>::new(LIMITS);
        let slot = slots.take(None).unwrap();
        assert!(slot.read(usize::MAX));
        slot.limit_reading(10);
        assert!(slot.read(10) && !slot.read(1) && slot.is_overdrawn());
        slot.authenticate();
        assert!(slot.read(1) && !slot.is_overdrawn());
    }

    proptest! {
        #[test]
        fn the_count_is_that_of_the_seats_that_are_left(steps in proptest::collection::vec((0_u8..4, 0_u8..3), 0..60)) {
            let slots = ConnectionSlots::new(LIMITS);
            let mut taken: Vec<Arc<ConnectionSlot<u8>>> = Vec::new();
            for (what, source) in steps {
                match what {
                    0 | 1 => taken.extend(slots.take((source > 0).then_some(source))),
                    2 if !taken.is_empty() => taken[usize::from(source) % taken.len()].authenticate(),
                    _ => drop((!taken.is_empty()).then(|| taken.swap_remove(usize::from(source) % taken.len()))),
                }
                let open = taken.iter().filter(|slot| !is_evicted(slot)).count();
                let waiting = taken.iter().filter(|slot| !is_evicted(slot) && !slot.is_authenticated()).count();
                let table = slots.table();
                prop_assert_eq!((table.open, table.waiting.len()), (open, waiting));
                prop_assert!(open <= LIMITS.total && waiting <= LIMITS.unauthenticated);
                prop_assert!(table.by_source.values().all(|numbers| (1..=2).contains(&numbers.len())));
            }
        }
    }
}
