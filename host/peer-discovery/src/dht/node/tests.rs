use proptest::prelude::*;

use super::*;

/// A network of nodes without loss, in which time passes only when nothing is under way.
struct Network {
    nodes: Vec<(SocketAddr, Node)>,
    now: Instant,
    sent: usize,
    found: Vec<(usize, InfoHash, Vec<SocketAddr>)>,
}

fn address(at: usize) -> SocketAddr {
    let [a, b] = u16::try_from(at).unwrap().to_be_bytes();
    SocketAddr::from(([93, 184, a, b], 6881))
}

fn node(at: usize, now: Instant) -> Node {
    let mut chance = Chance(at as u64 + 1);
    // The first numbers of neighbouring seeds are alike.
    for _ in 0..20 {
        chance.below(2);
    }
    let start = Start {
        id: NodeId(random_bytes(&mut chance)),
        family: Family::V4,
        port: 5000 + u16::try_from(at).unwrap(),
        is_open: false,
        secret: random_bytes(&mut chance),
        seed: chance.below(u64::MAX),
    };
    Node::new(start, now)
}

impl Network {
    fn of(count: usize) -> Self {
        let now = Instant::now();
        let nodes = (0..count).map(|at| (address(at), node(at, now))).collect();
        let mut network = Self {
            nodes,
            now,
            sent: 0,
            found: Vec::new(),
        };
        for at in 1..count {
            network.act(at, |node, now, effects| node.bootstrap(&[address(0)], now, effects));
            network.pass(Duration::from_secs(1));
        }
        network
    }

