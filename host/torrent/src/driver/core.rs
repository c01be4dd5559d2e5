//! A torrent's state and what performs its effects. All of it is used by one thread.

use std::{
    cell::RefCell,
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use egress::peer::PeerReach;
use metainfo::Info;
use tokio::sync::{Notify, Semaphore};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use transfer::{Failure, RateLimits};

use super::{
    buffers::{Budget, Buffer, Buffers},
    candidates::Candidates,
    limits::MAX_OUTBOX_BYTES,
};
use crate::{
    config::PeerSource,
    geometry::Block,
    heart::{self, CloseReason, Effect, Input, Joined, PeerId, State, ban::Suspect},
    storage::{Storage, resume::ResumeFile},
    wire::{
        extension::{self, OurHandshake},
        message::{self, Limits, Message},
    },
};

/// What a torrent's state is used through.
#[derive(Debug, Clone)]
pub(super) struct Shared(Rc<RefCell<Core>>);

/// What happened that the torrent's task has to handle.
#[derive(Debug)]
pub(super) enum Report {
    Got(u32),
    Finished,
    Metadata(Info),
    Failed(Failure),
    /// Files that were checked, and which pieces are right.
    Checked(Result<crate::bitfield::Bitfield, Failure>),
    FileFinished(usize, Result<(), Failure>),
}

/// What connects the state to a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) outbox: Vec<u8>,
    pub(super) wake: Rc<Notify>,
    pub(super) closed: CancellationToken,
    pub(super) address: SocketAddr,
    pub(super) is_incoming: bool,
    was_useful: bool,
    reason: Option<CloseReason>,
    /// For a web server, the requests instead of their messages.
    requests: Option<VecDeque<Block>>,
}

/// What the threads that hash and write need.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) storage: Arc<Storage>,
    pub(super) resume: Arc<Mutex<ResumeFile>>,
    /// Bounds the threads of a session that hash and write.
    pub(super) permits: Arc<Semaphore>,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) started: Instant,
    pub(super) state: State,
    pub(super) disk: Option<Disk>,
    pub(super) links: BTreeMap<PeerId, Link>,
    pub(super) candidates: Candidates,
    pub(super) buffers: Buffers,
    pub(super) budget: Budget,
    /// Pieces that are being hashed and written.
    pub(super) jobs: usize,
    pub(super) room: Rc<Notify>,
    pub(super) reports: VecDeque<Report>,
    pub(super) reported: Rc<Notify>,
    pub(super) tasks: TaskTracker,
    /// Told apart by every start and stop, so that results of an earlier run are dropped.
    pub(super) generation: u64,
    /// Port on which the session accepts peers.
    pub(super) port: Option<u16>,
    pub(super) reach: PeerReach,
    pub(super) down: RateLimits,
    pub(super) up: RateLimits,
    pub(super) downloaded: u64,
    pub(super) uploaded: u64,
    most_uploaded: Option<u64>,
    /// Connections that are being made.
    pub(super) dialing: Rc<std::cell::Cell<usize>>,
    next_peer: u64,
    effects: Vec<Effect>,
}

/// What becomes of a block that begins to arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// In the buffer of its piece.
    Memory,
    /// It is written when it is here.
    Disk,
    /// Nobody needs it.
    Nothing,
}

/// What a torrent is made of.
pub(super) struct Parts {
    pub(super) config: heart::Config,
    pub(super) budget: Budget,
    pub(super) port: Option<u16>,
    pub(super) reach: PeerReach,
    pub(super) down: RateLimits,
    pub(super) up: RateLimits,
    pub(super) most_uploaded: Option<u64>,
}

