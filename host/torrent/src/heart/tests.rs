//! Swarms in memory: states whose effects are carried to each other in an order that a generator chooses.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::wire::message::{self, Limits};

const PIECE_BYTES: u32 = 64 * 1024;

/// An info dictionary of `pieces` pieces; the last one is shorter.
fn info(pieces: u32) -> metainfo::Info {
    let length = u64::from(pieces) * u64::from(PIECE_BYTES) - 20_000;
    let mut raw = format!(
        "d6:lengthi{length}e4:name1:x12:piece lengthi{PIECE_BYTES}e6:pieces{}:",
        pieces * 20
    )
    .into_bytes();
    raw.extend((0..pieces * 20).map(|byte| u8::try_from(byte % 251).unwrap()));
    raw.push(b'e');
    metainfo::Info::parse(&raw).unwrap()
}

fn geometry(info: &metainfo::Info) -> Geometry {
    Geometry::new(info.piece_length(), info.total_length())
}

fn wanted(pieces: u32) -> Wanted {
    Wanted {
        priorities: vec![(Priority::Normal, false); pieces as usize],
        is_sequential: false,
        lost: Vec::new(),
    }
}

/// What travels from one node to another.
#[derive(Debug, Clone)]
enum Packet {
    Bytes(Vec<u8>),
    Block(Block, bool),
}

struct Node {
    state: State,
    peer_id: [u8; 20],
    /// It sends wrong data.
    lies: bool,
    /// Blocks of pieces that are arriving, and whether each is right.
    arriving: BTreeMap<u32, BTreeMap<u32, bool>>,
    finished: bool,
    closed: BTreeSet<usize>,
}

struct Swarm {
    nodes: Vec<Node>,
    info: metainfo::Info,
    /// Packets on their way, by the pair of nodes: each connection keeps its order.
    wires: BTreeMap<(usize, usize), VecDeque<Packet>>,
    now: Duration,
}

fn peer(node: usize) -> PeerId {
    PeerId(node as u64)
}

impl Swarm {
    /// Nodes with these pieces, and whether each lies. All are connected.
    fn new(nodes: &[(Bitfield, bool)], info: &metainfo::Info) -> Self {
        let pieces = info.piece_count();
        let mut swarm = Self {
            nodes: Vec::new(),
            info: info.clone(),
            wires: BTreeMap::new(),
            now: Duration::ZERO,
        };
        for (index, (have, lies)) in nodes.iter().enumerate() {
            let peer_id = [u8::try_from(index).unwrap(); 20];
            let config = Config {
                info_hash: info.hash(),
                peer_id,
                upload_slots: 3,
                seed: index as u64 * 77 + 1,
                is_private: false,
                is_exchange_on: true,
                serves: true,
            };
            swarm.nodes.push(Node {
                state: State::new(config),
                peer_id,
                lies: *lies,
                arriving: BTreeMap::new(),
                finished: false,
                closed: BTreeSet::new(),
            });
            let opened = Opened {
                geometry: geometry(info),
                have: have.clone(),
                info: info.clone(),
                wanted: wanted(pieces),
            };
            swarm.apply(index, Input::Opened(opened));
        }
        for one in 0..nodes.len() {
            for other in 0..nodes.len() {
                if one != other {
                    swarm.connect(one, other);
                }
            }
        }
        swarm
    }

    fn connect(&mut self, one: usize, other: usize) {
        let joined = Joined {
            address: SocketAddr::from(([127, 0, 0, 1], u16::try_from(other).unwrap() + 1)),
            is_incoming: one > other,
            peer_id: self.nodes[other].peer_id,
            features: Features {
                fast: true,
                extended: true,
            },
        };
        self.apply(one, Input::Joined(peer(other), joined));
    }

    fn apply(&mut self, node: usize, input: Input<'_>) {
        let mut effects = Vec::new();
        self.nodes[node].state.apply(self.now, input, &mut effects);
        for effect in effects {
            self.perform(node, effect);
        }
    }

    fn send(&mut self, from: usize, to: PeerId, message: Message<'_>) {
        let mut bytes = Vec::new();
        message::encode(message, &mut bytes);
        let to = usize::try_from(to.0).unwrap();
        self.wires
            .entry((from, to))
            .or_default()
            .push_back(Packet::Bytes(bytes));
    }

