//! One run of the engine: a download until every wanted file is there, or seeding until it is stopped.

mod files;
mod metadata;
mod place;
mod sources;

use std::{sync::Arc, time::Duration};

use egress::{Reach, peer::PeerReach};
use metainfo::{Info, InfoHash, Magnet};
use peer_discovery::Counters;
use tokio::{
    sync::OwnedMutexGuard,
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use torrent::{Content, Order, PeerSource, Status, Torrent, TorrentSpec, TorrentView, Webseed};
use transfer::{
    Failure, FailureKind, Finished, GivenBy, Job, Outcome, Progress, Purpose, SafeUrl, Stage, TorrentOptions,
};

pub(crate) use self::place::leftovers;
use self::{
    files::{priorities, wanted_bytes},
    sources::Sources,
};
use crate::{
    session::{Open, Shared},
    swarm::{Search, Swarm, WANTED_PEERS, removed},
};

/// How long a finished download stays in its swarm for the run that seeds it.
const GRACE: Duration = Duration::from_secs(5);

/// How long an earlier run of the torrent may take to leave the session.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often progress is reported.
const REPORT_INTERVAL: Duration = Duration::from_millis(500);

/// The same of what seeds and has nothing to do.
const SEED_INTERVAL: Duration = Duration::from_mins(1);

/// For the names of peers in a magnet link, together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Peers of a magnet link that are looked up.
const MAX_NAMED_PEERS: usize = 32;

pub(crate) async fn run(shared: Arc<Shared>, job: Box<Job>) -> Outcome {
    let magnet = match job.source.urls[0].expose().parse::<Magnet>() {
        Ok(magnet) => magnet,
        Err(error) => return Outcome::Failed(Failure::new(FailureKind::InvalidSource, error.to_string())),
    };
    let torrent = magnet.info_hash;
    let stop = job.stop.clone();
    let slot = tokio::select! {
        slot = shared.slot(torrent) => slot,
        () = stop.cancelled() => return Outcome::Stopped,
    };
    let purpose = job.purpose;
    let mut run = Run {
        options: job.source.torrent.clone().unwrap_or_default(),
        shared: Arc::clone(&shared),
        job,
        magnet,
        slot,
    };
    let ended = match purpose {
        // In a box of its own: hundreds of torrents seed at the same time, and a future has room for its largest part.
        Purpose::Download | Purpose::Recheck => Box::pin(run.download()).await,
        Purpose::Seed { most_uploaded_bytes } => run.seed(most_uploaded_bytes).await,
    };
    drop(run);
    shared.forget_free_slots();
    ended.unwrap_or_else(|outcome| outcome)
}

struct Run {
    shared: Arc<Shared>,
    job: Box<Job>,
    magnet: Magnet,
    options: Arc<TorrentOptions>,
    slot: OwnedMutexGuard<Option<Swarm>>,
}

/// A step of a run that may end it.
type Step<T> = Result<T, Outcome>;

impl Run {
    fn torrent(&self) -> InfoHash {
        self.magnet.info_hash
    }

    /// Ends with the outcome of the download in either case.
    async fn download(&mut self) -> Step<Outcome> {
        if let Some(swarm) = self.slot.take() {
            swarm.close().await;
        }
        let open = self.open().await?;
        let stored = self.shared.shelf.read(self.torrent()).await.map_err(Outcome::Failed)?;
        let (metainfo, search) = match stored {
            Some(metainfo) if self.options.is_metadata_only => return Ok(metadata::described(&metainfo)),
            Some(metainfo) => (metainfo, None),
            None => self.fetch_metadata(&open).await?,
        };
        let files = self.choose_files(&metainfo.info).await?;
        let is_rechecked = self.job.purpose == Purpose::Recheck;
        if is_rechecked {
            self.require_directory().await?;
        }
        let (name, uses_existing) = self.place(&metainfo.info).await?;
        let sources = Sources::of(&metainfo);
        let spec = TorrentSpec {
            name: Some(name),
            uses_existing,
            is_rechecked,
            priorities: priorities(&metainfo.info, &files),
            ..self.spec(Content::Info(metainfo.info.clone()), &sources)
        };
        let swarm = self.join(&open, spec, sources, search).await?;
        let ended = self.follow_download(&swarm, &metainfo.info, &files).await;
        if matches!(ended, Ok(Outcome::Finished(_))) && !self.job.stop.is_cancelled() {
            self.leave(swarm);
        } else {
            swarm.close().await;
        }
        ended
    }

    async fn open(&self) -> Step<Arc<Open>> {
        self.shared
            .open()
            .await
            .map_err(|error| Outcome::Failed(Failure::new(FailureKind::InUse, error.to_string())))
    }

    fn spec(&self, content: Content, sources: &Sources) -> TorrentSpec {
        let webseeds = sources.webseeds.iter().chain(&self.options.webseeds);
        let webseed = |url: &SafeUrl| Webseed {
            url: url.clone(),
            given_by: self.job.source.given_by.clone(),
        };
        // The name of an only file is that of the torrent, which is reserved.
        let is_directory = matches!(&content, Content::Info(info) if !info.is_single_file());
        let paths = if is_directory { &*self.options.paths } else { &[] };
        TorrentSpec {
            paths: paths.to_vec(),
            order: Order {
                is_sequential: self.options.is_sequential,
                head_bytes: self.options.head_bytes.max(self.options.edges_first.into()),
                tail_bytes: self.options.tail_bytes.max(self.options.edges_first.into()),
            },
            download: self.job.limits.clone(),
            upload: self.job.upload_limits.clone(),
            max_peers: self.max_peers().into(),
            webseeds: webseeds.map(webseed).collect(),
            proxy: self.job.source.proxy.clone(),
            reach: self.reach(sources),
            ..TorrentSpec::new(content, self.job.target.directory.clone())
        }
    }

    fn max_peers(&self) -> u16 {
        let usual = self.shared.settings().max_connections_per_torrent;
        self.options.max_peers.unwrap_or(usual).max(1)
    }

    /// Peers on this machine that others name are reached only if the user named a tracker there.
    fn reach(&self, sources: &Sources) -> PeerReach {
        let trackers = sources.trackers.iter().flatten().chain(&self.options.trackers);
        let mut hosts = trackers.filter_map(|url| url.as_url().host_str());
        if self.job.source.given_by == GivenBy::User && hosts.any(egress::name::is_here) {
            PeerReach::AlsoThisMachine
        } else {
            PeerReach::Networks
        }
    }

    /// Adds the torrent to the session, and looks for peers.
    async fn join(&self, open: &Open, spec: TorrentSpec, sources: Sources, search: Option<Search>) -> Step<Swarm> {
        let at_start = Counters {
            left: match &spec.content {
                Content::Info(_) if spec.is_seed_only => 0,
                Content::Info(info) => info.total_length(),
                // Unknown, and not nothing.
                Content::Hash(_) => 1,
            },
            wanted_peers: WANTED_PEERS.min(self.max_peers().into()),
            ..Counters::default()
        };
        let is_for_metadata = matches!(spec.content, Content::Hash(_));
        let torrent = add(open, spec).await?;
        let search = match search {
            Some(search) => search,
            None => Search::new(open.discovery.add(self.wish(sources, at_start)).await, is_for_metadata),
        };
        let max_peers = self.max_peers().into();
        let swarm = Swarm::new(torrent, search, max_peers, &self.shared.tasks);
        let _some_unknown = timeout(LOOKUP_TIMEOUT, self.add_named_peers(&swarm)).await;
        Ok(swarm)
    }

    /// What discovery is to look for.
    fn wish(&self, sources: Sources, counters: Counters) -> peer_discovery::TorrentSpec {
        let mut trackers = sources.trackers;
        if !sources.is_private {
            trackers.extend(self.options.trackers.iter().map(|url| vec![url.clone()]));
        }
        peer_discovery::TorrentSpec {
            info_hash: self.torrent(),
            trackers,
            nodes: sources.nodes,
            given_by: self.job.source.given_by.clone(),
            is_private: sources.is_private,
            proxy: self.job.source.proxy.clone(),
            counters,
        }
    }

    /// Adds the peers that the magnet link names.
    async fn add_named_peers(&self, swarm: &Swarm) {
        let (within, reach) = match self.job.source.given_by {
            GivenBy::User => (Reach::Anywhere, PeerReach::AlsoThisMachine),
            GivenBy::Other { .. } => (Reach::Global, PeerReach::Networks),
        };
        for peer in self.magnet.peers.iter().take(MAX_NAMED_PEERS) {
            let target = (peer.host.as_str(), peer.port);
            let found = egress::udp::resolve(&self.shared.config.names, target, within, LOOKUP_TIMEOUT).await;
            match found {
                Ok(found) => {
                    let _removed = swarm.torrent.add_peers(found, PeerSource::User, reach).await;
                }
                Err(error) => tracing::debug!(peer = %peer.host, %error, "a peer of a magnet link is unknown"),
            }
        }
    }

    /// Follows the download until it is complete.
    async fn follow_download(&self, swarm: &Swarm, info: &Info, files: &[u32]) -> Step<Outcome> {
        let size = wanted_bytes(info, files);
        let mut received = (0, Instant::now());
        self.follow(swarm, |view| {
            let missing = view.wanted_bytes.saturating_sub(view.done_bytes);
            let is_known = view.wanted_bytes > 0 || size == 0;
            let done = if is_known { size.saturating_sub(missing) } else { 0 };
            let stage = match view.status {
                Status::Checking => Stage::Verifying,
                Status::Downloading | Status::Seeding => Stage::Moving,
                _ => Stage::Preparing,
            };
            self.report(view, stage, Some((done, size)));
            if view.status == Status::Seeding {
                return Some(Outcome::Finished(Finished {
                    path: view.path.clone().unwrap_or_default(),
                    size_bytes: size,
                    received_bytes: view.downloaded,
                    is_own: true,
                    can_seed: true,
                }));
            }
            if view.downloaded > received.0 || view.status != Status::Downloading {
                received = (view.downloaded, Instant::now());
            }
            let limit = self
                .options
                .stall_timeout
                .filter(|limit| received.1.elapsed() > *limit)?;
            let message = format!(
                "no peer sent anything for {} s; {} peers are connected, {} of them have everything",
                limit.as_secs(),
                view.peers,
                view.seeds
            );
            Some(Outcome::Failed(Failure::new(FailureKind::TooSlow, message)))
        })
        .await
    }

    /// Looks at the torrent until `ends` says how it ended, it fails, or the run is stopped.
    async fn follow(&self, swarm: &Swarm, mut ends: impl FnMut(&TorrentView) -> Option<Outcome>) -> Step<Outcome> {
        let mut watch = swarm.torrent.watch();
        let mut tick = interval(match self.job.purpose {
            Purpose::Download | Purpose::Recheck => REPORT_INTERVAL,
            // Its view changes whenever there is something to report.
            Purpose::Seed { .. } => SEED_INTERVAL,
        });
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let view = Arc::clone(&watch.borrow_and_update());
            match &view.status {
                Status::Failed(failure) => return Err(Outcome::Failed(failure.clone())),
                Status::Removed => return Err(removed()),
                _ => {}
            }
            if let Some(outcome) = ends(&view) {
                return Ok(outcome);
            }
            tokio::select! {
                biased;
                () = self.job.stop.cancelled() => return Err(Outcome::Stopped),
                changed = watch.changed() => if changed.is_err() {
                    return Err(removed());
                },
                _ = tick.tick() => {}
            }
        }
    }

    async fn seed(&mut self, most_uploaded: Option<u64>) -> Step<Outcome> {
        let swarm = match self.slot.take() {
            Some(swarm) if swarm.is_alive() => {
                let (download, upload) = (self.job.limits.clone(), self.job.upload_limits.clone());
                let _removed = swarm.torrent.set_limits(download, upload).await;
                swarm
            }
            Some(swarm) => {
                swarm.close().await;
                Box::pin(self.rejoin()).await?
            }
            None => Box::pin(self.rejoin()).await?,
        };
        let before = self.job.uploaded_bytes;
        let allowance = most_uploaded.map(|most| most.saturating_sub(before).saturating_add(swarm.counted));
        let _removed = swarm.torrent.set_most_uploaded(allowance).await;
        let counted = swarm.counted;
        let ended = self
            .follow(&swarm, |view| {
                let stage = match view.status {
                    Status::Checking => Stage::Verifying,
                    _ => Stage::Seeding,
                };
                let size = view.wanted_bytes;
                let view = TorrentView {
                    uploaded: view.uploaded.saturating_sub(counted),
                    ..view.clone()
                };
                self.report(&view, stage, Some((size, size)));
                None
            })
            .await;
        swarm.close().await;
        ended
    }

    /// Adds a complete torrent that has left its swarm.
    async fn rejoin(&self) -> Step<Swarm> {
        let open = self.open().await?;
        let stored = self.shared.shelf.read(self.torrent()).await.map_err(Outcome::Failed)?;
        let Some(metainfo) = stored else {
            let message = format!("the stored metadata of the torrent {} is gone", self.torrent());
            return Err(Outcome::Failed(Failure::new(FailureKind::NotFound, message)));
        };
        let files = self.choose_files(&metainfo.info).await?;
        let (name, _) = self.place(&metainfo.info).await?;
        let sources = Sources::of(&metainfo);
        let spec = TorrentSpec {
            name: Some(name),
            uses_existing: true,
            is_seed_only: true,
            priorities: priorities(&metainfo.info, &files),
            ..self.spec(Content::Info(metainfo.info), &sources)
        };
        self.join(&open, spec, sources, None).await
    }

    /// Leaves the swarm to the run that seeds it, or closes it if there is none.
    fn leave(&mut self, mut swarm: Swarm) {
        let left_at = Instant::now();
        swarm.left_at = Some(left_at);
        swarm.counted = swarm.torrent.view().uploaded;
        let torrent = swarm.info_hash();
        *self.slot = Some(swarm);
        let shared = Arc::clone(&self.shared);
        self.shared.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(GRACE) => {}
                () = shared.stop.cancelled() => {}
            }
            shared.release(torrent, |swarm| swarm.left_at == Some(left_at)).await;
        });
    }

    fn report(&self, view: &TorrentView, stage: Stage, bytes: Option<(u64, u64)>) {
        self.job.reporter.progress(Progress {
            stage,
            total_bytes: bytes.map(|(_, total)| total),
            done_bytes: bytes.map_or(0, |(done, _)| done),
            received_bytes: view.downloaded,
            bytes_per_second: view.download_rate,
            uploaded_bytes: self.job.uploaded_bytes.saturating_add(view.uploaded),
            upload_bytes_per_second: view.upload_rate,
            connections: u16::try_from(view.peers).unwrap_or(u16::MAX),
            ..Progress::default()
        });
    }
}

/// Adds a torrent to the session once its last run has left it.
async fn add(open: &Open, spec: TorrentSpec) -> Step<Torrent> {
    if let Some(before) = open.torrents.get(spec.content.info_hash()) {
        let mut watch = before.watch();
        let leaving = async { while watch.changed().await.is_ok() {} };
        let _left = timeout(LEAVE_TIMEOUT, leaving).await;
    }
    let added = open.torrents.add(spec);
    added.map_err(|error| Outcome::Failed(Failure::new(FailureKind::InUse, error.to_string())))
}
