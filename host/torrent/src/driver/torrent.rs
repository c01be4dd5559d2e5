//! One torrent: its life from metadata to seeding, on one lane.
//!
//! ```text
//! Metadata ──► Checking ──► Downloading ──► Seeding
//!     │            │             │             │        (pause, failure, remove from each of them)
//!     └────────────┴──────► Paused · Failed ◄──┘ ──resume──► Checking or where it was
//! ```

mod dialing;
mod files;
mod life;
mod views;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use egress::Pins;
use metainfo::Info;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;
use transfer::{Failure, FailureKind, SafeUrl};

use super::{
    checking::Beginning,
    core::{Disk, Parts, Report, Shared},
    environment::Environment,
};
use crate::{
    bitfield::Bitfield,
    config::{Content, Order, TorrentSpec},
    handle::Command,
    heart::{self, Input, Priority},
    storage::{Storage, Target, resume::ResumeFile},
    view::{Event, EventKind, Status, TorrentView},
    webseed::Webseed,
};

/// How often rates, choking and the view are brought up to date while there are peers.
const TICK: Duration = Duration::from_secs(1);

/// A torrent.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about its life")]
struct Torrent {
    session: Arc<Environment>,
    shared: Shared,
    view: watch::Sender<Arc<TorrentView>>,
    status: Status,
    /// Everything about it, once that is known.
    info: Option<Info>,
    info_hash: metainfo::InfoHash,
    beginning: Beginning,
    stops_after_metadata: bool,
    metadata_timeout: Option<Duration>,
    /// When the search for metadata began.
    started: Instant,
    priorities: Vec<Priority>,
    order: Order,
    upload_slots: usize,
    max_peers: usize,
    webseeds: Vec<Webseed>,
    /// Where names of web servers led.
    pins: Arc<Pins>,
    proxy: Option<Arc<SafeUrl>>,
    /// The files, once they were opened.
    storage: Option<Arc<Storage>>,
    resume: Arc<Mutex<ResumeFile>>,
    /// What is there, while no peers are served.
    have: Bitfield,
    /// Pieces that are missing of each file.
    file_missing: Vec<u32>,
    /// Files that are being finished.
    finishing: usize,
    /// The last wanted piece is there.
    is_finished: bool,
    /// Completion was announced.
    is_completed: bool,
    checked: Arc<AtomicU32>,
    /// Cancels what belongs to the current run.
    run: CancellationToken,
    wanted_bytes: u64,
    done_bytes: u64,
    rates: views::Rates,
    dialing: usize,
}

/// Whether the torrent stays.
enum Flow {
    Stay,
    End,
}

/// Runs a torrent until it is removed or the session ends.
pub(super) async fn run(
    session: Arc<Environment>,
    spec: Box<TorrentSpec>,
    mut commands: mpsc::Receiver<Box<Command>>,
    view: watch::Sender<Arc<TorrentView>>,
) {
    let is_paused = spec.is_paused;
    let mut torrent = Torrent::new(session, *spec, view);
    if is_paused {
        torrent.publish();
    } else {
        Box::pin(torrent.start()).await;
    }
    let stop = torrent.session.stop.clone();
    let reported = torrent.shared.with(|core| std::rc::Rc::clone(&core.reported));
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let flow = tokio::select! {
            biased;
            () = stop.cancelled() => Flow::End,
            () = reported.notified() => {
                // In boxes of their own: a torrent that seeds rarely needs their room.
                Box::pin(torrent.handle_reports()).await;
                Flow::Stay
            }
            command = commands.recv() => match command {
                Some(command) => Box::pin(torrent.command(*command)).await,
                None => Flow::End,
            },
            // A torrent without peers has nothing to do once a second: 500 idle ones cost no timers.
            _ = ticks.tick(), if torrent.is_busy() => {
                torrent.tick();
                Flow::Stay
            }
        };
        if matches!(flow, Flow::End) {
            break;
        }
    }
    Box::pin(torrent.end()).await;
}

