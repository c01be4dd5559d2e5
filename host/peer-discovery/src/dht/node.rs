//! A node of the hash table of one family of addresses, as a pure state machine: the driver passes datagrams and the time,
//! sends what it appends to the effects, and calls [`Node::wake_at`] to know when to pass the time again.
//!
//! What others can make it do is bounded: queries of ours that wait, answers to queries of others per second, candidates
//! and queries of a search, peers that are kept. A message counts as an answer only if it has the transaction of a query
//! and comes from the address that was asked.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use egress::Family;
use metainfo::InfoHash;
use sha1::{Digest as _, Sha1};

use super::{
    id::NodeId,
    lookup::{Goal, Lookup},
    message::{self, Answer, Message, Query, Values},
    store::Store,
    table::{BUCKET, Table},
};
use crate::{peer, state::Chance};

/// For an answer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Queries of ours that wait for an answer.
const MAX_WAITING: usize = 256;

/// Searches at a time.
const MAX_LOOKUPS: usize = 8;

/// Between two searches for a torrent.
const SEARCH_INTERVAL: Duration = Duration::from_mins(10);

/// After a search that nobody answered.
const SEARCH_RETRY: Duration = Duration::from_secs(15);

/// Between two searches that fill the table.
const REFRESH_INTERVAL: Duration = Duration::from_mins(5);

/// Between two looks at what is old.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(20);

/// Queries of others that are answered in a second; others are passed over.
const MAX_SERVED: u32 = 100;

/// Nodes that must agree on our address before we take the id that follows from it (BEP 42).
const VOTES: usize = 4;

/// Addresses that are voted for.
const MAX_CANDIDATES: usize = 8;

/// Nodes that are kept over a restart, all of which are asked when it begins.
const MAX_KEPT: usize = 64;

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Send(SocketAddr, Vec<u8>),
    Found(InfoHash, Vec<SocketAddr>),
}

#[derive(Debug)]
struct Waiting {
    address: SocketAddr,
    /// Unknown for the first nodes.
    id: Option<NodeId>,
    since: Instant,
    lookup: Option<u64>,
}

/// What a node begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) id: NodeId,
    pub(super) family: Family,
    /// The port on which peers reach us.
    pub(super) port: u16,
    /// Nodes and peers may be in private networks and on this machine.
    pub(super) is_open: bool,
    /// What others must not guess is made of it: transactions and tokens.
    pub(super) secret: [u8; 20],
    /// For what is left to chance.
    pub(super) seed: u64,
}

#[derive(Debug)]
pub(super) struct Node {
    family: Family,
    port: u16,
    is_open: bool,
    table: Table,
    store: Store,
    waiting: HashMap<u32, Waiting>,
    lookups: BTreeMap<u64, Lookup>,
    next_lookup: u64,
    torrents: BTreeMap<InfoHash, Instant>,
    next_refresh: Instant,
    next_maintenance: Instant,
    served: (Instant, u32),
    votes: BTreeMap<IpAddr, BTreeSet<IpAddr>>,
    secrets: Secrets,
    chance: Chance,
}

/// Numbers that others cannot guess from those that they have seen.
#[derive(Debug)]
struct Secrets {
    secret: [u8; 20],
    count: u64,
}

impl Secrets {
    fn next(&mut self) -> [u8; 20] {
        self.count += 1;
        let hash = Sha1::new()
            .chain_update(self.secret)
            .chain_update(self.count.to_be_bytes());
        hash.finalize().into()
    }
}

impl Node {
    pub(super) fn new(start: Start, now: Instant) -> Self {
        let mut secrets = Secrets {
            secret: start.secret,
            count: 0,
        };
        Self {
            family: start.family,
            port: start.port,
            is_open: start.is_open,
            table: Table::new(start.id, start.is_open),
            store: Store::new(secrets.next(), now),
            waiting: HashMap::new(),
            lookups: BTreeMap::new(),
            next_lookup: 0,
            torrents: BTreeMap::new(),
            next_refresh: now,
            next_maintenance: now + MAINTENANCE_INTERVAL,
            served: (now, 0),
            votes: BTreeMap::new(),
            secrets,
            chance: Chance(start.seed),
        }
    }

    pub(super) fn id(&self) -> NodeId {
        self.table.own()
    }

    /// How many nodes are known.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// The nodes to begin with after a restart.
    pub(super) fn nodes(&self) -> Vec<(NodeId, SocketAddr)> {
        self.table.good().take(MAX_KEPT).collect()
    }

