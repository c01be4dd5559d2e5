//! A torrent whose peers say anything, without a connection or a file: for searches for hostile input.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    time::Duration,
};

use metainfo::{Info, InfoHash};

use crate::{
    bitfield::Bitfield,
    geometry::{Block, Geometry},
    heart::{
        Config, Effect, Input, Joined, MAX_PIPELINE, MAX_PIPELINES, Opened, PeerId, Priority, State, Wanted,
        ban::Suspect,
    },
    wire::{
        extension::MAX_QUEUED_REQUESTS,
        handshake::{Features, HANDSHAKE_BYTES, Handshake},
        message::{self, Limits, Message},
    },
};

/// Peers that are connected at the same time.
const PEERS: usize = 4;

/// The pieces of the torrent: 3, of which the last one is shorter.
const PIECES: u32 = 3;
const PIECE_BYTES: u32 = 32 * 1024;
const TOTAL_BYTES: u64 = 3 * 32 * 1024 - 5;

/// What one input may cause: a message to each peer for each of its requests.
const MAX_EFFECTS: usize = PEERS * (MAX_QUEUED_REQUESTS + MAX_PIPELINE as usize + 64);

/// The most bytes of our messages that one input causes: all of the metadata that may be asked for is less.
const MAX_SENT_BYTES: usize = 1024 * 1024;

/// Has peers say what `script` says, and checks that a torrent stays within its bounds. Panics if it does not. Its first byte
/// is what the torrent begins with; each step begins with a byte of what happens (the lower 3 bits) and to which peer.
pub fn rehearse(script: &[u8]) {
    if let Some(bytes) = script.first_chunk::<HANDSHAKE_BYTES>()
        && let Ok(handshake) = Handshake::decode(bytes)
    {
        assert_eq!(Handshake::decode(&handshake.encode()), Ok(handshake));
    }
    let mut script = Script(script);
    let Some(beginning) = script.byte() else {
        return;
    };
    let mut stage = Stage::new(beginning);
    while let Some(step) = script.byte() {
        stage.step(step, &mut script);
        stage.check();
    }
    for peer in 0..PEERS {
        stage.leave(peer);
    }
    stage.check();
    assert!(stage.state.peers().next().is_none());
}

struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte().unwrap_or(0))
    }

    /// As many bytes as the next one says, or four times as many.
    fn bytes(&mut self, is_long: bool) -> &'a [u8] {
        let length = self.number() * if is_long { 4 } else { 1 };
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

struct Stage {
    state: State,
    info: Info,
    now: Duration,
    peers: [Option<PeerId>; PEERS],
    joined: u64,
    /// Blocks that began to arrive.
    arriving: Vec<(PeerId, Block)>,
    /// Pieces that are to be hashed.
    checking: VecDeque<u32>,
    /// Blocks that are here, for each piece.
    here: BTreeMap<u32, Vec<Block>>,
    is_open: bool,
}

impl Stage {
    fn new(beginning: u8) -> Self {
        let info = info();
        let config = Config {
            info_hash: info.hash(),
            peer_id: [9; 20],
            upload_slots: usize::from(beginning >> 4) % 4,
            seed: u64::from(beginning),
            is_private: beginning & 1 != 0,
            is_exchange_on: beginning & 2 != 0,
            serves: true,
        };
        let mut stage = Self {
            state: State::new(config),
            info,
            now: Duration::ZERO,
            peers: [None; PEERS],
            joined: 0,
            arriving: Vec::new(),
            checking: VecDeque::new(),
            here: BTreeMap::new(),
            is_open: false,
        };
        if beginning & 4 != 0 {
            stage.open(beginning & 8 != 0);
        }
        stage
    }

    fn open(&mut self, has_first: bool) {
        let mut have = Bitfield::new(PIECES);
        if has_first {
            have.insert(0);
        }
        self.is_open = true;
        self.apply(Input::Opened(Opened {
            geometry: geometry(),
            have,
            info: self.info.clone(),
            wanted: wanted(u8::MAX),
        }));
    }

