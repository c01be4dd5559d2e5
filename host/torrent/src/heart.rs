//! A torrent and its peers, as a pure function: what happened goes in, what is to be done comes out. No clock, no input or
//! output; times are durations since the session began.

pub(crate) mod active;
pub(crate) mod ban;
pub(crate) mod choke;
mod exchange;
mod have;
pub(crate) mod metadata;
pub(crate) mod peer;
pub(crate) mod picker;
mod requests;
mod upload;

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use metainfo::InfoHash;

pub(crate) use self::peer::PeerId;
pub use self::picker::Priority;
use self::{
    active::ActivePieces,
    ban::{Bans, Suspect},
    choke::Choker,
    metadata::Fetch,
    peer::Peer,
    picker::Picker,
};
use crate::{
    bitfield::Bitfield,
    geometry::{Block, Geometry},
    wire::{handshake::Features, message::Message},
};

/// The most requests that are open with one peer: 8 MiB, which hides a round trip of 60 ms at a gigabit per second.
pub(crate) const MAX_PIPELINE: u32 = 512;

/// The most requests that are open with all peers together. Bounds the memory for blocks that arrive.
pub(crate) const MAX_PIPELINES: u32 = 1024;

/// What happened.
#[derive(Debug)]
pub(crate) enum Input<'a> {
    /// A connection was made, and both sides sent their handshakes.
    Joined(PeerId, Joined),
    Left(PeerId),
    /// A message, except blocks.
    Said(PeerId, Message<'a>),
    /// The data of a block that [`State::begin_block`] accepted is here.
    Arrived(PeerId, Block),
    /// A block was sent to a peer.
    Uploaded(PeerId, u32),
    /// A piece was read again and hashed.
    Checked {
        piece: u32,
        is_right: bool,
    },
    /// The hash of collected metadata.
    MetadataChecked {
        is_right: bool,
        suspects: Vec<Suspect>,
    },
    /// The number of pieces is known, and what is on the disk.
    Opened(Opened),
    /// The user wants other pieces, or in another order. One priority per piece, and whether it comes first.
    Wanted(Wanted),
    /// Pieces are no longer served: parts of them that belong to unwanted files are no longer kept.
    Withheld(Vec<u32>),
    /// Whether peers are served. Those that are may finish their piece.
    Serve(bool),
    /// Once a second while there are peers.
    Tick,
}

/// A peer that joined.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) address: SocketAddr,
    pub(crate) is_incoming: bool,
    pub(crate) peer_id: [u8; 20],
    pub(crate) features: Features,
}

/// The pieces of a torrent.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) geometry: Geometry,
    pub(crate) have: Bitfield,
    /// The info dictionary, for peers that ask for it.
    pub(crate) info: metainfo::Info,
    pub(crate) wanted: Wanted,
}

/// Which pieces the user wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// One per piece, and whether it comes before all others.
    pub(crate) priorities: Vec<(Priority, bool)>,
    pub(crate) is_sequential: bool,
    /// Pieces that are no longer there.
    pub(crate) lost: Vec<u32>,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Send(PeerId, Message<'static>),
    /// Say which pieces we have.
    SendHave(PeerId),
    /// Our handshake of the extension protocol.
    SendExtensions(PeerId),
    SendExtended(PeerId, u8, Vec<u8>),
    /// There are blocks to upload to this peer.
    Upload(PeerId),
    Close(PeerId, CloseReason),
    /// All blocks of the piece are here: hash it, and write it if it is right.
    Check(u32),
    /// What is here of the piece is not needed.
    Discard(u32),
    /// The metadata is complete; only its hash shows whether it is right.
    CheckMetadata(Vec<u8>, Vec<Suspect>),
    /// A piece is here and right.
    Got(u32),
    /// Every wanted piece is here.
    Finished,
    /// Peers that other peers know.
    Found(Vec<SocketAddr>),
    /// A peer sent a wrong piece.
    Banned(SocketAddr),
}

/// Why we close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CloseReason {
    /// It broke the protocol in this respect.
    Violation(Violation),
    Banned,
    /// It is connected already.
    Duplicate,
    Ourselves,
    /// It said nothing for too long.
    Silent,
    /// Both sides have everything.
    Useless,
}

/// What no correct client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Violation {
    /// What it has was said twice, too late, or about pieces that do not exist.
    Pieces,
    /// A request of what does not exist.
    Request,
    /// More requests at once than we accept.
    RequestFlood,
    /// Blocks that nobody asked for.
    UnaskedData,
    /// Metadata that nobody asked for, or more requests of it than make sense.
    Metadata,
    /// A message of an extension that was not agreed on, or malformed.
    Extension,
    /// Addresses more often than BEP 11 allows.
    Exchange,
    /// A message of an extension that the handshake did not announce.
    NotSupported,
}