    fn perform(&mut self, node: usize, effect: Effect) {
        match effect {
            Effect::Send(to, message) => self.send(node, to, message),
            Effect::SendHave(to) => match self.nodes[node].state.served() {
                Some(have) if have.count() > 0 => self.send(node, to, Message::Bitfield(have.as_bytes())),
                _ => self.send(node, to, Message::HaveNone),
            },
            Effect::SendExtended(to, number, content) => self.send(node, to, Message::Extended(number, &content)),
            Effect::Upload(to) => {
                while let Some(block) = self.nodes[node].state.next_upload(to) {
                    let is_right = !self.nodes[node].lies;
                    let wire = self.wires.entry((node, usize::try_from(to.0).unwrap())).or_default();
                    wire.push_back(Packet::Block(block, is_right));
                }
            }
            Effect::Check(piece) => {
                let blocks = self.nodes[node].arriving.remove(&piece).unwrap();
                let count = geometry(&self.info).blocks(piece) as usize;
                assert_eq!(blocks.len(), count, "a piece is checked only when all of it is here");
                let is_right = blocks.values().all(|is_right| *is_right);
                self.apply(node, Input::Checked { piece, is_right });
            }
            Effect::Discard(piece) => drop(self.nodes[node].arriving.remove(&piece)),
            Effect::Close(to, _) => self.close(node, usize::try_from(to.0).unwrap()),
            Effect::Finished => self.nodes[node].finished = true,
            Effect::SendExtensions(_) | Effect::Got(_) | Effect::Found(_) | Effect::Banned(_) => {}
            Effect::CheckMetadata(..) => unreachable!("the metadata is known"),
        }
    }

    fn close(&mut self, one: usize, other: usize) {
        for (from, to) in [(one, other), (other, one)] {
            self.wires.remove(&(from, to));
            if self.nodes[from].closed.insert(to) {
                self.apply(from, Input::Left(peer(to)));
            }
        }
    }

    /// Delivers one packet of the wire that `choice` selects. Returns whether there was any.
    fn step(&mut self, choice: usize) -> bool {
        let busy: Vec<_> = self
            .wires
            .iter()
            .filter(|(_, wire)| !wire.is_empty())
            .map(|(pair, _)| *pair)
            .collect();
        let Some(&(from, to)) = busy.get(choice % busy.len().max(1)) else {
            return false;
        };
        let packet = self.wires.get_mut(&(from, to)).unwrap().pop_front().unwrap();
        match packet {
            Packet::Bytes(bytes) => {
                let limits = Limits {
                    pieces: Some(self.info.piece_count()),
                };
                let (message, _) = message::decode(&bytes, limits).unwrap().unwrap();
                self.apply(to, Input::Said(peer(from), message));
            }
            Packet::Block(block, is_right) => match self.nodes[to].state.begin_block(self.now, peer(from), block) {
                Ok(true) => {
                    let blocks = self.nodes[to].arriving.entry(block.piece).or_default();
                    let before = blocks.insert(block.index(), is_right);
                    assert_eq!(before, None, "a block is kept once");
                    self.apply(to, Input::Arrived(peer(from), block));
                }
                Ok(false) => {}
                Err(reason) => panic!("{from} is closed by {to}: {reason:?}"),
            },
        }
        true
    }

    /// Runs until nothing moves any more, however often the clock ticks.
    fn run(&mut self, choices: &[usize]) {
        let mut quiet = 0;
        for round in 0.. {
            assert!(round < 400_000, "it goes on for ever");
            if self.step(choices[round % choices.len()].wrapping_add(round)) {
                quiet = 0;
                continue;
            }
            quiet += 1;
            if quiet > 100 {
                return;
            }
            self.now += Duration::from_secs(1);
            for node in 0..self.nodes.len() {
                self.apply(node, Input::Tick);
            }
        }
    }
}

