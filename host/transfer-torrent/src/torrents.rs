//! All torrents of a process.

use std::{path::Path, sync::Arc};

use metainfo::{Info, InfoHash, Magnet, Metainfo};
use tokio::task::spawn_blocking;
use torrent::{CommandError, Gone, Status, Torrent};
use transfer::{
    Discarded, Failure, FailureKind, FileName, Job, LeftoversFuture, RunFuture, SafeUrl, Transport,
    source::torrent_hash,
};

use crate::{
    FileView, ListView, PeerView, PiecesView, SCHEMES, TrackerSource, TrackerStatus, TrackerView,
    config::{Config, Settings},
    run,
    session::Shared,
    view::{Kept, Live, NotTorrent, Of, SessionView, TorrentError},
};

/// The transport for `magnet`. Clones share the session.
#[derive(Debug, Clone)]
pub struct Torrents(Arc<Shared>);

impl Torrents {
    /// A transport whose session begins with its first torrent: until then no port is open and nothing is sent.
    pub fn new(config: Config) -> Self {
        Self(Arc::new(Shared::new(config)))
    }

    /// The hash of the torrent that this URL names; `None` if it names none.
    pub fn info_hash(url: &SafeUrl) -> Option<InfoHash> {
        torrent_hash(url).map(InfoHash)
    }

    /// Replaces what the user decides.
    pub fn set(&self, settings: Settings) {
        self.0.set(settings);
    }

    /// The session, if it has begun.
    pub fn session(&self) -> Option<SessionView> {
        let open = self.0.seen()?;
        let status = open.discovery.status();
        Some(SessionView {
            port: open.torrents.port(),
            dht: status.dht,
            lsd_error: status.lsd_error,
            mapping: status.mapping,
        })
    }

    /// Reads the lists of trackers now, and returns what came of each. Begins the session if there is none.
    pub async fn refresh_lists(&self) -> Result<Vec<ListView>, Failure> {
        let open = self.0.open().await;
        let open = open.map_err(|error| Failure::new(FailureKind::InUse, error.to_string()))?;
        Ok(open.discovery.refresh_lists().await)
    }

    /// Stores a metainfo file durably, so that a task with the URL that is returned downloads its torrent.
    pub async fn keep(&self, bytes: Vec<u8>) -> Result<Kept, NotTorrent> {
        let metainfo = Metainfo::parse(&bytes)?;
        let info = metainfo.info.clone();
        let magnet = metainfo.own_link();
        let stored = self.0.shelf.keep(info.hash(), bytes).await;
        stored.map_err(NotTorrent::Store)?;
        let url = SafeUrl::parse(&magnet.to_string()).map_err(|error| {
            let message = format!("the torrent's name cannot be part of a link: {error}");
            NotTorrent::Store(Failure::new(FailureKind::InvalidSource, message))
        })?;
        Ok(Kept { url, info })
    }

    /// Removes the stored metainfo of all torrents but `known`. For the start, when tasks may have been deleted by a process
    /// that was killed.
    pub async fn keep_only(&self, known: Vec<InfoHash>) -> Result<(), Failure> {
        self.0.shelf.keep_only(known).await
    }

    /// The stored metainfo of a torrent: of its file, or put together once the metadata of a magnet link has come.
    pub async fn metainfo(&self, url: &SafeUrl) -> Result<Option<Metainfo>, Failure> {
        match Self::info_hash(url) {
            Some(torrent) => self.0.shelf.read(torrent).await,
            None => Ok(None),
        }
    }

    /// Its swarm, if it is running. Cheap.
    pub fn live(&self, url: &SafeUrl) -> Option<Live> {
        let view = self.running(url)?.view();
        Some(Live {
            peers: view.peers,
            seeds: view.seeds,
            wasted_bytes: view.wasted,
            pieces_have: view.pieces_have,
            is_without_metadata: view.info.is_none(),
            is_seeding: view.status == Status::Seeding,
        })
    }

    /// Its files, with what is there of each, whether it is running or not.
    pub async fn files(&self, torrent: Of<'_>) -> Result<Vec<FileView>, TorrentError> {
        if let Some(running) = self.running(torrent.url)
            && running.view().info.is_some()
            && let Ok(files) = running.files().await
        {
            return Ok(files);
        }
        // It does not run, or has just left.
        Ok(self.inspect(torrent).await?.files)
    }

    /// Its connected peers; none if it is not running.
    pub async fn peers(&self, url: &SafeUrl) -> Vec<PeerView> {
        match self.running(url) {
            Some(running) => running.peers().await.unwrap_or_default(),
            None => Vec::new(),
        }
    }

    /// Its trackers; those of its metainfo file or magnet link if it is not running.
    pub async fn trackers(&self, url: &SafeUrl) -> Vec<TrackerView> {
        if let (Some(torrent), Some(open)) = (Self::info_hash(url), self.0.seen())
            && let Some(trackers) = open.discovery.trackers(torrent).await
        {
            return trackers;
        }
        let tiers = if let Ok(Some(metainfo)) = self.metainfo(url).await {
            metainfo.trackers
        } else {
            let magnet = url.expose().parse::<Magnet>();
            let trackers = magnet.map(|magnet| magnet.trackers).unwrap_or_default();
            trackers.into_iter().map(|tracker| vec![tracker]).collect()
        };
        tiers
            .into_iter()
            .enumerate()
            .flat_map(|(tier, urls)| urls.into_iter().map(move |url| idle_tracker(url, tier)))
            .collect()
    }