impl Torrent {
    fn new(session: Arc<Environment>, spec: TorrentSpec, view: watch::Sender<Arc<TorrentView>>) -> Self {
        let info_hash = spec.content.info_hash();
        let info = match spec.content {
            Content::Info(info) => Some(info),
            Content::Hash(_) => None,
        };
        let is_private = info.as_ref().is_some_and(Info::is_private);
        let seed = u64::from_le_bytes(std::array::from_fn(|index| session.peer_id[12 + index]));
        let shared = Shared::new(Parts {
            config: heart::Config {
                info_hash,
                peer_id: session.peer_id,
                upload_slots: spec.upload_slots,
                seed,
                is_private,
                is_exchange_on: session.is_exchange_on.load(Ordering::Relaxed),
                serves: spec.most_uploaded != Some(0),
            },
            budget: session.budget.clone(),
            // Behind a proxy nobody can connect to us, and the port would only tell who we are.
            port: session.port.filter(|_| spec.proxy.is_none()),
            reach: spec.reach,
            down: spec.download,
            up: spec.upload,
            most_uploaded: spec.most_uploaded,
        });
        let resume = ResumeFile::new(&session.state_directory, info_hash);
        Self {
            shared,
            view,
            status: Status::Paused,
            info,
            info_hash,
            beginning: Beginning {
                target: Target {
                    directory: spec.directory,
                    name: spec.name,
                    paths: spec.paths,
                },
                uses_existing: spec.uses_existing,
                is_rechecked: spec.is_rechecked,
                is_seed_only: spec.is_seed_only,
            },
            stops_after_metadata: spec.stops_after_metadata,
            metadata_timeout: spec.metadata_timeout,
            started: Instant::now(),
            priorities: spec.priorities,
            order: spec.order,
            upload_slots: spec.upload_slots,
            max_peers: spec.max_peers,
            webseeds: spec.webseeds,
            pins: Arc::default(),
            proxy: spec.proxy.map(Arc::new),
            storage: None,
            resume: Arc::new(Mutex::new(resume)),
            have: Bitfield::new(0),
            file_missing: Vec::new(),
            finishing: 0,
            is_finished: false,
            is_completed: false,
            checked: Arc::default(),
            run: session.stop.child_token(),
            wanted_bytes: 0,
            done_bytes: 0,
            rates: views::Rates::default(),
            dialing: 0,
            session,
        }
    }

    fn is_active(&self) -> bool {
        matches!(self.status, Status::Metadata | Status::Downloading | Status::Seeding)
    }

    /// Whether there is something to do once a second.
    fn is_busy(&self) -> bool {
        match self.status {
            Status::Metadata | Status::Checking | Status::Downloading => true,
            Status::Seeding => {
                self.shared
                    .with(|core| !core.links.is_empty() || core.candidates.are_any(true))
                    || self.rates.are_set()
            }
            Status::Paused | Status::Failed(_) | Status::Removed => false,
        }
    }

    fn set_status(&mut self, status: Status) {
        if self.status != status {
            self.status = status;
            self.emit(match &self.status {
                Status::Failed(failure) => EventKind::Failed(failure.clone()),
                status => EventKind::Status(status.clone()),
            });
        }
        self.publish();
    }

    fn emit(&self, kind: EventKind) {
        let event = Event {
            info_hash: self.info_hash,
            kind,
        };
        // Without subscribers there is nobody to tell.
        let _unheard = self.session.events.send(event);
    }

    /// The most connections.
    fn most_peers(&self) -> usize {
        self.max_peers.min(self.session.per_torrent.load(Ordering::Relaxed))
    }

    /// Takes note of whether peers may tell each other addresses.
    fn note_exchange(&self) {
        let is_on = self.session.is_exchange_on.load(Ordering::Relaxed);
        self.shared.with(|core| core.state.config.is_exchange_on = is_on);
    }