impl Shared {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Rc::new(RefCell::new(Core {
            started: Instant::now(),
            state: State::new(parts.config),
            disk: None,
            links: BTreeMap::new(),
            candidates: Candidates::default(),
            buffers: Buffers::new(parts.budget.clone()),
            budget: parts.budget,
            jobs: 0,
            room: Rc::default(),
            reports: VecDeque::new(),
            reported: Rc::default(),
            tasks: TaskTracker::new(),
            generation: 0,
            port: parts.port,
            reach: parts.reach,
            down: parts.down,
            up: parts.up,
            downloaded: 0,
            uploaded: 0,
            most_uploaded: parts.most_uploaded,
            dialing: Rc::default(),
            next_peer: 0,
            effects: Vec::new(),
        })))
    }

    /// Reads or changes the state. Never across an await.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut Core) -> T) -> T {
        action(&mut self.0.borrow_mut())
    }

    /// Applies an input, and performs its effects.
    pub(super) fn apply(&self, input: Input<'_>) {
        let checks = self.with(|core| {
            let now = core.now();
            let mut effects = std::mem::take(&mut core.effects);
            core.state.apply(now, input, &mut effects);
            let mut checks = Vec::new();
            for effect in effects.drain(..) {
                core.perform(effect, &mut checks);
            }
            core.effects = effects;
            checks
        });
        for check in checks {
            match check {
                Check::Piece(piece) => self.check_piece(piece),
                Check::Metadata(bytes, suspects) => self.check_metadata(&bytes, suspects),
            }
        }
    }

    pub(super) fn report(&self, report: Report) {
        self.with(|core| core.report(report));
    }

    /// Adds a connection whose handshakes were exchanged.
    pub(super) fn join(&self, joined: Joined) -> (PeerId, Rc<Notify>, CancellationToken) {
        self.add(joined, None)
    }

    /// Adds a web server; [`Core::take_web_requests`] returns what it is asked for.
    pub(super) fn join_web(&self, joined: Joined) -> (PeerId, Rc<Notify>, CancellationToken) {
        self.add(joined, Some(VecDeque::new()))
    }

    fn add(&self, joined: Joined, requests: Option<VecDeque<Block>>) -> (PeerId, Rc<Notify>, CancellationToken) {
        let (id, wake, closed) = self.with(|core| {
            let id = PeerId(core.next_peer);
            core.next_peer += 1;
            let (wake, closed) = (Rc::new(Notify::new()), CancellationToken::new());
            core.links.insert(
                id,
                Link {
                    outbox: Vec::new(),
                    wake: Rc::clone(&wake),
                    closed: closed.clone(),
                    address: joined.address,
                    is_incoming: joined.is_incoming,
                    was_useful: false,
                    reason: None,
                    requests,
                },
            );
            (id, wake, closed)
        });
        self.apply(Input::Joined(id, joined));
        // A torrent that had no peers has no timer until it looks again.
        self.with(|core| core.reported.notify_one());
        (id, wake, closed)
    }

    /// A block was sent to a peer.
    pub(super) fn uploaded(&self, id: PeerId, bytes: u32) {
        self.with(|core| core.uploaded += u64::from(bytes));
        self.apply(Input::Uploaded(id, bytes));
        self.limit_uploads();
    }

    pub(super) fn set_most_uploaded(&self, bytes: Option<u64>) {
        self.with(|core| core.most_uploaded = bytes);
        self.limit_uploads();
    }

    /// Stops serving peers once the most that is to be uploaded is, and begins again when that grew.
    fn limit_uploads(&self) {
        let (serves, served) = self.with(|core| {
            let serves = core.most_uploaded.is_none_or(|most| core.uploaded < most);
            (serves, core.state.config.serves)
        });
        if serves != served {
            self.apply(Input::Serve(serves));
        }
    }

    /// A connection ended.
    pub(super) fn leave(&self, id: PeerId) {
        self.with(|core| {
            let peer = core.state.peers().find(|(known, _)| *known == id);
            if let Some(address) = peer
                .filter(|(_, peer)| peer.is_seed())
                .and_then(|(_, peer)| peer.listens_on)
            {
                core.candidates.note_seed(address);
            }
        });
        self.apply(Input::Left(id));
        self.with(|core| {
            let Some(link) = core.links.remove(&id) else {
                return;
            };
            if link.is_incoming {
                return;
            }
            match link.reason {
                // The torrent stops: the peer did nothing wrong.
                None if link.closed.is_cancelled() => {}
                Some(CloseReason::Banned | CloseReason::Violation(_) | CloseReason::Ourselves) => {
                    core.candidates.ban(link.address);
                }
                reason => {
                    if reason == Some(CloseReason::Useless) {
                        core.candidates.note_seed(link.address);
                    }
                    core.candidates.ended(link.address, link.was_useful, core.now());
                }
            }
        });
        self.with(|core| core.reported.notify_one());
    }

    /// Hashes a complete piece, and writes it if it is right.
    fn check_piece(&self, piece: u32) {
        let taken = self.with(|core| {
            let buffer = core.buffers.take(piece)?;
            core.jobs += 1;
            Some((buffer, core.disk.clone()?, core.generation, core.tasks.clone()))
        });
        let Some((buffer, disk, generation, tasks)) = taken else {
            return;
        };
        let shared = self.clone();
        tasks.spawn_local(async move {
            let permit = Arc::clone(&disk.permits).acquire_owned().await;
            let working = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let result = store(&disk, piece, &buffer);
                (result, buffer)
            });
            let (result, buffer) = working.await.expect("hashing and writing do not panic");
            let is_current = shared.with(|core| {
                core.jobs -= 1;
                if let Buffer::Memory(bytes) = buffer {
                    core.buffers.recycle(bytes);
                }
                core.room.notify_waiters();
                core.generation == generation
            });
            match result {
                _ if !is_current => {}
                Ok(is_right) => shared.apply(Input::Checked { piece, is_right }),
                Err(failure) => shared.report(Report::Failed(failure)),
            }
        });
    }

    fn check_metadata(&self, bytes: &[u8], suspects: Vec<Suspect>) {
        let hash = self.with(|core| core.state.config.info_hash);
        match Info::parse_expecting(bytes, hash) {
            Ok(info) => {
                self.apply(Input::MetadataChecked {
                    is_right: true,
                    suspects,
                });
                self.report(Report::Metadata(info));
            }
            Err(metainfo::MetainfoError::WrongHash) => self.apply(Input::MetadataChecked {
                is_right: false,
                suspects,
            }),
            // It is what the link asked for, and cannot be downloaded.
            Err(error) => {
                let failure = Failure::new(transfer::FailureKind::InvalidSource, error.to_string());
                self.report(Report::Failed(failure));
            }
        }
    }
}