/// What a torrent is started with.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent of each other")]
pub(crate) struct Config {
    pub(crate) info_hash: InfoHash,
    /// Our identity in this torrent.
    pub(crate) peer_id: [u8; 20],
    /// Peers that are served at once.
    pub(crate) upload_slots: usize,
    /// Chooses among equally rare pieces.
    pub(crate) seed: u64,
    /// Its peers come from its trackers alone.
    pub(crate) is_private: bool,
    /// Peers may tell each other addresses, unless it is private.
    pub(crate) is_exchange_on: bool,
    /// Peers are served.
    pub(crate) serves: bool,
}

impl Config {
    pub(crate) fn exchanges_peers(self) -> bool {
        self.is_exchange_on && !self.is_private
    }
}

/// A torrent.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Config,
    now: Duration,
    last_tick: Duration,
    rechoked: Duration,
    peers: BTreeMap<PeerId, Peer>,
    bans: Bans,
    choker: Choker,
    fetch: Option<Fetch>,
    pieces: Option<Pieces>,
    /// Blocks that all peers owe us.
    asked: u32,
    /// Bytes that arrived and were of no use: duplicates and wrong pieces.
    pub(crate) wasted: u64,
}

/// What is known once the metadata is.
#[derive(Debug)]
struct Pieces {
    geometry: Geometry,
    info: metainfo::Info,
    have: Bitfield,
    /// Pieces that we have and do not serve.
    withheld: Bitfield,
    picker: Picker,
    active: ActivePieces,
    /// Pieces that are complete and being checked.
    checking: BTreeMap<u32, Vec<Suspect>>,
    /// Wanted pieces that are missing.
    missing: u32,
    /// Peers that have everything.
    seeds: u32,
    is_finished: bool,
}