    fn act(&mut self, at: usize, act: impl FnOnce(&mut Node, Instant, &mut Vec<Effect>)) {
        let mut effects = Vec::new();
        act(&mut self.nodes[at].1, self.now, &mut effects);
        let mut waiting: std::collections::VecDeque<_> = effects.into_iter().map(|effect| (at, effect)).collect();
        while let Some((from, effect)) = waiting.pop_front() {
            match effect {
                Effect::Found(info_hash, peers) => self.found.push((from, info_hash, peers)),
                Effect::Send(to, datagram) => {
                    self.sent += 1;
                    assert!(datagram.len() <= message::MAX_BYTES);
                    let from_address = self.nodes[from].0;
                    let Some(receiver) = self.nodes.iter().position(|(known, _)| *known == to) else {
                        continue;
                    };
                    let mut effects = Vec::new();
                    let node = &mut self.nodes[receiver].1;
                    node.receive(from_address, &datagram, self.now, &mut effects);
                    waiting.extend(effects.into_iter().map(|effect| (receiver, effect)));
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let next = self.nodes.iter().map(|(_, node)| node.wake_at()).min().unwrap();
            assert!(next > self.now, "a node that was passed the time wants it later");
            self.now = next.min(end);
            for at in 0..self.nodes.len() {
                if self.nodes[at].1.wake_at() <= self.now {
                    self.act(at, Node::tick);
                }
            }
        }
    }
}

#[test]
fn peers_of_one_torrent_find_each_other_through_others() {
    let mut network = Network::of(60);
    network.pass(Duration::from_secs(30));
    let hash = InfoHash([0x5a; 20]);
    let wanted = BTreeSet::from([hash]);
    network.act(7, |node, now, effects| node.set_torrents(&wanted, now, effects));
    network.pass(Duration::from_secs(30));
    network.act(42, |node, now, effects| node.set_torrents(&wanted, now, effects));
    network.pass(Duration::from_secs(30));
    let expected = SocketAddr::new(address(7).ip(), 5007);
    let is_found = |(at, found, peers): &(usize, InfoHash, Vec<SocketAddr>)| {
        *at == 42 && *found == hash && peers.contains(&expected)
    };
    assert!(network.found.iter().any(is_found), "{:?}", network.found);
    // The first one finds the second when it searches again.
    network.pass(SEARCH_INTERVAL * 2);
    let second = SocketAddr::new(address(42).ip(), 5042);
    assert!(
        network
            .found
            .iter()
            .any(|(at, _, peers)| *at == 7 && peers.contains(&second))
    );
}

#[test]
fn an_idle_node_is_quiet() {
    let mut network = Network::of(30);
    network.pass(Duration::from_mins(10));
    let before = network.sent;
    network.pass(Duration::from_hours(1));
    let per_node_and_minute = (network.sent - before) / 30 / 60;
    assert!(per_node_and_minute <= 20, "{per_node_and_minute} datagrams");
}

#[test]
fn a_node_that_is_gone_is_forgotten_and_the_others_go_on() {
    let mut network = Network::of(20);
    network.pass(Duration::from_secs(30));
    network.nodes.truncate(10);
    network.pass(Duration::from_hours(2));
    for (_, node) in &network.nodes {
        let alive: Vec<_> = network.nodes.iter().map(|(address, _)| *address).collect();
        assert!(node.nodes().iter().all(|(_, known)| alive.contains(known)));
    }
}

#[test]
fn an_answer_counts_only_from_the_node_that_was_asked() {
    let now = Instant::now();
    let (mut ours, mut effects) = (node(0, now), Vec::new());
    ours.bootstrap(&[address(1)], now, &mut effects);
    let Effect::Send(_, query) = &effects[0] else {
        panic!("it asks");
    };
    let Some(Message::Query { transaction, .. }) = message::read(query, Family::V4) else {
        panic!("it is a query");
    };
    let answer = message::write_answer(transaction, NodeId([9; 20]), address(0), Family::V4, &Values::default());
    let forged = message::write_answer(&[0; 4], NodeId([9; 20]), address(0), Family::V4, &Values::default());
    for (from, datagram) in [(address(2), &answer), (address(1), &forged)] {
        ours.receive(from, datagram, now, &mut Vec::new());
        assert_eq!(ours.len(), 0);
    }
    ours.receive(address(1), &answer, now, &mut Vec::new());
    assert_eq!(ours.len(), 1);
}

#[test]
fn a_flood_of_queries_is_answered_within_limits() {
    let now = Instant::now();
    let (mut ours, mut effects) = (node(0, now), Vec::new());
    for number in 0..10_000_usize {
        let mut id = [0; 20];
        id[..8].copy_from_slice(&number.to_be_bytes());
        let query = message::write_query(1, NodeId(id), Query::GetPeers(InfoHash(id)));
        ours.receive(address(number), &query, now, &mut effects);
    }
    assert!(effects.len() <= MAX_SERVED as usize + MAX_WAITING, "{}", effects.len());
    assert!(ours.waiting.len() <= MAX_WAITING / 2);
    // None of them has answered us, so none is known.
    assert_eq!(ours.len(), 0);
}

#[test]
fn an_announce_needs_a_token_for_its_address() {
    let now = Instant::now();
    let (mut ours, hash) = (node(0, now), InfoHash([1; 20]));
    let mut announce = |from: SocketAddr, token: &[u8]| {
        let query = Query::AnnouncePeer {
            info_hash: hash,
            port: Some(7),
            token,
        };
        let mut effects = Vec::new();
        let query = message::write_query(1, NodeId([2; 20]), query);
        ours.receive(from, &query, now, &mut effects);
        ours.store.peers(hash)
    };
    assert!(announce(address(1), b"guessed!").is_empty());
    let token = node(0, now).store.token(address(1).ip());
    assert!(announce(address(2), &token).is_empty());
    assert_eq!(announce(address(1), &token), [SocketAddr::new(address(1).ip(), 7)]);
}

#[test]
fn private_nodes_are_not_asked_unless_the_user_named_such() {
    let now = Instant::now();
    for (is_open, expected) in [(false, 0), (true, 2)] {
        let start = Start {
            id: NodeId([1; 20]),
            family: Family::V4,
            port: 1,
            is_open,
            secret: [1; 20],
            seed: 1,
        };
        let (mut node, mut effects) = (Node::new(start, now), Vec::new());
        let private = ["127.0.0.1:6881", "192.168.1.1:53"].map(|text| text.parse().unwrap());
        node.bootstrap(&private, now, &mut effects);
        assert_eq!(effects.len(), expected);
    }
}

#[test]
fn the_id_follows_the_address_that_nodes_agree_on() {
    let now = Instant::now();
    let mut ours = node(0, now);
    let own: SocketAddr = "93.184.216.34:6881".parse().unwrap();
    for by in 0..VOTES - 1 {
        ours.vote(Some(own), address(by).ip(), now);
        // One node counts once.
        ours.vote(Some(own), address(by).ip(), now);
    }
    assert!(!ours.id().is_of_address(own.ip()));
    ours.vote(Some(own), address(VOTES).ip(), now);
    assert!(ours.id().is_of_address(own.ip()));
}

proptest! {
    #[test]
    fn any_datagrams_leave_it_within_limits(datagrams in prop::collection::vec((0_usize..50, prop::collection::vec(any::<u8>(), 0..80)), 0..50)) {
        let now = Instant::now();
        let mut ours = node(0, now);
        for (from, datagram) in datagrams {
            ours.receive(address(from), &datagram, now, &mut Vec::new());
        }
        prop_assert!(ours.waiting.len() <= MAX_WAITING && ours.lookups.len() <= MAX_LOOKUPS);
    }
}
