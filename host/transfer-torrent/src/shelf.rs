//! The stored metainfo files of torrents.

use std::path::{Path, PathBuf};

use metainfo::{InfoHash, Metainfo};
use private_files::FileError;
use tokio::task::spawn_blocking;
use transfer::{Failure, FailureKind};

/// The ending of [`InfoHash::file_name`].
const ENDING: &str = ".torrent";

/// The directory of metainfo files, one for each torrent that has a task.
#[derive(Debug, Clone)]
pub(crate) struct Shelf(PathBuf);

impl Shelf {
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    pub(crate) fn path(&self, torrent: InfoHash) -> PathBuf {
        self.0.join(torrent.file_name())
    }

    /// Stores the file; it is on the disk when this returns.
    pub(crate) async fn keep(&self, torrent: InfoHash, bytes: Vec<u8>) -> Result<(), Failure> {
        let (directory, path) = (self.0.clone(), self.path(torrent));
        blocking(move || {
            private_files::make_directory(&directory)?;
            private_files::replace(&path, &bytes)
        })
        .await
    }

    /// Reads the file. One that cannot be read as a torrent any more counts as missing: its metadata comes from peers then.
    pub(crate) async fn read(&self, torrent: InfoHash) -> Result<Option<Metainfo>, Failure> {
        let path = self.path(torrent);
        let bytes = blocking(move || private_files::read(&path)).await?;
        let Some(bytes) = bytes else { return Ok(None) };
        match Metainfo::parse(&bytes) {
            Ok(metainfo) if metainfo.info.hash() == torrent => Ok(Some(metainfo)),
            Ok(_) => Ok(None),
            Err(error) => {
                tracing::warn!(%torrent, %error, "a stored torrent file is damaged");
                Ok(None)
            }
        }
    }

    /// Removes the files of all torrents but `known`.
    pub(crate) async fn keep_only(&self, known: Vec<InfoHash>) -> Result<(), Failure> {
        let directory = self.0.clone();
        blocking(move || {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(FileError::at("read", &directory)(error)),
            };
            for entry in entries.filter_map(Result::ok) {
                let name = entry.file_name();
                let torrent = name.to_str().and_then(|name| name.strip_suffix(ENDING));
                let torrent = torrent.and_then(|hash| hash.parse::<InfoHash>().ok());
                if torrent.is_some_and(|torrent| !known.contains(&torrent)) {
                    private_files::remove(&entry.path())?;
                }
            }
            Ok(())
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, Failure> {
    let done = spawn_blocking(work).await;
    let done = done.map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))?;
    done.map_err(|error| Failure::new(FailureKind::DiskIo, error.to_string()))
}