impl State {
    /// A torrent whose metadata is to be fetched, until [`Input::Opened`].
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            now: Duration::ZERO,
            last_tick: Duration::ZERO,
            rechoked: Duration::ZERO,
            peers: BTreeMap::new(),
            bans: Bans::default(),
            choker: Choker::default(),
            fetch: Some(Fetch::default()),
            pieces: None,
            asked: 0,
            wasted: 0,
        }
    }

    /// Takes note of what happened at `now`.
    pub(crate) fn apply(&mut self, now: Duration, input: Input<'_>, effects: &mut Vec<Effect>) {
        self.now = now;
        match input {
            Input::Joined(peer, joined) => self.join(peer, &joined, effects),
            Input::Left(peer) => self.leave(peer, effects),
            Input::Said(peer, message) => {
                if let Err(reason) = self.hear(peer, message, effects) {
                    effects.push(Effect::Close(peer, reason));
                }
            }
            Input::Arrived(peer, block) => self.block_arrived(peer, block, effects),
            Input::Uploaded(id, bytes) => {
                if let Some(peer) = self.peers.get_mut(&id) {
                    peer.up.add(u64::from(bytes));
                    peer.last_said = now;
                }
                self.choke_if_served(id, effects);
            }
            Input::Checked { piece, is_right } => self.piece_checked(piece, is_right, effects),
            Input::MetadataChecked { is_right, suspects } => self.metadata_checked(is_right, &suspects, effects),
            Input::Opened(opened) => self.open(opened, effects),
            Input::Wanted(wanted) => self.want(&wanted, effects),
            Input::Withheld(pieces) => {
                if let Some(known) = &mut self.pieces {
                    for piece in pieces {
                        known.withheld.insert(piece);
                    }
                }
            }
            Input::Serve(serves) => self.serve(serves, effects),
            Input::Tick => self.tick(effects),
        }
    }

    /// What a peer supports.
    pub(crate) fn features(&self, id: PeerId) -> Option<Features> {
        self.peers.get(&id).map(|peer| peer.features)
    }

    /// The pieces that peers may ask for, once their number is known.
    pub(crate) fn served(&self) -> Option<Bitfield> {
        let pieces = self.pieces.as_ref()?;
        let mut served = pieces.have.clone();
        for piece in pieces.withheld.iter() {
            served.remove(piece);
        }
        Some(served)
    }

    /// The pieces that are here.
    pub(crate) fn have(&self) -> Option<&Bitfield> {
        self.pieces.as_ref().map(|pieces| &pieces.have)
    }

    /// Whether every wanted piece is here.
    pub(crate) fn is_finished(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.missing == 0)
    }

    /// Connected peers.
    pub(crate) fn peers(&self) -> impl Iterator<Item = (PeerId, &Peer)> {
        self.peers.iter().map(|(id, peer)| (*id, peer))
    }

    /// How many peers have each piece.
    pub(crate) fn availability(&self) -> Vec<u32> {
        let Some(pieces) = &self.pieces else {
            return Vec::new();
        };
        let each = 0..pieces.geometry.pieces();
        each.map(|piece| u32::from(pieces.picker.availability(piece)) + pieces.seeds)
            .collect()
    }

    /// Peers that said they have the metadata.
    pub(crate) fn metadata_sources(&self) -> usize {
        self.fetch.as_ref().map_or(0, Fetch::sources)
    }

    /// Peers that were banned.
    pub(crate) fn bans(&self) -> usize {
        self.bans.len()
    }

    fn join(&mut self, id: PeerId, joined: &Joined, effects: &mut Vec<Effect>) {
        let peer = Peer::new(
            joined.address,
            joined.is_incoming,
            joined.peer_id,
            joined.features,
            self.now,
        );
        let reason = if joined.peer_id == self.config.peer_id {
            Some(CloseReason::Ourselves)
        } else if self.is_connected(&peer) {
            Some(CloseReason::Duplicate)
        } else {
            self.bans.is_banned(peer.suspect()).then_some(CloseReason::Banned)
        };
        if let Some(reason) = reason {
            effects.push(Effect::Close(id, reason));
            return;
        }
        self.peers.insert(id, peer);
        effects.push(Effect::SendHave(id));
        if joined.features.extended {
            effects.push(Effect::SendExtensions(id));
        }
    }

    /// Whether it is a second connection of the same peer: from the same machine, or over the other version of IP. One of
    /// another machine may only call itself the same, to keep that peer out.
    fn is_connected(&self, new: &Peer) -> bool {
        let mut peers = self.peers.values();
        peers.any(|peer| {
            let is_same_machine =
                peer.address.ip() == new.address.ip() || peer.address.is_ipv4() != new.address.is_ipv4();
            peer.address == new.address || (peer.id == new.id && is_same_machine)
        })
    }

    fn leave(&mut self, id: PeerId, effects: &mut Vec<Effect>) {
        let Some(mut peer) = self.peers.remove(&id) else {
            return;
        };
        if let Some(fetch) = &mut self.fetch {
            fetch.leave(id);
        }
        self.release(id, &mut peer, effects);
        if let Some(pieces) = &mut self.pieces {
            pieces.active.forget(id);
            pieces.forget(&peer.has);
        }
        self.fill_all(effects);
        self.rechoke_if_free(effects);
        self.fetch_metadata(effects);
    }

    /// Judges a message, and takes note of it.
    fn hear(&mut self, id: PeerId, message: Message<'_>, effects: &mut Vec<Effect>) -> Result<(), CloseReason> {
        let Some(peer) = self.peers.get_mut(&id) else {
            return Ok(());
        };
        peer.last_heard = self.now;
        let is_fast = peer.features.fast;
        let needs_fast = matches!(
            message,
            Message::HaveAll | Message::HaveNone | Message::Reject(_) | Message::AllowedFast(_) | Message::Suggest(_)
        );
        let needs_extensions = matches!(message, Message::Extended(..)) && !peer.features.extended;
        if (needs_fast && !is_fast) || needs_extensions {
            return Err(CloseReason::Violation(Violation::NotSupported));
        }
        match message {
            Message::KeepAlive | Message::Unknown | Message::Port(_) | Message::Suggest(_) => {}
            Message::Choke => self.choked(id, effects),
            Message::Unchoke => {
                peer.is_choking_us = false;
                peer.last_data = self.now;
                self.fill(id, effects);
            }
            Message::Interested => {
                peer.is_interested = true;
                self.rechoke_if_free(effects);
            }
            Message::NotInterested => {
                peer.is_interested = false;
                self.choke(id, effects);
                self.rechoke_if_free(effects);
            }
            Message::Have(piece) => return self.peer_has(id, piece, effects),
            Message::Bitfield(bits) => return self.peer_has_set(id, Announced::Bits(bits), effects),
            Message::HaveAll => return self.peer_has_set(id, Announced::All, effects),
            Message::HaveNone => return self.peer_has_set(id, Announced::None, effects),
            Message::Request(block) => return self.requested(id, block, effects),
            Message::Cancel(block) => self.cancelled(id, block, effects),
            Message::Reject(block) => self.rejected(id, block, effects),
            Message::AllowedFast(piece) => {
                peer.allow_fast(piece);
                self.fill(id, effects);
            }
            // The driver sees it first: its data follows.
            Message::Piece(_) => {}
            Message::Extended(number, content) => return self.extended(id, number, content, effects),
        }
        Ok(())
    }

    fn tick(&mut self, effects: &mut Vec<Effect>) {
        let elapsed = self.now.saturating_sub(self.last_tick);
        self.last_tick = self.now;
        for peer in self.peers.values_mut() {
            peer.tick(elapsed);
        }
        self.check_times(effects);
        if self.now.saturating_sub(self.rechoked) >= choke::RECHOKE_EVERY {
            self.rechoke(effects);
        }
        self.exchange(effects);
        self.fetch_metadata(effects);
        self.fill_all(effects);
    }
}

/// What a peer says that it has, all at once.
#[derive(Debug, Clone, Copy)]
enum Announced<'a> {
    Bits(&'a [u8]),
    All,
    None,
}

#[cfg(test)]
mod tests;
