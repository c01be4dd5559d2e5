//! Where the files of a torrent go, and what is deleted with its task.

use std::path::{Path, PathBuf};

use metainfo::{Info, InfoHash};
use tokio::task::spawn_blocking;
use torrent::Content;
use transfer::{
    Discarded, Failure, FailureKind, FileName, OnConflict, Outcome, Recorded, RunEvent, source::torrent_hash,
};

use super::{Run, Step};
use crate::session::Shared;

impl Run {
    /// The name of the file or directory, and whether what is there of it is used. It is reserved when this returns.
    pub(super) async fn place(&self, info: &Info) -> Step<(FileName, bool)> {
        let target = &self.job.target;
        if let Some(reserved) = target.reserved.as_ref().and_then(|path| path.file_name()) {
            let name = FileName::sanitise(&reserved.to_string_lossy());
            self.reserve(&target.directory.join(name.as_str()), info).await?;
            // It is this task's own.
            return Ok((name, true));
        }
        // Below a file, every name would seem to be taken.
        let made = tokio::fs::create_dir_all(&target.directory).await;
        made.map_err(|error| Outcome::Failed(Failure::directory(&target.directory, &error)))?;
        let path = self.options.paths.first().filter(|_| info.is_single_file());
        let wanted = target.name.clone().or_else(|| Some(FileName::sanitise(&path?.1)));
        let wanted = wanted.unwrap_or_else(|| info.name().clone());
        let names: Box<dyn Iterator<Item = FileName> + Send> = if info.is_single_file() {
            Box::new(wanted.alternatives())
        } else {
            Box::new(wanted.directories())
        };
        let takes_existing = target.check_integrity || target.on_conflict == OnConflict::Overwrite;
        for name in names {
            let path = target.directory.join(name.as_str());
            let is_there = is_there(&path).await;
            // It may be another file of the user that has the torrent's name, which only the record tells.
            let is_own = is_there && target.adopt && self.is_recorded(info, &name).await;
            if is_there && !takes_existing && !is_own {
                match target.on_conflict {
                    OnConflict::Skip => return Err(Outcome::Skipped { existing: path }),
                    OnConflict::Rename | OnConflict::Overwrite => continue,
                }
            }
            if self.reserve(&path, info).await? == Recorded::Done {
                return Ok((name, takes_existing));
            }
        }
        let message = format!("{} and all numbered names exist already", wanted.as_str());
        Err(Outcome::Failed(Failure::new(FailureKind::Exists, message)))
    }

    /// Fails if the directory that has received the files is gone: they are on a disk that may only be away, and would all be
    /// downloaded again to where that is usually mounted.
    pub(super) async fn require_directory(&self) -> Step<()> {
        let directory = &self.job.target.directory;
        if is_there(directory).await {
            return Ok(());
        }
        let message = format!(
            "{} is not there: connect the disk that it is on and resume the task, or create it to download everything again",
            directory.display()
        );
        Err(Outcome::Failed(Failure::new(FailureKind::DiskIo, message)))
    }

    async fn is_recorded(&self, info: &Info, name: &FileName) -> bool {
        let (info, name) = (info.clone(), name.clone());
        let (directory, records) = (self.job.target.directory.clone(), self.shared.config.directory.clone());
        let looking = spawn_blocking(move || torrent::is_recorded(&info, &directory, &name, &records)).await;
        looking.unwrap_or_default()
    }

    async fn reserve(&self, path: &Path, info: &Info) -> Step<Recorded> {
        let event = RunEvent::Reserved {
            path: path.to_owned(),
            total_bytes: Some(info.total_length()),
        };
        if self.job.target.adopt || self.job.target.reserved.as_deref() == Some(path) {
            self.job.reporter.event(event).await;
            return Ok(Recorded::Done);
        }
        self.job.reporter.record(event).await.map_err(Outcome::Failed)
    }
}

async fn is_there(path: &Path) -> bool {
    let looked = tokio::fs::symlink_metadata(path).await;
    !looked.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// What is deleted with a task. A swarm that its last run left is closed first, so that it writes nothing any more.
pub(crate) async fn leftovers(shared: &Shared, task: Discarded) -> Vec<PathBuf> {
    let Some(torrent) = torrent_hash(&task.url).map(InfoHash) else {
        return Vec::new();
    };
    // A run that has the place closes its swarm itself. The engine asks again then, before anything is deleted.
    shared.release(torrent, |_| true).await;
    let stored = shared.shelf.read(torrent).await.ok().flatten();
    let content = stored.map_or(Content::Hash(torrent), |metainfo| Content::Info(metainfo.info));
    let (records, stored) = (shared.config.directory.clone(), shared.shelf.path(torrent));
    let listing = spawn_blocking(move || {
        let name = task.path.as_deref().and_then(Path::file_name);
        let name = name.map(|name| FileName::sanitise(&name.to_string_lossy()));
        // Without a reserved path, no run has made files.
        let content = if name.is_some() {
            content
        } else {
            Content::Hash(torrent)
        };
        let mut paths = torrent::leftovers(
            &content,
            &task.directory,
            name.as_ref(),
            &records,
            task.deletes_finished,
        );
        paths.insert(0, stored);
        paths
    });
    listing.await.unwrap_or_default()
}