fn some(pieces: u32, chosen: impl Fn(u32) -> bool) -> Bitfield {
    let mut bits = Bitfield::new(pieces);
    for piece in (0..pieces).filter(|piece| chosen(*piece)) {
        bits.insert(piece);
    }
    bits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_node_gets_everything_that_exists(
        pieces in 1_u32..12,
        spread in prop::collection::vec(0_u32..5, 12),
        choices in prop::collection::vec(any::<usize>(), 64),
    ) {
        let info = info(pieces);
        let nodes: Vec<_> = (0..5).map(|node| (some(pieces, |piece| spread[piece as usize] == node), false)).collect();
        let mut swarm = Swarm::new(&nodes, &info);
        swarm.run(&choices);
        for node in &swarm.nodes {
            prop_assert!(node.finished, "{:?}", node.state.have());
            prop_assert!(node.state.have().unwrap().is_full());
        }
    }

    #[test]
    fn a_peer_that_lies_is_banned_and_harms_nobody(
        pieces in 2_u32..10,
        choices in prop::collection::vec(any::<usize>(), 64),
    ) {
        let info = info(pieces);
        let all = Bitfield::full(pieces);
        let nodes = [(all.clone(), false), (all, true), (Bitfield::new(pieces), false), (Bitfield::new(pieces), false)];
        let mut swarm = Swarm::new(&nodes, &info);
        swarm.run(&choices);
        for index in [2, 3] {
            let node = &swarm.nodes[index];
            prop_assert!(node.finished, "node {}: {:?}", index, node.state.have());
            // The liar is the only one that may be banned.
            prop_assert!(node.state.bans.len() <= 1);
            prop_assert!(!node.closed.contains(&0) || node.closed.contains(&1) || node.state.is_finished());
        }
    }

    #[test]
    fn peers_may_leave_at_any_moment(
        pieces in 1_u32..10,
        choices in prop::collection::vec(any::<usize>(), 64),
        leaves_after in 0_usize..400,
    ) {
        let info = info(pieces);
        let nodes = [(Bitfield::full(pieces), false), (Bitfield::full(pieces), false), (Bitfield::new(pieces), false)];
        let mut swarm = Swarm::new(&nodes, &info);
        for round in 0..leaves_after {
            swarm.step(choices[round % choices.len()]);
        }
        swarm.close(1, 2);
        swarm.run(&choices);
        prop_assert!(swarm.nodes[2].finished);
        prop_assert_eq!(swarm.nodes[2].state.asked, 0);
    }

    #[test]
    fn no_message_breaks_the_state(
        bytes in prop::collection::vec((0_u8..22, prop::collection::vec(0_u8..4, 0..14)), 0..60),
    ) {
        let info = info(3);
        let mut swarm = Swarm::new(&[(some(3, |piece| piece == 1), false), (Bitfield::new(3), false)], &info);
        for (id, body) in bytes {
            let mut message = u32::try_from(body.len() + 1).unwrap().to_be_bytes().to_vec();
            message.push(id);
            message.extend(body);
            if let Ok(Some((message, _))) = message::decode(&message, Limits { pieces: Some(3) }) {
                let mut effects = Vec::new();
                swarm.nodes[0].state.apply(swarm.now, Input::Said(peer(1), message), &mut effects);
            }
            swarm.apply(0, Input::Tick);
        }
        let owed: usize = swarm.nodes[0].state.peers.values().map(|peer| peer.asked.len()).sum();
        prop_assert_eq!(owed, swarm.nodes[0].state.asked as usize);
    }
}

/// A state that has the first of three pieces, with one peer.
fn state_with_peer() -> State {
    let info = info(3);
    let nodes = [(some(3, |piece| piece == 0), false), (Bitfield::new(3), false)];
    let mut swarm = Swarm::new(&nodes, &info);
    swarm.nodes.remove(0).state
}

