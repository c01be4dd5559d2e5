//! What is known about a connected peer. Pure.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use super::{MAX_PIPELINE, ban::Suspect};
use crate::{
    bitfield::Bitfield,
    geometry::{BLOCK_BYTES, Block},
    wire::handshake::Features,
};

/// Identifies a connection; never used again within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PeerId(pub(crate) u64);

/// How many pieces a peer may announce one by one before the number of pieces is known.
const MAX_EARLY_HAVES: usize = 1024;

/// The requests that are open with a peer that we know nothing about yet.
const FIRST_PIPELINE: u32 = 16;

/// How much time of its data is requested in advance from a peer.
const PIPELINE_TIME: u64 = 1;

/// Pieces that a choked peer may be asked for; more of them are ignored (BEP 6 has clients send ten).
const MAX_ALLOWED_FAST: usize = 16;

/// What a peer has.
#[derive(Debug)]
pub(crate) enum Has {
    /// It has not said.
    Nothing,
    Everything,
    Some(Bitfield),
    /// What it said before the number of pieces was known.
    Early {
        bits: Vec<u8>,
        pieces: Vec<u32>,
    },
}

/// Measures bytes per second, over a few seconds.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Rate {
    total: u64,
    at_last_tick: u64,
    per_second: u64,
}

impl Rate {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.total += bytes;
    }

    pub(crate) fn total(self) -> u64 {
        self.total
    }

    pub(crate) fn per_second(self) -> u64 {
        self.per_second
    }

    fn tick(&mut self, elapsed: Duration) {
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
        let now = (self.total - self.at_last_tick).saturating_mul(1000) / millis;
        self.at_last_tick = self.total;
        self.per_second = if self.per_second == 0 {
            now
        } else {
            (self.per_second * 2 + now) / 3
        };
    }
}

/// A connected peer.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the states of BEP 3, independent of each other"
)]
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Where it accepts connections, if it said so or we connected to it.
    pub(crate) listens_on: Option<SocketAddr>,
    pub(crate) is_incoming: bool,
    pub(crate) id: [u8; 20],
    pub(crate) features: Features,
    pub(crate) client: Option<String>,
    pub(crate) has: Has,
    /// Wanted pieces that it has and we have not.
    pub(crate) useful: u32,
    pub(crate) is_choking_us: bool,
    pub(crate) is_interested: bool,
    pub(crate) is_choked: bool,
    pub(crate) is_interesting: bool,
    pub(crate) is_upload_only: bool,
    /// Since when it has been choked or unchoked.
    pub(crate) choke_changed: Duration,
    /// Pieces that it sends although it chokes us.
    pub(crate) allowed_fast: Vec<u32>,
    /// Blocks that it owes us, in the order in which they were asked for.
    pub(crate) asked: VecDeque<Block>,
    /// The piece that it works on.
    pub(crate) piece: Option<u32>,
    /// Requests that are kept open with it.
    pub(crate) pipeline: u32,
    /// The most that it accepts.
    pub(crate) queue: u32,
    pub(crate) last_data: Duration,
    pub(crate) last_heard: Duration,
    pub(crate) last_said: Duration,
    /// It is asked for nothing until its connection has ended.
    pub(crate) is_banned: bool,
    /// It owes data for too long.
    pub(crate) is_snubbing: bool,
    pub(crate) down: Rate,
    pub(crate) up: Rate,
    /// Bytes of blocks that nobody wanted, beyond those that crossed our cancellation.
    pub(crate) unasked: u64,
    /// Blocks that it asked for.
    pub(crate) uploads: VecDeque<Block>,
    /// The piece of which it was sent something last.
    pub(crate) sent: Option<u32>,
    /// Bytes of that piece that it may still get although peers are no longer served.
    pub(crate) allowance: u32,
    /// Its numbers of extensions; 0 is none.
    pub(crate) metadata: u8,
    pub(crate) exchange: u8,
    pub(crate) dont_have: u8,
    /// Requests of metadata that were answered.
    pub(crate) metadata_served: u32,
    /// When it last sent addresses.
    pub(crate) exchanged: Option<Duration>,
    /// Addresses that it was sent.
    pub(crate) told: Vec<SocketAddr>,
    pub(crate) told_at: Duration,
}