    fn step(&mut self, step: u8, script: &mut Script<'_>) {
        let peer = usize::from(step >> 6);
        let is_other = step & 0x20 != 0;
        match step & 7 {
            0 => {
                self.now += Duration::from_secs(script.number() as u64);
                self.apply(Input::Tick);
            }
            1 => self.deliver(peer, script.number(), is_other),
            2 if self.peers[peer].is_some() => self.leave(peer),
            2 => self.join(peer, script.number()),
            3 => {
                if let Some(piece) = self.checking.pop_front() {
                    self.here.remove(&piece);
                    self.apply(Input::Checked {
                        piece,
                        is_right: !is_other,
                    });
                }
            }
            4 | 5 => {
                let said = script.bytes(is_other);
                let mut framed = Vec::new();
                if step & 7 == 4 {
                    let length = u32::try_from(said.len()).expect("a script is short");
                    framed.extend(length.to_be_bytes());
                }
                framed.extend(said);
                self.hear(peer, &framed);
            }
            6 => self.upload(peer),
            _ => match script.number() {
                choice @ 0..8 if self.is_open => {
                    self.apply(Input::Wanted(wanted(u8::try_from(choice).unwrap_or(0))));
                }
                8 if self.is_open => self.apply(Input::Withheld(vec![1])),
                choice => self.apply(Input::Serve(choice % 2 == 0)),
            },
        }
    }

    fn join(&mut self, peer: usize, how: usize) {
        let id = PeerId(self.joined);
        self.joined += 1;
        let number = u8::try_from(how >> 4).unwrap_or(0);
        self.peers[peer] = Some(id);
        self.apply(Input::Joined(
            id,
            Joined {
                address: SocketAddr::from(([10, 0, 0, number], 1000)),
                is_incoming: how & 4 != 0,
                peer_id: [number; 20],
                features: Features {
                    fast: how & 1 != 0,
                    extended: how & 2 != 0,
                },
            },
        ));
    }

    fn leave(&mut self, peer: usize) {
        if let Some(id) = self.peers[peer].take() {
            self.arriving.retain(|(from, _)| *from != id);
            self.apply(Input::Left(id));
        }
    }

    /// A stream of messages from a peer, until it ends or is none.
    fn hear(&mut self, peer: usize, mut bytes: &[u8]) {
        while let Some(id) = self.peers[peer] {
            let limits = Limits {
                pieces: self.is_open.then_some(PIECES),
            };
            match message::decode(bytes, limits) {
                Ok(Some((said, taken))) => {
                    bytes = &bytes[taken..];
                    match said {
                        Message::Piece(block) => self.begin(id, block),
                        said => self.apply(Input::Said(id, said)),
                    }
                }
                Ok(None) => return,
                Err(_) => self.leave(peer),
            }
        }
    }

    fn begin(&mut self, id: PeerId, block: Block) {
        match self.state.begin_block(self.now, id, block) {
            Ok(true) => {
                assert!(geometry().may_ask(block), "{block:?} was never asked for");
                self.arriving.push((id, block));
            }
            Ok(false) => {}
            Err(_) => self.close(id),
        }
    }

    /// A peer sends a block that it was asked for, or the beginning of it.
    fn deliver(&mut self, peer: usize, which: usize, begins_only: bool) {
        let Some(id) = self.peers[peer] else { return };
        let begun = self.arriving.iter().position(|(from, _)| *from == id);
        if let Some(begun) = begun {
            let (_, block) = self.arriving.remove(begun);
            let here = self.here.entry(block.piece).or_default();
            if self.state.is_arriving(id, block) {
                assert!(!here.contains(&block), "{block:?} is kept once");
                here.push(block);
            }
            self.apply(Input::Arrived(id, block));
            return;
        }
        let asked = self.state.peers().find(|(known, _)| *known == id);
        let block = asked.and_then(|(_, peer)| peer.asked.get(which % peer.asked.len().max(1)).copied());
        if let Some(block) = block {
            self.begin(id, block);
            if !begins_only && self.peers[peer] == Some(id) && self.arriving.contains(&(id, block)) {
                self.deliver(peer, which, false);
            }
        }
    }

    fn upload(&mut self, peer: usize) {
        let Some(id) = self.peers[peer] else { return };
        if let Some(block) = self.state.next_upload(id) {
            let is_there = self.state.have().is_some_and(|have| have.has(block.piece));
            assert!(is_there && geometry().may_ask(block), "{block:?} is not there");
            self.apply(Input::Uploaded(id, block.length));
        }
    }

    fn close(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.iter().position(|known| *known == Some(id)) {
            self.leave(peer);
        }
    }