/// Checks why the connection is closed after these messages.
fn check_closed(messages: &[Message<'_>], expected: Violation) {
    let mut state = state_with_peer();
    let mut effects = Vec::new();
    for message in messages {
        state.apply(Duration::from_secs(1), Input::Said(peer(1), *message), &mut effects);
    }
    let closed = effects.iter().find_map(|effect| match effect {
        Effect::Close(_, reason) => Some(*reason),
        _ => None,
    });
    assert_eq!(closed, Some(CloseReason::Violation(expected)), "{messages:?}");
}

#[test]
fn what_no_correct_client_sends_closes_its_connection() {
    let block = |piece, begin, length| Block { piece, begin, length };
    check_closed(&[Message::Have(3)], Violation::Pieces);
    check_closed(&[Message::Have(u32::MAX)], Violation::Pieces);
    check_closed(&[Message::Bitfield(&[0, 0])], Violation::Pieces);
    check_closed(&[Message::Bitfield(&[0x10])], Violation::Pieces);
    check_closed(&[Message::HaveAll, Message::Have(3)], Violation::Pieces);
    check_closed(&[Message::Request(block(9, 0, 1))], Violation::Request);
    check_closed(&[Message::Request(block(0, 0, 0))], Violation::Request);
    check_closed(&[Message::Request(block(0, 0, 32_768))], Violation::Request);
    check_closed(&[Message::Request(block(0, u32::MAX, 16_384))], Violation::Request);
    check_closed(&[Message::Extended(9, b"")], Violation::Extension);
    check_closed(&[Message::Extended(0, b"not bencode")], Violation::Extension);
    check_closed(
        &[Message::Extended(1, b"d8:msg_typei0e5:piecei0ee")],
        Violation::Extension,
    );
    check_closed(&[Message::Extended(3, b"\0\0\0\x09")], Violation::Pieces);
    check_closed(&[Message::Extended(3, b"\0")], Violation::Extension);
    check_closed(
        &[Message::Extended(2, b"d5:addede"), Message::Extended(2, b"de")],
        Violation::Extension,
    );
    check_closed(
        &[Message::Extended(2, b"de"), Message::Extended(2, b"de")],
        Violation::Exchange,
    );
}

#[test]
fn floods_of_requests_close_the_connection() {
    let mut messages = vec![Message::Interested];
    for index in 0..=u32::try_from(crate::wire::extension::MAX_QUEUED_REQUESTS).unwrap() {
        messages.push(Message::Request(Block {
            piece: 0,
            begin: index,
            length: 100,
        }));
    }
    check_closed(&messages, Violation::RequestFlood);
    let mut messages = vec![Message::Extended(0, b"d1:md11:ut_metadatai1eee")];
    messages.extend([Message::Extended(1, b"d8:msg_typei0e5:piecei0ee"); 65]);
    check_closed(&messages, Violation::Metadata);
}

#[test]
fn unasked_data_is_dropped_and_a_flood_of_it_closes_the_connection() {
    let mut state = state_with_peer();
    let block = Block {
        piece: 1,
        begin: 0,
        length: 16_384,
    };
    for _ in 0..1024 {
        assert_eq!(state.begin_block(Duration::ZERO, peer(1), block), Ok(false));
    }
    let flood = state.begin_block(Duration::ZERO, peer(1), block);
    assert_eq!(flood, Err(CloseReason::Violation(Violation::UnaskedData)));
}

#[test]
fn a_peer_that_owes_data_for_long_loses_its_requests_to_others() {
    let info = info(1);
    let nodes = [
        (Bitfield::new(1), false),
        (Bitfield::full(1), false),
        (Bitfield::full(1), false),
    ];
    let mut swarm = Swarm::new(&nodes, &info);
    // The first seed never answers.
    for round in 0..10_000 {
        swarm.step(round);
        if let Some(wire) = swarm.wires.get_mut(&(1, 0)) {
            wire.retain(|packet| matches!(packet, Packet::Bytes(_)));
        }
        if round % 100 == 99 {
            swarm.now += Duration::from_secs(1);
            swarm.apply(0, Input::Tick);
        }
    }
    assert!(swarm.nodes[0].finished);
}

#[test]
fn what_is_not_wanted_is_not_asked_for() {
    let info = info(4);
    let mut swarm = Swarm::new(&[(Bitfield::new(4), false), (Bitfield::full(4), false)], &info);
    let mut choice = wanted(4);
    choice.priorities[1] = (Priority::Skip, false);
    choice.priorities[3] = (Priority::Skip, false);
    swarm.apply(0, Input::Wanted(choice));
    swarm.run(&[0, 1, 2]);
    assert!(swarm.nodes[0].finished);
    assert_eq!(swarm.nodes[0].state.have().unwrap().iter().collect::<Vec<_>>(), [0, 2]);
    swarm.apply(0, Input::Wanted(wanted(4)));
    swarm.nodes[0].closed.clear();
    swarm.nodes[1].closed.clear();
    swarm.connect(0, 1);
    swarm.connect(1, 0);
    swarm.run(&[0, 1, 2]);
    assert!(swarm.nodes[0].state.have().unwrap().is_full());
}

#[test]
fn withheld_pieces_are_not_served() {
    let mut state = state_with_peer();
    let mut effects = Vec::new();
    state.apply(Duration::ZERO, Input::Said(peer(1), Message::Interested), &mut effects);
    assert!(effects.contains(&Effect::Send(peer(1), Message::Unchoke)));
    let block = Block {
        piece: 0,
        begin: 0,
        length: 10,
    };
    state.apply(
        Duration::ZERO,
        Input::Said(peer(1), Message::Request(block)),
        &mut effects,
    );
    assert!(effects.contains(&Effect::Upload(peer(1))));
    effects.clear();
    state.apply(Duration::ZERO, Input::Withheld(vec![0]), &mut effects);
    let other = Block { begin: 20, ..block };
    state.apply(
        Duration::ZERO,
        Input::Said(peer(1), Message::Request(other)),
        &mut effects,
    );
    assert_eq!(effects, [Effect::Send(peer(1), Message::Reject(other))]);
    assert_eq!(state.served().unwrap().count(), 0);
}

#[test]
fn what_a_peer_has_may_be_said_again_as_aria2_does() {
    let mut state = state_with_peer();
    let mut effects = Vec::new();
    let messages = [
        Message::Have(1),
        Message::HaveAll,
        Message::Bitfield(&[0xc0]),
        Message::Bitfield(&[0x60]),
    ];
    for (message, expected) in messages.into_iter().zip([[0, 1, 0], [1, 1, 1], [1, 1, 0], [0, 1, 1]]) {
        state.apply(Duration::from_secs(1), Input::Said(peer(1), message), &mut effects);
        assert_eq!(state.availability(), expected, "{message:?}");
    }
    state.apply(Duration::from_secs(1), Input::Left(peer(1)), &mut effects);
    assert_eq!(state.availability(), [0, 0, 0]);
}

#[test]
fn beyond_the_most_that_is_uploaded_a_peer_gets_only_the_rest_of_its_piece() {
    let at = Duration::from_secs(1);
    let mut state = state_with_peer();
    let mut effects = Vec::new();
    let blocks = geometry(&info(3)).blocks(0);
    assert!(blocks >= 2, "the test needs two blocks");
    let block = |index| geometry(&info(3)).block(0, index);
    state.apply(at, Input::Said(peer(1), Message::Interested), &mut effects);
    state.apply(at, Input::Said(peer(1), Message::Request(block(0))), &mut effects);
    assert_eq!(state.next_upload(peer(1)), Some(block(0)));
    state.apply(at, Input::Serve(false), &mut effects);
    effects.clear();
    state.apply(at, Input::Said(peer(1), Message::Request(block(1))), &mut effects);
    assert_eq!(effects, [Effect::Upload(peer(1))]);
    assert_eq!(state.next_upload(peer(1)), Some(block(1)));
    state.apply(at, Input::Uploaded(peer(1), block(1).length), &mut effects);
    // It may have been sent nothing of the piece when it was served for the last time, but never more than all of it.
    let mut got = block(1).length;
    for round in 0..100 {
        let asked = block(round % blocks);
        state.apply(at, Input::Said(peer(1), Message::Request(asked)), &mut effects);
        got += state.next_upload(peer(1)).map_or(0, |block| block.length);
        state.apply(at, Input::Uploaded(peer(1), 0), &mut effects);
    }
    assert!(got <= geometry(&info(3)).length(0), "{got} bytes");
    state.apply(at + Duration::from_secs(20), Input::Tick, &mut effects);
    assert!(effects.contains(&Effect::Send(peer(1), Message::Choke)));
    state.apply(at + Duration::from_secs(21), Input::Serve(true), &mut effects);
    assert_eq!(effects.last(), Some(&Effect::Send(peer(1), Message::Unchoke)));
}

#[test]
fn addresses_are_ignored_while_exchange_is_off_and_forbidden_in_private_torrents() {
    let told = Message::Extended(2, b"d5:added6:\x01\x02\x03\x04\x1a\xe1e");
    let found = Effect::Found(vec![SocketAddr::from(([1, 2, 3, 4], 6881))]);
    for (is_private, is_exchange_on, expected) in [
        (false, true, vec![found]),
        (false, false, vec![]),
        (
            true,
            true,
            vec![Effect::Close(peer(1), CloseReason::Violation(Violation::Extension))],
        ),
    ] {
        let mut state = state_with_peer();
        state.config.is_private = is_private;
        state.config.is_exchange_on = is_exchange_on;
        let mut effects = Vec::new();
        state.apply(Duration::from_secs(1), Input::Said(peer(1), told), &mut effects);
        assert_eq!(effects, expected, "private: {is_private}, on: {is_exchange_on}");
    }
}