impl Peer {
    pub(crate) fn new(
        address: SocketAddr,
        is_incoming: bool,
        peer_id: [u8; 20],
        features: Features,
        now: Duration,
    ) -> Self {
        Self {
            address,
            listens_on: (!is_incoming).then_some(address),
            is_incoming,
            id: peer_id,
            features,
            client: None,
            has: Has::Nothing,
            useful: 0,
            is_choking_us: true,
            is_interested: false,
            is_choked: true,
            is_interesting: false,
            is_upload_only: false,
            choke_changed: now,
            allowed_fast: Vec::new(),
            asked: VecDeque::new(),
            piece: None,
            pipeline: FIRST_PIPELINE,
            queue: 250,
            last_data: now,
            last_heard: now,
            last_said: now,
            is_banned: false,
            is_snubbing: false,
            down: Rate::default(),
            up: Rate::default(),
            unasked: 0,
            uploads: VecDeque::new(),
            sent: None,
            allowance: 0,
            metadata: 0,
            exchange: 0,
            dont_have: 0,
            metadata_served: 0,
            exchanged: None,
            told: Vec::new(),
            told_at: now,
        }
    }

    /// Whether it is a web server: those have no address here.
    pub(crate) fn is_web(&self) -> bool {
        self.address.ip().is_unspecified()
    }

    /// As whom a ban names it.
    pub(crate) fn suspect(&self) -> Suspect {
        Suspect::new(self.address, self.id)
    }

    pub(crate) fn has(&self, piece: u32) -> bool {
        match &self.has {
            Has::Everything => true,
            Has::Some(bits) => bits.has(piece),
            Has::Nothing | Has::Early { .. } => false,
        }
    }

    pub(crate) fn is_seed(&self) -> bool {
        match &self.has {
            Has::Everything => true,
            Has::Some(bits) => bits.is_full(),
            Has::Nothing | Has::Early { .. } => false,
        }
    }

    /// Part of the torrent that it has, in pieces.
    pub(crate) fn count(&self, pieces: u32) -> u32 {
        match &self.has {
            Has::Everything => pieces,
            Has::Some(bits) => bits.count(),
            Has::Nothing | Has::Early { .. } => 0,
        }
    }

    /// Which pieces it has, as a bitfield of so many.
    pub(crate) fn pieces(&self, pieces: u32) -> Vec<u8> {
        match &self.has {
            Has::Everything => Bitfield::full(pieces).as_bytes().to_vec(),
            Has::Some(bits) => bits.as_bytes().to_vec(),
            Has::Nothing | Has::Early { .. } => Bitfield::new(pieces).as_bytes().to_vec(),
        }
    }

    /// Whether it may be asked for blocks of the piece now.
    pub(crate) fn serves(&self, piece: u32) -> bool {
        !self.is_choking_us || self.allowed_fast.contains(&piece)
    }

    /// Whether a block belongs to the piece that it may finish although peers are no longer served.
    pub(crate) fn finishes(&self, block: Block) -> bool {
        let waiting: u32 = self.uploads.iter().map(|block| block.length).sum();
        self.sent == Some(block.piece) && waiting + block.length <= self.allowance
    }

    pub(crate) fn allow_fast(&mut self, piece: u32) {
        if self.allowed_fast.len() < MAX_ALLOWED_FAST && !self.allowed_fast.contains(&piece) {
            self.allowed_fast.push(piece);
        }
    }

    /// Keeps a piece that was announced before the number of pieces is known. Returns whether there was room.
    pub(crate) fn keep_early(&mut self, piece: u32) -> bool {
        if let Has::Nothing = self.has {
            self.has = Has::Early {
                bits: Vec::new(),
                pieces: Vec::new(),
            };
        }
        let Has::Early { pieces, .. } = &mut self.has else {
            return true;
        };
        if pieces.len() == MAX_EARLY_HAVES {
            return false;
        }
        pieces.push(piece);
        true
    }

    /// A block arrived: more may be on the way next time.
    pub(crate) fn received(&mut self, bytes: u32, now: Duration) {
        self.down.add(u64::from(bytes));
        self.last_data = now;
        if self.is_snubbing {
            self.is_snubbing = false;
            self.pipeline = FIRST_PIPELINE;
        } else {
            // Doubles once per round trip until the peer's rate is known, as TCP does.
            self.pipeline = (self.pipeline + 1).min(self.most_open());
        }
    }

    fn most_open(&self) -> u32 {
        MAX_PIPELINE.min(self.queue)
    }

    /// Measures the rates, and fits the open requests to them.
    pub(crate) fn tick(&mut self, elapsed: Duration) {
        self.down.tick(elapsed);
        self.up.tick(elapsed);
        let blocks = self.down.per_second() * PIPELINE_TIME / u64::from(BLOCK_BYTES);
        let wanted = u32::try_from(blocks).unwrap_or(u32::MAX).saturating_add(FIRST_PIPELINE);
        if !self.is_snubbing {
            self.pipeline = self.pipeline.min(wanted).clamp(2, self.most_open().max(2));
        }
    }
}