    fn tick(&mut self) {
        self.note_exchange();
        if self.is_active() {
            self.shared.apply(Input::Tick);
            self.dial();
        }
        if let (Status::Metadata, Some(limit)) = (&self.status, self.metadata_timeout)
            && self.started.elapsed() > limit
        {
            let (peers, sources) = self
                .shared
                .with(|core| (core.links.len(), core.state.metadata_sources()));
            let message = format!(
                "the metadata of the magnet link did not arrive within {} s: {peers} peers are connected, {sources} of them \
                 offer it",
                limit.as_secs()
            );
            self.shared
                .report(Report::Failed(Failure::new(FailureKind::Timeout, message)));
        }
        self.rates
            .tick(self.shared.with(|core| (core.downloaded, core.uploaded)));
        self.publish();
    }

    async fn command(&mut self, command: Command) -> Flow {
        match command {
            Command::Join(incoming) => self.accept(incoming),
            Command::AddPeers(peers, source, reach) => self.add_peers(&peers, source, reach),
            Command::AddWebseeds(urls) => self.add_webseeds(urls),
            Command::Select(priorities, reply) => drop(reply.send(self.select(priorities).await)),
            Command::SetOrder(order) => {
                self.order = order;
                self.apply_wanted(Vec::new());
            }
            Command::SetUploadSlots(slots) => {
                self.upload_slots = slots;
                self.shared.with(|core| core.state.config.upload_slots = slots);
            }
            Command::SetMaxPeers(peers) => self.max_peers = peers,
            Command::SetLimits { download, upload } => {
                self.shared.with(|core| (core.down, core.up) = (download, upload));
            }
            Command::SetMostUploaded(bytes) => self.shared.set_most_uploaded(bytes),
            Command::Pause(reply) => {
                let paused = self.halt(Status::Paused).await;
                drop(reply.send(paused));
            }
            Command::Resume(reply) => {
                if matches!(self.status, Status::Paused | Status::Failed(_)) {
                    self.start().await;
                }
                drop(reply.send(Ok(())));
            }
            Command::Recheck(reply) => drop(reply.send(self.recheck().await)),
            Command::Rename(file, path, reply) => drop(reply.send(self.rename(file, path).await)),
            Command::RenameTop(name, reply) => drop(reply.send(self.rename_top(name).await)),
            Command::Close(reply) => {
                drop(reply.send(self.close().await));
                return Flow::End;
            }
            Command::Remove { deletes_files, reply } => {
                drop(reply.send(self.remove(deletes_files).await));
                return Flow::End;
            }
            Command::Peers(reply) => drop(reply.send(self.peers())),
            Command::Files(reply) => drop(reply.send(self.files())),
            Command::Pieces(reply) => drop(reply.send(self.pieces())),
        }
        Flow::Stay
    }

    async fn handle_reports(&mut self) {
        let mut reports = 0;
        while let Some(report) = self.shared.with(|core| core.reports.pop_front()) {
            reports += 1;
            match report {
                Report::Got(piece) => self.got(piece),
                Report::Finished => {
                    self.is_finished = true;
                    self.complete_if_ready().await;
                }
                Report::Metadata(info) => self.metadata_known(info).await,
                Report::Failed(failure) => self.fail(failure).await,
                Report::Checked(result) => self.checked(result).await,
                Report::FileFinished(file, result) => self.file_finished(file, result).await,
            }
        }
        if self.is_active() {
            self.dial();
        }
        if reports == 0 {
            // A peer left; without any, no tick follows.
            self.publish();
        }
    }

    fn disk(&self) -> Option<Disk> {
        Some(Disk {
            storage: Arc::clone(self.storage.as_ref()?),
            resume: Arc::clone(&self.resume),
            permits: Arc::clone(&self.session.disk_permits),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, B, C, D, F>(_future_of: impl FnOnce(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    /// Each torrent has one of them, and hundreds seed at the same time.
    #[test]
    fn a_torrent_that_only_seeds_takes_little_memory() {
        let bytes = size(run);
        assert!(bytes <= 1024, "{bytes}");
    }
}