    /// When the time must be passed again.
    pub(super) fn wake_at(&self) -> Instant {
        let timeout = self.waiting.values().map(|query| query.since + TIMEOUT).min();
        let is_free = self.lookups.len() < MAX_LOOKUPS && self.table.len() > 0;
        let search = self.torrents.values().min().copied().filter(|_| is_free);
        let refresh = Some(self.next_refresh).filter(|_| is_free);
        let due = [timeout, search, refresh].into_iter().flatten().min();
        due.map_or(self.next_maintenance, |due| due.min(self.next_maintenance))
    }

    /// The time has come.
    pub(super) fn tick(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let late = self.waiting.iter().filter(|(_, query)| now >= query.since + TIMEOUT);
        let late: Vec<_> = late.map(|(transaction, _)| *transaction).collect();
        for transaction in late {
            self.failed(transaction, now, effects);
        }
        if now >= self.next_maintenance {
            self.next_maintenance = now + MAINTENANCE_INTERVAL;
            self.store.maintain(now, self.secrets.next());
            if let Some((id, address)) = self.table.questionable(now) {
                self.ask(address, Some(id), None, Query::Ping, (now, effects));
            }
        }
        if now >= self.next_refresh && self.table.len() > 0 && self.lookups.len() < MAX_LOOKUPS {
            self.next_refresh = now + self.chance.a_little_more(REFRESH_INTERVAL);
            self.refresh(now, effects);
        }
        self.search(now, effects);
    }

    /// Makes the torrents those of `wanted`; new ones are searched for at once.
    pub(super) fn set_torrents(&mut self, wanted: &BTreeSet<InfoHash>, now: Instant, effects: &mut Vec<Effect>) {
        self.torrents.retain(|info_hash, _| wanted.contains(info_hash));
        for info_hash in wanted {
            self.torrents.entry(*info_hash).or_insert(now);
        }
        self.search(now, effects);
    }

    /// Asks nodes of which only the address is known.
    pub(super) fn bootstrap(&mut self, addresses: &[SocketAddr], now: Instant, effects: &mut Vec<Effect>) {
        for address in addresses {
            let query = Query::FindNode(self.id());
            self.ask(peer::canonical(*address), None, None, query, (now, effects));
        }
        // As soon as one of them has answered.
        self.next_refresh = now;
    }