/// Hashes a piece, writes it if it is right, and records that.
fn store(disk: &Disk, piece: u32, buffer: &Buffer) -> Result<bool, Failure> {
    let storage = &disk.storage;
    let is_right = match buffer {
        Buffer::Memory(bytes) => {
            let is_right = storage.is_right(piece, bytes);
            if is_right {
                storage.write(storage.geometry().offset(piece), bytes)?;
            }
            is_right
        }
        Buffer::Disk => storage.is_right_on_disk(piece, &mut Vec::new())?,
    };
    if is_right {
        let mut resume = disk.resume.lock().unwrap_or_else(PoisonError::into_inner);
        resume
            .append_piece(piece)
            .map_err(|error| Failure::disk("write the record of", &storage.top(), &error))?;
    }
    Ok(is_right)
}

/// What hashing takes place for, after the effects of an input.
enum Check {
    Piece(u32),
    Metadata(Vec<u8>, Vec<Suspect>),
}

impl Core {
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Remembers where the peers that connected to us accept connections: the torrent stops, and continues with them.
    pub(super) fn keep_addresses(&mut self) {
        let known: Vec<_> = self.state.peers().filter_map(|(_, peer)| peer.listens_on).collect();
        for address in known {
            self.candidates.add(address, PeerSource::Incoming, self.reach);
        }
    }

    pub(super) fn report(&mut self, report: Report) {
        self.reports.push_back(report);
        self.reported.notify_one();
    }

