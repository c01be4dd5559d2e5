//! The metadata of a magnet link.

use std::{fs, io, io::Write as _, path::Path, sync::Arc, time::Duration};

use metainfo::{Info, Metainfo};
use tokio::{task::spawn_blocking, time::timeout};
use torrent::{Content, Status, TorrentSpec};
use transfer::{Failure, FailureKind, Outcome, Stage, file_name::PART_SUFFIX};

use super::{Run, Step, sources::Sources};
use crate::{
    session::Open,
    swarm::{Search, Swarm, removed},
};

/// How long it may take, unless the task says otherwise.
const METADATA_TIMEOUT: Duration = Duration::from_mins(5);

impl Run {
    /// The metadata of a magnet link from its peers, stored, and the search that found them.
    pub(super) async fn fetch_metadata(&self, open: &Open) -> Step<(Metainfo, Option<Search>)> {
        let sources = Sources::of_magnet(&self.magnet);
        let spec = TorrentSpec {
            stops_after_metadata: true,
            ..self.spec(Content::Hash(self.torrent()), &sources)
        };
        let swarm = self.join(open, spec, sources, None).await?;
        let info = match self.await_metadata(&swarm).await {
            Ok(info) => info,
            Err(outcome) => {
                swarm.close().await;
                return Err(outcome);
            }
        };
        let metainfo = Sources::of_magnet(&self.magnet).describe(info);
        if self.options.saves_metadata {
            // First: once it is stored, no run fetches it again.
            self.save(metainfo.encode()).await;
        }
        let stored = self.shared.shelf.keep(self.torrent(), metainfo.encode()).await;
        let ended = match stored {
            Err(failure) => Some(Outcome::Failed(failure)),
            Ok(()) if self.options.is_metadata_only => Some(described(&metainfo)),
            Ok(()) => self.options.stops_after_metadata.then_some(Outcome::Waits),
        };
        if let Some(ended) = ended {
            swarm.close().await;
            return Err(ended);
        }
        Ok((metainfo, swarm.release().await))
    }

    /// Writes the metainfo file for the user. The download does not need it, so a failure is not the task's.
    async fn save(&self, bytes: Vec<u8>) {
        let directory = self.job.target.directory.clone();
        let path = directory.join(self.torrent().file_name());
        let shown = path.display().to_string();
        let saving = spawn_blocking(move || write_new(&directory, &path, &bytes)).await;
        match saving.map_err(io::Error::other) {
            Ok(Ok(())) => tracing::info!(path = shown, "saved the metadata of a magnet link"),
            Ok(Err(error)) | Err(error) => {
                tracing::warn!(path = shown, %error, "the metadata of a magnet link was not saved");
            }
        }
    }

    async fn await_metadata(&self, swarm: &Swarm) -> Step<Info> {
        let limit = self.options.metadata_timeout.unwrap_or(METADATA_TIMEOUT);
        let mut watch = swarm.torrent.watch();
        let waiting = async {
            loop {
                let view = Arc::clone(&watch.borrow_and_update());
                self.report(&view, Stage::Preparing, None);
                match (&view.info, &view.status) {
                    (Some(info), _) => return Ok(info.clone()),
                    (None, Status::Failed(failure)) => return Err(Outcome::Failed(failure.clone())),
                    (None, Status::Removed) => return Err(removed()),
                    _ => {}
                }
                if watch.changed().await.is_err() {
                    return Err(removed());
                }
            }
        };
        tokio::select! {
            () = self.job.stop.cancelled() => Err(Outcome::Stopped),
            waited = timeout(limit, waiting) => waited.unwrap_or_else(|_| {
                let peers = swarm.torrent.view().peers;
                let message = format!(
                    "the metadata of the torrent {} did not come within {} s: {peers} peers were connected at the end. A \
                     magnet link with trackers, or a torrent file, helps",
                    self.torrent(),
                    limit.as_secs()
                );
                Err(Outcome::Failed(Failure::new(FailureKind::NotFound, message)))
            }),
        }
    }
}

/// The end of a run that only the metadata was wanted of.
pub(super) fn described(metainfo: &Metainfo) -> Outcome {
    Outcome::Described {
        size_bytes: metainfo.info.raw().len() as u64,
    }
}

/// Writes a file whole and durably, unless its name is taken. Blocks.
fn write_new(directory: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    if fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    let mut part = path.as_os_str().to_owned();
    part.push(PART_SUFFIX);
    // One that a killed run left is removed: it is ours by its name, and may be a link by now.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::File::create_new(&part)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    match transfer::rename_new(Path::new(&part), path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::remove_file(&part),
        Err(error) => Err(error),
        Ok(()) => private_files::sync_directory(directory).map_err(|error| error.source),
    }
}
