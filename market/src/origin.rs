//! The places that hold the files of a source: a folder, the program itself, or (in `http`) a server. None of them is
//! trusted; everything that they give is verified.

use std::{fmt, io, path::PathBuf, time::Duration};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

/// A place that holds the files of a source.
pub trait Origin: Send + Sync + fmt::Debug {
    /// Reads the file `place`. `into` may hold a prefix of the file from an earlier attempt: the rest is appended, or,
    /// if the origin cannot continue there, `into` is replaced by the whole file. After an error, `into` holds what was
    /// received so far. It never grows beyond `limit` bytes.
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a>;
}

/// The future of [`Origin::read`]. Dropping it cancels the request.
pub type Reading<'a> = BoxFuture<'a, Result<(), OriginError>>;

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The file does not exist.
    #[error("the file does not exist")]
    NotFound,
    /// The file exceeds the limit of its kind.
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    /// The server sent nothing for this long.
    #[error("the server sent nothing for {} s", .0.as_secs_f32())]
    Stalled(Duration),
    /// The file was not complete after this time.
    #[error("the file took longer than {} s", .0.as_secs_f32())]
    TooSlow(Duration),
    /// The file, or the target of a redirect, is outside of what may be requested.
    #[error("{0} is not allowed: only the source itself and public https servers are")]
    Forbidden(String),
    /// The server redirects in a loop or too often.
    #[error("the server redirects too often")]
    Redirects,
    /// The server answers with an error.
    #[error("the server answers with status {0}")]
    Status(u16),
    /// Another error of the network or the disk.
    #[error("{0}")]
    Failed(String),
}

impl OriginError {
    /// Whether the error is transient, so that a request for the rest may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self, Self::Stalled(_) | Self::Failed(_))
    }
}

/// A folder with the files of a source.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    async fn append(&self, place: &str, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-@+".contains(&byte))
        };
        if !place.split('/').all(is_name) {
            return Err(OriginError::Forbidden(place.to_owned()));
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => OriginError::NotFound,
            _ => OriginError::Failed(error.to_string()),
        };
        let mut file = tokio::fs::File::open(self.0.join(place)).await.map_err(failed)?;
        let start = into.len() as u64;
        file.seek(io::SeekFrom::Start(start)).await.map_err(failed)?;
        let room = limit.saturating_sub(start);
        let read = file.take(room + 1).read_to_end(into).await.map_err(failed)?;
        check_room(read as u64, room, limit, into)
    }
}

impl Origin for Folder {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        Box::pin(self.append(place, limit, into))
    }
}

/// Files that are part of the program. No attacker can withhold newer ones, so they do not expire: refresh such a
/// source with the time at which the program was built.
#[derive(Debug, Clone, Copy)]
pub struct Embedded(pub &'static [(&'static str, &'static [u8])]);

impl Origin for Embedded {
    fn read<'a>(&'a self, place: &'a str, limit: u64, into: &'a mut Vec<u8>) -> Reading<'a> {
        let found = self.0.iter().find(|(name, _)| *name == place);
        let read = found.ok_or(OriginError::NotFound).and_then(|(_, bytes)| {
            let rest = bytes.get(into.len()..).unwrap_or_default();
            let room = limit.saturating_sub(into.len() as u64);
            into.extend_from_slice(rest);
            check_room(rest.len() as u64, room, limit, into)
        });
        Box::pin(std::future::ready(read))
    }
}

fn check_room(read: u64, room: u64, limit: u64, into: &mut Vec<u8>) -> Result<(), OriginError> {
    if read > room {
        into.clear();
        return Err(OriginError::TooLarge(limit));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_gives_its_own_files_only_and_goes_on_where_it_stopped() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::write(outer.path().join("secret"), "x").unwrap();
        let inner = outer.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("a@b-1.0.0+c.zip"), "0123456789").unwrap();
        let folder = Folder::new(inner);

        let mut into = b"0123".to_vec();
        folder.read("a@b-1.0.0+c.zip", 10, &mut into).await.unwrap();
        assert_eq!(into, b"0123456789");
        let mut into = Vec::new();
        assert_eq!(
            folder.read("a@b-1.0.0+c.zip", 9, &mut into).await,
            Err(OriginError::TooLarge(9))
        );
        assert_eq!(folder.read("none", 9, &mut into).await, Err(OriginError::NotFound));
        for place in [
            "../secret",
            "/etc/hostname",
            "",
            "a//b",
            "https://host.test/x",
            ".",
            "a\\b",
        ] {
            let read = folder.read(place, 9, &mut into).await;
            assert_eq!(read, Err(OriginError::Forbidden(place.to_owned())));
        }
        assert!(into.is_empty());
    }
}
