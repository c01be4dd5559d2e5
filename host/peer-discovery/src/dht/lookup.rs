//! A search through the hash table: asks the nodes nearest to a place for nearer ones until there are none. Pure.

use std::{collections::BTreeMap, net::SocketAddr};

use metainfo::InfoHash;

use super::{
    id::{Distance, NodeId},
    message::Query,
    table::BUCKET,
};

/// Queries of a search at a time.
const PARALLEL: usize = 4;

/// Candidates of a search; the farthest make room.
const MAX_CANDIDATES: usize = 64;

/// Queries of a search, whatever nodes answer: hostile ones could name nearer ones forever.
const MAX_QUERIES: usize = 100;

/// What a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// Nodes near a place, to fill the table.
    Nodes(NodeId),
    /// Peers of a torrent; the nodes nearest to it learn that we are one.
    Peers(InfoHash),
}

#[derive(Debug)]
pub(super) struct Lookup {
    goal: Goal,
    candidates: BTreeMap<Distance, Candidate>,
    queries: usize,
    running: usize,
    pub(super) answers: usize,
}

#[derive(Debug)]
struct Candidate {
    id: NodeId,
    address: SocketAddr,
    state: Asked,
}

#[derive(Debug)]
enum Asked {
    Fresh,
    Running,
    Answered(Option<Vec<u8>>),
    Failed,
}

impl Lookup {
    pub(super) fn new(goal: Goal, start: Vec<(NodeId, SocketAddr)>) -> Self {
        let mut lookup = Self {
            goal,
            candidates: BTreeMap::new(),
            queries: 0,
            running: 0,
            answers: 0,
        };
        lookup.add(start);
        lookup
    }

    pub(super) fn goal(&self) -> Goal {
        self.goal
    }

    pub(super) fn query(&self) -> Query<'static> {
        match self.goal {
            Goal::Nodes(target) => Query::FindNode(target),
            Goal::Peers(info_hash) => Query::GetPeers(info_hash),
        }
    }

    fn target(&self) -> NodeId {
        match self.goal {
            Goal::Nodes(target) => target,
            Goal::Peers(info_hash) => info_hash.into(),
        }
    }

    pub(super) fn add(&mut self, nodes: impl IntoIterator<Item = (NodeId, SocketAddr)>) {
        for (id, address) in nodes {
            let distance = id.distance(self.target());
            self.candidates.entry(distance).or_insert(Candidate {
                id,
                address,
                state: Asked::Fresh,
            });
            while self.candidates.len() > MAX_CANDIDATES {
                self.candidates.pop_last();
            }
        }
    }

    /// The next node to ask: one of the nearest that did not fail, if it was not asked yet.
    pub(super) fn next(&mut self) -> Option<(NodeId, SocketAddr)> {
        if self.running >= PARALLEL || self.queries >= MAX_QUERIES {
            return None;
        }
        let alive = self.candidates.values_mut();
        let mut nearest = alive.filter(|node| !matches!(node.state, Asked::Failed)).take(BUCKET);
        let node = nearest.find(|node| matches!(node.state, Asked::Fresh))?;
        node.state = Asked::Running;
        self.running += 1;
        self.queries += 1;
        Some((node.id, node.address))
    }

    pub(super) fn answered(&mut self, id: NodeId, token: Option<Vec<u8>>) {
        self.running = self.running.saturating_sub(1);
        self.answers += 1;
        if let Some(node) = self.candidates.get_mut(&id.distance(self.target())) {
            node.state = Asked::Answered(token);
        }
    }

    pub(super) fn failed(&mut self, id: NodeId) {
        self.running = self.running.saturating_sub(1);
        if let Some(node) = self.candidates.get_mut(&id.distance(self.target())) {
            node.state = Asked::Failed;
        }
    }

    /// Whether nothing is left to ask or to wait for. Asks for no further node.
    pub(super) fn is_done(&mut self) -> bool {
        if self.running > 0 {
            return false;
        }
        match self.next() {
            None => true,
            Some((id, _)) => {
                // It was only looked for.
                self.running -= 1;
                self.queries -= 1;
                if let Some(node) = self.candidates.get_mut(&id.distance(self.target())) {
                    node.state = Asked::Fresh;
                }
                false
            }
        }
    }

    /// The nodes nearest to the place that answered with a token.
    pub(super) fn tokens(&self) -> impl Iterator<Item = (NodeId, SocketAddr, &[u8])> {
        let answered = self.candidates.values().filter_map(|node| match &node.state {
            Asked::Answered(Some(token)) => Some((node.id, node.address, &**token)),
            _ => None,
        });
        answered.take(BUCKET)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn node(number: u64) -> (NodeId, SocketAddr) {
        let mut id = [0; 20];
        id[..8].copy_from_slice(&number.to_be_bytes());
        (NodeId(id), SocketAddr::from(([1, 1, 1, 1], 1)))
    }

    proptest! {
        #[test]
        fn a_search_ends_whatever_nodes_answer(choices in prop::collection::vec((any::<u64>(), 0_u8..3), 1..600)) {
            let mut lookup = Lookup::new(Goal::Peers(InfoHash([0; 20])), vec![node(u64::MAX)]);
            let mut queries = 0;
            let mut choices = choices.into_iter().cycle();
            while !lookup.is_done() {
                let mut asked = Vec::new();
                while let Some((id, _)) = lookup.next() {
                    asked.push(id);
                }
                prop_assert!(asked.len() <= PARALLEL);
                queries += asked.len();
                prop_assert!(queries <= MAX_QUERIES);
                for id in asked {
                    let (number, choice) = choices.next().unwrap();
                    if choice == 0 {
                        lookup.failed(id);
                    } else {
                        lookup.add([node(number), node(number / 2), node(queries as u64)]);
                        lookup.answered(id, Some(vec![choice]));
                    }
                }
            }
            prop_assert!(lookup.candidates.len() <= MAX_CANDIDATES && lookup.tokens().count() <= BUCKET);
        }
    }
}