    /// Handles a datagram.
    pub(super) fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant, effects: &mut Vec<Effect>) {
        let from = peer::canonical(from);
        if !self.is_allowed(from) {
            return;
        }
        match message::read(datagram, self.family) {
            Some(Message::Query {
                transaction,
                id,
                query,
                is_read_only,
            }) => {
                self.serve(from, (transaction, query), now, effects);
                // A node that is not known is asked itself: its query may be forged.
                if !is_read_only && self.table.has_room(id) && self.waiting.len() < MAX_WAITING / 2 {
                    self.ask(from, None, None, Query::Ping, (now, effects));
                }
            }
            Some(Message::Answer { transaction, answer }) => {
                if let Some(key) = self.expected(transaction, from) {
                    self.answered(key, answer, now, effects);
                }
            }
            Some(Message::Error { transaction }) => {
                if let Some(key) = self.expected(transaction, from) {
                    self.failed(key, now, effects);
                }
            }
            None => {}
        }
    }

    fn is_allowed(&self, address: SocketAddr) -> bool {
        peer::is_usable(address, self.is_open) && (self.is_open || egress::address::is_global(address.ip()))
    }

    /// The query of ours that a node answers.
    fn expected(&self, transaction: &[u8], from: SocketAddr) -> Option<u32> {
        let key = u32::from_be_bytes(transaction.try_into().ok()?);
        let query = self.waiting.get(&key)?;
        (query.address == from).then_some(key)
    }

    fn ask(
        &mut self,
        address: SocketAddr,
        id: Option<NodeId>,
        lookup: Option<u64>,
        query: Query<'_>,
        (now, effects): (Instant, &mut Vec<Effect>),
    ) -> bool {
        let is_of_family = address.is_ipv6() == (self.family == Family::V6);
        if self.waiting.len() >= MAX_WAITING || !is_of_family || !self.is_allowed(address) {
            return false;
        }
        let transaction = loop {
            let [a, b, c, d, ..] = self.secrets.next();
            let transaction = u32::from_be_bytes([a, b, c, d]);
            if !self.waiting.contains_key(&transaction) {
                break transaction;
            }
        };
        let waiting = Waiting {
            address,
            id,
            since: now,
            lookup,
        };
        self.waiting.insert(transaction, waiting);
        effects.push(Effect::Send(
            address,
            message::write_query(transaction, self.id(), query),
        ));
        true
    }

    fn answered(&mut self, key: u32, answer: Answer, now: Instant, effects: &mut Vec<Effect>) {
        if answer.id == self.id() {
            // Ourselves, under an earlier id, or somebody who lies.
            return self.failed(key, now, effects);
        }
        let Some(query) = self.waiting.remove(&key) else {
            return;
        };
        let is_empty = self.table.len() == 0;
        self.table.answered(answer.id, query.address, now);
        if is_empty && self.table.len() > 0 {
            self.next_refresh = now;
        }
        self.vote(answer.own_address, query.address.ip(), now);
        if let Some(number) = query.lookup {
            self.continue_lookup(number, (&query, answer), now, effects);
        } else {
            // What the first nodes name is asked by the next search.
            for (_, address) in answer.nodes.into_iter().filter(|_| query.id.is_none()).take(BUCKET) {
                if self.table.len() < BUCKET {
                    self.ask(address, None, None, Query::Ping, (now, effects));
                }
            }
        }
        self.tick_soon(now, effects);
    }

    /// What was waiting for the first node need not wait for the clock.
    fn tick_soon(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.table.len() > 0 && now >= self.next_refresh && self.lookups.len() < MAX_LOOKUPS {
            self.next_refresh = now + self.chance.a_little_more(REFRESH_INTERVAL);
            self.refresh(now, effects);
        }
        self.search(now, effects);
    }

    fn continue_lookup(
        &mut self,
        number: u64,
        (query, answer): (&Waiting, Answer),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let is_open = self.is_open;
        let Some(lookup) = self.lookups.get_mut(&number) else {
            return;
        };
        let asked = query.id.unwrap_or(answer.id);
        let goal = lookup.goal();
        lookup.answered(asked, answer.token);
        let own = self.table.own();
        let nodes = answer.nodes.into_iter().filter(|(id, _)| *id != own);
        let nodes: Vec<_> = nodes.filter(|(_, address)| self.is_allowed(*address)).collect();
        if let Some(lookup) = self.lookups.get_mut(&number) {
            lookup.add(nodes);
        }
        if let Goal::Peers(info_hash) = goal {
            let mut peers = answer.peers;
            peers.retain(|peer| peer::is_usable(*peer, is_open));
            if !peers.is_empty() {
                effects.push(Effect::Found(info_hash, peers));
            }
        }
        self.drive(number, now, effects);
    }

    fn failed(&mut self, key: u32, now: Instant, effects: &mut Vec<Effect>) {
        let Some(query) = self.waiting.remove(&key) else {
            return;
        };
        if let Some(id) = query.id {
            self.table.failed(id);
            if let Some(number) = query.lookup {
                if let Some(lookup) = self.lookups.get_mut(&number) {
                    lookup.failed(id);
                }
                self.drive(number, now, effects);
            }
        }
    }

    /// Begins the searches that are due.
    fn search(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.table.len() == 0 {
            return;
        }
        let due = self.torrents.iter().filter(|(_, at)| **at <= now);
        let due: Vec<_> = due.map(|(info_hash, _)| *info_hash).collect();
        for info_hash in due {
            if self.lookups.len() >= MAX_LOOKUPS {
                return;
            }
            self.torrents
                .insert(info_hash, now + self.chance.a_little_more(SEARCH_INTERVAL));
            self.begin(Goal::Peers(info_hash), now, effects);
        }
    }

    /// Searches for a place: our own while few nodes are known, else any, so that the whole table stays fresh.
    fn refresh(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let target = if self.table.len() < 4 * BUCKET {
            self.id()
        } else {
            NodeId(random_bytes(&mut self.chance))
        };
        self.begin(Goal::Nodes(target), now, effects);
    }

    fn begin(&mut self, goal: Goal, now: Instant, effects: &mut Vec<Effect>) {
        let target = match goal {
            Goal::Nodes(target) => target,
            Goal::Peers(info_hash) => info_hash.into(),
        };
        let start = self.table.closest(target, 2 * BUCKET);
        let number = self.next_lookup;
        self.next_lookup += 1;
        self.lookups.insert(number, Lookup::new(goal, start));
        self.drive(number, now, effects);
    }

    /// Asks the next nodes of a search, and ends it when there are none.
    fn drive(&mut self, number: u64, now: Instant, effects: &mut Vec<Effect>) {
        loop {
            let Some(lookup) = self.lookups.get_mut(&number) else {
                return;
            };
            let query = lookup.query();
            let Some((id, address)) = lookup.next() else {
                break;
            };
            if !self.ask(address, Some(id), Some(number), query, (now, effects))
                && let Some(lookup) = self.lookups.get_mut(&number)
            {
                lookup.failed(id);
            }
        }
        if self.lookups.get_mut(&number).is_some_and(Lookup::is_done)
            && let Some(lookup) = self.lookups.remove(&number)
        {
            self.finish(&lookup, now, effects);
        }
    }

    fn finish(&mut self, lookup: &Lookup, now: Instant, effects: &mut Vec<Effect>) {
        let Goal::Peers(info_hash) = lookup.goal() else {
            return;
        };
        let Some(due) = self.torrents.get_mut(&info_hash) else {
            return;
        };
        if lookup.answers == 0 {
            *due = now + SEARCH_RETRY;
        }
        for (id, address, token) in lookup.tokens() {
            let query = Query::AnnouncePeer {
                info_hash,
                port: Some(self.port),
                token,
            };
            self.ask(address, Some(id), None, query, (now, effects));
        }
    }

    fn serve(
        &mut self,
        from: SocketAddr,
        (transaction, query): (&[u8], Query<'_>),
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let (second, served) = &mut self.served;
        if now.duration_since(*second) >= Duration::from_secs(1) {
            (*second, *served) = (now, 0);
        }
        *served += 1;
        if *served > MAX_SERVED {
            return;
        }
        let (own, family) = (self.id(), self.family);
        let token = self.store.token(from.ip());
        let answer = |values: &Values<'_>| message::write_answer(transaction, own, from, family, values);
        let sent = match query {
            Query::Ping => answer(&Values::default()),
            Query::FindNode(target) => answer(&Values {
                nodes: &self.table.closest(target, BUCKET),
                ..Values::default()
            }),
            Query::GetPeers(info_hash) => answer(&Values {
                nodes: &self.table.closest(info_hash.into(), BUCKET),
                token: Some(&token),
                peers: &self.store.peers(info_hash),
            }),
            Query::AnnouncePeer { info_hash, port, token } => {
                let peer = SocketAddr::new(from.ip(), port.unwrap_or(from.port()));
                if !self.store.is_token(from.ip(), token) {
                    message::write_error(transaction, 203, "Bad token")
                } else if peer::is_usable(peer, self.is_open) {
                    self.store.announce(info_hash, peer, now);
                    let sent = answer(&Values::default());
                    // In a small network we are the node that knows.
                    if self.torrents.contains_key(&info_hash) {
                        effects.push(Effect::Found(info_hash, vec![peer]));
                    }
                    sent
                } else {
                    message::write_error(transaction, 203, "Bad port")
                }
            }
            Query::Unknown => message::write_error(transaction, 204, "Method Unknown"),
        };
        effects.push(Effect::Send(from, sent));
    }

    /// Counts what other nodes say that our address is; when enough agree, takes the id that follows from it.
    fn vote(&mut self, own: Option<SocketAddr>, by: IpAddr, now: Instant) {
        let Some(own) = own.map(|own| own.ip().to_canonical()) else {
            return;
        };
        let is_of_family = own.is_ipv6() == (self.family == Family::V6);
        if !is_of_family || !egress::address::is_global(own) || self.id().is_of_address(own) {
            return;
        }
        if self.votes.len() >= MAX_CANDIDATES && !self.votes.contains_key(&own) {
            self.votes.clear();
        }
        let voters = self.votes.entry(own).or_default();
        voters.insert(by);
        if voters.len() >= VOTES {
            self.votes.clear();
            let random = random_bytes(&mut self.chance);
            self.table.move_to(NodeId::of_address(own, random), now);
            self.next_refresh = now;
        }
    }
}

pub(super) fn random_bytes(chance: &mut Chance) -> [u8; 20] {
    std::array::from_fn(|_| u8::try_from(chance.below(256)).expect("it is below 256"))
}