    /// What the sizes of a peer's messages depend on.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            pieces: self.disk.as_ref().map(|disk| disk.storage.geometry().pieces()),
        }
    }

    fn perform(&mut self, effect: Effect, checks: &mut Vec<Check>) {
        match effect {
            Effect::Send(id, message) => self.send(id, message),
            Effect::SendHave(id) => self.send_have(id),
            Effect::SendExtensions(id) => self.send_extensions(id),
            Effect::SendExtended(id, number, content) => self.send(id, Message::Extended(number, &content)),
            Effect::Upload(id) => {
                if let Some(link) = self.links.get(&id) {
                    link.wake.notify_one();
                }
            }
            Effect::Close(id, reason) => self.close(id, reason),
            Effect::Check(piece) => checks.push(Check::Piece(piece)),
            Effect::Discard(piece) => self.buffers.discard(piece),
            Effect::CheckMetadata(bytes, suspects) => checks.push(Check::Metadata(bytes, suspects)),
            Effect::Got(piece) => self.report(Report::Got(piece)),
            Effect::Finished => self.report(Report::Finished),
            Effect::Found(addresses) => {
                for address in addresses {
                    self.candidates.add(address, PeerSource::Exchange, self.reach);
                }
                self.reported.notify_one();
            }
            Effect::Banned(address) => {
                tracing::info!(peer = %address, "a peer is banned: it sent a wrong piece");
            }
        }
    }

    fn close(&mut self, id: PeerId, reason: CloseReason) {
        if let Some(link) = self.links.get_mut(&id) {
            tracing::debug!(peer = %link.address, ?reason, "a connection to a peer is closed");
            link.reason.get_or_insert(reason);
            link.closed.cancel();
        }
    }

    fn send(&mut self, id: PeerId, message: Message<'_>) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        if let Some(requests) = &mut link.requests {
            match message {
                Message::Request(block) => requests.push_back(block),
                Message::Cancel(block) => requests.retain(|request| *request != block),
                _ => {}
            }
            link.wake.notify_one();
            return;
        }
        if link.outbox.len() > MAX_OUTBOX_BYTES {
            self.close(id, CloseReason::Silent);
            return;
        }
        message::encode(message, &mut link.outbox);
        link.wake.notify_one();
    }

    fn send_have(&mut self, id: PeerId) {
        let is_fast = self.state.features(id).is_some_and(|features| features.fast);
        let Some(have) = self.state.served() else {
            if is_fast {
                self.send(id, Message::HaveNone);
            }
            return;
        };
        if is_fast && have.is_full() && have.len() > 0 {
            self.send(id, Message::HaveAll);
        } else if have.count() > 0 {
            self.send(id, Message::Bitfield(have.as_bytes()));
        } else if is_fast {
            self.send(id, Message::HaveNone);
        }
    }

    fn send_extensions(&mut self, id: PeerId) {
        let Some(link) = self.links.get(&id) else {
            return;
        };
        let info = self.disk.as_ref().map(|disk| &disk.storage.info);
        let ours = OurHandshake {
            metadata_bytes: info.map(|info| info.raw().len()),
            port: self.port,
            exchanges_peers: self.state.config.exchanges_peers(),
            is_upload_only: self.state.is_finished(),
            your_address: link.address.ip(),
        };
        self.send(id, Message::Extended(extension::HANDSHAKE, &ours.encode()));
    }

    /// Says what becomes of a block that begins to arrive.
    pub(super) fn begin_block(&mut self, id: PeerId, block: Block) -> Result<Keep, CloseReason> {
        let now = self.now();
        if !self.state.begin_block(now, id, block)? {
            return Ok(Keep::Nothing);
        }
        let Some(disk) = &self.disk else {
            return Ok(Keep::Nothing);
        };
        let length = disk.storage.geometry().length(block.piece);
        Ok(match self.buffers.get(block.piece, length) {
            Buffer::Memory(_) => Keep::Memory,
            Buffer::Disk => Keep::Disk,
        })
    }

    /// Where the data of a block goes that arrives from this peer; `None` if it is no longer to be kept.
    pub(super) fn memory(&mut self, id: PeerId, block: Block) -> Option<&mut [u8]> {
        if !self.state.is_arriving(id, block) {
            return None;
        }
        let begin = block.begin as usize;
        let piece = self.buffers.memory(block.piece)?;
        piece.get_mut(begin..begin + block.length as usize)
    }

    /// The longest run of blocks that follow each other among what a web server is asked for.
    pub(super) fn take_web_requests(&mut self, id: PeerId) -> VecDeque<Block> {
        let geometry = self.disk.as_ref().map(|disk| disk.storage.geometry());
        let requests = self.links.get_mut(&id).and_then(|link| link.requests.as_mut());
        let (Some(geometry), Some(requests)) = (geometry, requests) else {
            return VecDeque::new();
        };
        let start = |block: &Block| geometry.offset(block.piece) + u64::from(block.begin);
        let mut run = VecDeque::new();
        let mut next = None;
        while let Some(block) = requests
            .front()
            .filter(|block| next.is_none_or(|next| start(block) == next))
        {
            next = Some(start(block) + u64::from(block.length));
            run.extend(requests.pop_front());
        }
        run
    }

    /// The data of a block is here.
    pub(super) fn note_useful(&mut self, id: PeerId, bytes: u32) {
        self.downloaded += u64::from(bytes);
        if let Some(link) = self.links.get_mut(&id) {
            link.was_useful = true;
        }
    }
}
