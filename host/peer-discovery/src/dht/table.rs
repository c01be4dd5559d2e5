//! The nodes that are known, fewer the farther they are from us (BEP 5). Pure.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use super::id::NodeId;

/// Nodes that have as many first bits in common with us, at most; also the nodes of an answer.
pub(super) const BUCKET: usize = 8;

/// A node that was not heard of for this long is asked whether it is there.
pub(super) const QUESTIONABLE_AFTER: Duration = Duration::from_mins(15);

/// Failures in a row after which a node makes room for another.
const BAD_AFTER: u8 = 2;

/// A node that has answered us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contact {
    pub(super) id: NodeId,
    pub(super) address: SocketAddr,
    heard: Instant,
    failures: u8,
}

/// The nodes that have answered, at most [`BUCKET`] for each number of first bits that they have in common with us.
#[derive(Debug)]
pub(super) struct Table {
    own: NodeId,
    buckets: Vec<Vec<Contact>>,
    /// Several nodes may have one address: only in tests and networks that the user named.
    may_share_address: bool,
}

impl Table {
    pub(super) fn new(own: NodeId, may_share_address: bool) -> Self {
        Self {
            own,
            buckets: vec![Vec::new(); 160],
            may_share_address,
        }
    }

    pub(super) fn own(&self) -> NodeId {
        self.own
    }

    pub(super) fn len(&self) -> usize {
        self.buckets.iter().map(Vec::len).sum()
    }

    fn contacts(&self) -> impl Iterator<Item = &Contact> {
        self.buckets.iter().flatten()
    }

    /// The nodes that answer, those that are farthest from us first: the few that know every part of the table.
    pub(super) fn good(&self) -> impl Iterator<Item = (NodeId, SocketAddr)> {
        let good = self.contacts().filter(|contact| contact.failures < BAD_AFTER);
        good.map(|contact| (contact.id, contact.address))
    }

    fn bucket(&self, id: NodeId) -> Option<usize> {
        let common = self.own.common_bits(id);
        (common < self.buckets.len()).then_some(common)
    }

    /// Whether a node that is not known would be taken.
    pub(super) fn has_room(&self, id: NodeId) -> bool {
        self.bucket(id).is_some_and(|at| {
            let bucket = &self.buckets[at];
            let is_known = bucket.iter().any(|contact| contact.id == id);
            !is_known && (bucket.len() < BUCKET || bucket.iter().any(|contact| contact.failures >= BAD_AFTER))
        })
    }

    /// Records an answer of a node.
    pub(super) fn answered(&mut self, id: NodeId, address: SocketAddr, now: Instant) {
        let Some(at) = self.bucket(id) else {
            return;
        };
        let known = self.buckets[at].iter_mut().find(|contact| contact.id == id);
        if let Some(known) = known {
            // Another address with a known id may be somebody who takes its place.
            if known.address == address || known.failures >= BAD_AFTER {
                known.address = address;
                known.heard = now;
                known.failures = 0;
            }
            return;
        }
        // A node that took another id, as it does when it learns its address.
        self.remove(|contact| contact.address == address);
        if !self.may_share_address {
            // Otherwise one host could fill the table.
            let ip = address.ip();
            self.remove(|contact| contact.address.ip() == ip && contact.failures >= BAD_AFTER);
            if self.contacts().any(|contact| contact.address.ip() == ip) {
                return;
            }
        }
        let contact = Contact {
            id,
            address,
            heard: now,
            failures: 0,
        };
        let bucket = &mut self.buckets[at];
        if bucket.len() < BUCKET {
            bucket.push(contact);
        } else if let Some(bad) = bucket.iter_mut().find(|contact| contact.failures >= BAD_AFTER) {
            *bad = contact;
        }
    }

    fn remove(&mut self, is_removed: impl Fn(&Contact) -> bool) {
        for bucket in &mut self.buckets {
            bucket.retain(|contact| !is_removed(contact));
        }
    }

    /// Records that a node did not answer.
    pub(super) fn failed(&mut self, id: NodeId) {
        if let Some(at) = self.bucket(id)
            && let Some(contact) = self.buckets[at].iter_mut().find(|contact| contact.id == id)
        {
            contact.failures = contact.failures.saturating_add(1);
        }
    }

    /// The nodes that are nearest to a place, the nearest first.
    pub(super) fn closest(&self, target: NodeId, count: usize) -> Vec<(NodeId, SocketAddr)> {
        let mut all: Vec<_> = self.good().collect();
        all.sort_by_key(|(id, _)| id.distance(target));
        all.truncate(count);
        all
    }

    /// The node that was not heard of for longest, if it is long enough ago.
    pub(super) fn questionable(&self, now: Instant) -> Option<(NodeId, SocketAddr)> {
        let contacts = self.contacts().filter(|contact| contact.failures < BAD_AFTER);
        let oldest = contacts.min_by_key(|contact| contact.heard)?;
        (now.duration_since(oldest.heard) >= QUESTIONABLE_AFTER).then_some((oldest.id, oldest.address))
    }

    /// Takes another place; nodes that have room there stay.
    pub(super) fn move_to(&mut self, own: NodeId, now: Instant) {
        let old = std::mem::replace(self, Self::new(own, self.may_share_address));
        for contact in old.contacts() {
            self.answered(contact.id, contact.address, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_table_is_bounded_and_gives_the_nearest(
            ids in prop::collection::vec(any::<[u8; 20]>(), 1..300),
            target: [u8; 20],
        ) {
            let (own, now) = (NodeId([0; 20]), Instant::now());
            let mut table = Table::new(own, false);
            for (at, id) in ids.iter().enumerate() {
                let address = SocketAddr::from(([1, 2, u8::try_from(at / 250).unwrap(), u8::try_from(at % 250).unwrap()], 1));
                table.answered(NodeId(*id), address, now);
            }
            prop_assert!(table.buckets.iter().all(|bucket| bucket.len() <= BUCKET));
            let target = NodeId(target);
            let closest = table.closest(target, BUCKET);
            let farthest = closest.last().unwrap().0.distance(target);
            let nearer = table.contacts().filter(|contact| contact.id.distance(target) < farthest).count();
            prop_assert_eq!(nearer, closest.len() - 1);
        }
    }

    #[test]
    fn a_host_has_one_place_and_nobody_takes_that_of_another() {
        let now = Instant::now();
        let mut table = Table::new(NodeId([0; 20]), false);
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        table.answered(NodeId([1; 20]), address("1.1.1.1:1"), now);
        table.answered(NodeId([2; 20]), address("1.1.1.1:2"), now);
        assert_eq!(table.len(), 1);
        table.answered(NodeId([1; 20]), address("2.2.2.2:1"), now);
        assert_eq!(table.closest(NodeId([1; 20]), 1)[0].1, address("1.1.1.1:1"));
        for _ in 0..BAD_AFTER {
            table.failed(NodeId([1; 20]));
        }
        assert!(table.closest(NodeId([1; 20]), 1).is_empty());
        table.answered(NodeId([1; 20]), address("2.2.2.2:1"), now);
        assert_eq!(table.closest(NodeId([1; 20]), 1)[0].1, address("2.2.2.2:1"));
        // It takes another id, and keeps one place.
        table.answered(NodeId([3; 20]), address("2.2.2.2:1"), now);
        assert_eq!(
            table.closest(NodeId([1; 20]), 8),
            [(NodeId([3; 20]), address("2.2.2.2:1"))]
        );
    }
}