    /// Its pieces, whether it is running or not; `None` before the metadata is known.
    pub async fn pieces(&self, torrent: Of<'_>) -> Result<Option<PiecesView>, TorrentError> {
        if let Some(running) = self.running(torrent.url)
            && let Ok(pieces) = running.pieces().await
        {
            return Ok(pieces);
        }
        match self.inspect(torrent).await {
            Ok(inspected) => {
                let availability = Vec::new();
                let have = inspected.have;
                Ok(Some(PiecesView { have, availability }))
            }
            Err(TorrentError::NoMetadata(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Asks its trackers now, no more often than they allow.
    pub async fn announce(&self, url: &SafeUrl) -> Result<(), TorrentError> {
        let torrent = Self::info_hash(url).ok_or(TorrentError::NotTorrent)?;
        let is_running = match self.0.seen() {
            Some(open) => open.discovery.announce_now(torrent).await,
            None => false,
        };
        is_running.then_some(()).ok_or(TorrentError::NotRunning(torrent))
    }

    /// Hashes everything that is on the disk. What is wrong is downloaded again.
    pub async fn recheck(&self, torrent: Of<'_>) -> Result<(), TorrentError> {
        let running = self.running(torrent.url).ok_or_else(|| not_running(torrent.url))?;
        running.recheck().await.map_err(|error| of_command(torrent.url, error))
    }

    /// Gives a file another path in the directory of the torrent, with `/` between names, whether it is running or not. The
    /// only file of a torrent that is not running is renamed by the caller, who keeps its path.
    pub async fn rename_file(&self, torrent: Of<'_>, index: u32, path: &str) -> Result<(), TorrentError> {
        let file = usize::try_from(index).unwrap_or(usize::MAX);
        let path = path.to_owned();
        if let Some(running) = self.running(torrent.url) {
            let renamed = running.rename(file, path).await;
            return renamed.map_err(|error| of_command(torrent.url, error));
        }
        let hash = Self::info_hash(torrent.url).ok_or(TorrentError::NotTorrent)?;
        let (info, name) = self.stored(torrent, hash).await?;
        // No run begins meanwhile.
        let mut slot = self.0.slot(hash).await;
        if let Some(swarm) = slot.take() {
            swarm.close().await;
        }
        let (directory, records) = (torrent.directory.to_owned(), self.0.config.directory.clone());
        let renaming = move || torrent::rename(&info, &directory, &name, (file, &path), &records);
        let renamed = spawn_blocking(renaming).await;
        drop(slot);
        self.0.forget_free_slots();
        let renamed = renamed.unwrap_or_else(|error| Err(Failure::new(FailureKind::Internal, error.to_string())));
        renamed.map_err(TorrentError::Failed)
    }

    /// Ends what a finished run has left for one that seeds, so that the files can be renamed.
    pub async fn release(&self, url: &SafeUrl) {
        if let Some(torrent) = Self::info_hash(url) {
            self.0.release(torrent, |_| true).await;
        }
    }

    /// Ends the session; waits until trackers know and everything is written, no longer than some seconds.
    pub async fn shutdown(&self) {
        self.0.shutdown().await;
    }

    /// The threads that may block on the disk.
    pub(crate) fn lanes(&self) -> &transfer::Lanes {
        &self.0.config.lanes
    }

    fn running(&self, url: &SafeUrl) -> Option<Torrent> {
        let torrent = Self::info_hash(url)?;
        self.0.seen()?.torrents.get(torrent)
    }

    /// What it consists of, and the name of its file or directory.
    async fn stored(&self, torrent: Of<'_>, hash: InfoHash) -> Result<(Info, FileName), TorrentError> {
        let stored = self.0.shelf.read(hash).await.map_err(TorrentError::Failed)?;
        let info = stored.ok_or(TorrentError::NoMetadata(hash))?.info;
        let name = name_of(torrent.path).unwrap_or_else(|| info.name().clone());
        Ok((info, name))
    }

    /// What the record of a torrent says that is not running.
    async fn inspect(&self, torrent: Of<'_>) -> Result<torrent::Inspected, TorrentError> {
        let hash = Self::info_hash(torrent.url).ok_or(TorrentError::NotTorrent)?;
        let (info, name) = self.stored(torrent, hash).await?;
        let (directory, records) = (torrent.directory.to_owned(), self.0.config.directory.clone());
        let paths = torrent.paths.to_vec();
        let inspecting = spawn_blocking(move || torrent::inspect(&info, &directory, &name, &paths, &records)).await;
        inspecting.map_err(|error| TorrentError::Failed(Failure::new(FailureKind::Internal, error.to_string())))
    }
}

fn name_of(path: Option<&Path>) -> Option<FileName> {
    let name = path?.file_name()?;
    Some(FileName::sanitise(&name.to_string_lossy()))
}

fn not_running(url: &SafeUrl) -> TorrentError {
    Torrents::info_hash(url).map_or(TorrentError::NotTorrent, TorrentError::NotRunning)
}

fn of_command(url: &SafeUrl, error: CommandError) -> TorrentError {
    match error {
        CommandError::Gone(Gone) => not_running(url),
        CommandError::Failed(failure) => TorrentError::Failed(failure),
    }
}

fn idle_tracker(url: SafeUrl, tier: usize) -> TrackerView {
    TrackerView {
        url,
        tier,
        source: TrackerSource::Torrent,
        status: TrackerStatus::NotContacted,
        peers: None,
        seeds: None,
        leechers: None,
        downloads: None,
        next_announce: None,
        message: None,
    }
}

impl Transport for Torrents {
    fn schemes(&self) -> &'static [&'static str] {
        &SCHEMES
    }

    fn run(&self, job: Job) -> RunFuture {
        Box::pin(run::run(Arc::clone(&self.0), Box::new(job)))
    }

    fn leaves_more(&self) -> bool {
        true
    }

    fn leftovers(&self, task: Discarded) -> LeftoversFuture {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { run::leftovers(&shared, task).await })
    }
}