    fn apply(&mut self, input: Input<'_>) {
        let mut effects = Vec::new();
        self.state.apply(self.now, input, &mut effects);
        assert!(effects.len() <= MAX_EFFECTS, "{} effects of one input", effects.len());
        let mut sent = Vec::new();
        let mut closed = Vec::new();
        let mut metadata = None;
        for effect in effects {
            match effect {
                Effect::Send(_, message) => {
                    let from = sent.len();
                    message::encode(message, &mut sent);
                    let limits = Limits {
                        pieces: self.is_open.then_some(PIECES),
                    };
                    let read = message::decode(&sent[from..], limits).expect("our messages are well formed");
                    assert_eq!(read.map(|(read, _)| read), Some(message));
                }
                Effect::SendExtended(_, number, content) => {
                    assert!(number != 0, "an extension that the peer does not have");
                    message::encode(Message::Extended(number, &content), &mut sent);
                }
                Effect::Close(id, _) => closed.push(id),
                Effect::Check(piece) => {
                    let here = self.here.get(&piece).map_or(0, Vec::len);
                    assert_eq!(here, geometry().blocks(piece) as usize, "piece {piece} is not complete");
                    self.checking.push_back(piece);
                }
                Effect::Discard(piece) => drop(self.here.remove(&piece)),
                Effect::CheckMetadata(bytes, suspects) => metadata = Some((bytes, suspects)),
                Effect::Got(piece) => assert!(self.state.have().is_some_and(|have| have.has(piece))),
                Effect::Found(addresses) => assert!(addresses.len() <= 200, "{} addresses", addresses.len()),
                Effect::SendHave(_)
                | Effect::SendExtensions(_)
                | Effect::Upload(_)
                | Effect::Finished
                | Effect::Banned(_) => {}
            }
        }
        assert!(sent.len() <= MAX_SENT_BYTES, "{} bytes to send", sent.len());
        for id in closed {
            self.close(id);
        }
        if let Some((bytes, suspects)) = metadata {
            self.check_metadata(&bytes, suspects);
        }
    }

    fn check_metadata(&mut self, bytes: &[u8], suspects: Vec<Suspect>) {
        let is_right = InfoHash::of(bytes) == self.info.hash();
        self.apply(Input::MetadataChecked { is_right, suspects });
        if is_right && !self.is_open {
            self.open(false);
        }
    }

    fn check(&self) {
        let mut asked = 0;
        for (_, peer) in self.state.peers() {
            assert!(
                peer.asked.len() <= MAX_PIPELINE as usize,
                "{} requests",
                peer.asked.len()
            );
            assert!(
                peer.uploads.len() <= MAX_QUEUED_REQUESTS,
                "{} uploads",
                peer.uploads.len()
            );
            asked += peer.asked.len();
        }
        assert!(asked <= MAX_PIPELINES as usize, "{asked} requests");
        assert!(self.state.peers().count() <= PEERS);
    }
}

fn geometry() -> Geometry {
    Geometry::new(PIECE_BYTES, TOTAL_BYTES)
}

/// Pieces of which the bits are set.
fn wanted(pieces: u8) -> Wanted {
    let priority = |piece| {
        let is_wanted = pieces & (1_u8 << piece) != 0;
        (if is_wanted { Priority::Normal } else { Priority::Skip }, false)
    };
    Wanted {
        priorities: (0..PIECES).map(priority).collect(),
        is_sequential: false,
        lost: Vec::new(),
    }
}

/// The torrent. What its pieces are does not matter: the script says which are right.
fn info() -> Info {
    let mut raw = format!("d6:lengthi{TOTAL_BYTES}e4:name1:t12:piece lengthi{PIECE_BYTES}e6:pieces60:").into_bytes();
    raw.extend([0; 60]);
    raw.push(b'e');
    Info::parse(&raw).expect("it is well formed")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_torrent_stays_within_its_bounds_whatever_is_said(
            beginning: u8,
            steps in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..14)), 0..200),
        ) {
            let mut script = vec![beginning];
            for (step, said) in steps {
                script.push(step);
                if matches!(step & 7, 4 | 5) {
                    script.push(u8::try_from(said.len()).unwrap());
                }
                script.extend(said);
            }
            rehearse(&script);
        }
    }
}
