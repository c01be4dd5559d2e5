//! The folder that a source is published from: plain files for any web server. The content of a file never changes,
//! except that signatures by another key are added, and that the signature of the timestamp is replaced as the last
//! step. So a client that reads during a publication sees the source before it or after it, and never a mixture.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use market::{
    Role, path,
    record::{IndexRecord, RevocationsRecord, RootRecord, TimestampRecord},
    signature,
};
use private_files::{FileError, Lock};
use serde::de::DeserializeOwned;

use crate::ToolError;

/// Locked while a command changes the folder. Clients never request names that begin with a dot.
const LOCK: &str = ".lock";

/// The number of old documents of each role that are kept: a client that began to read before a publication finds what
/// the previous timestamp named, and patches are made from these indexes.
pub(crate) const KEPT: u64 = 8;

/// A folder with a source, locked for this process.
#[derive(Debug)]
pub struct Repository {
    folder: PathBuf,
    _lock: File,
}

impl Repository {
    /// Opens the folder, which is created if it is missing. Fails while another process has it open.
    pub fn open(folder: &Path) -> Result<Self, ToolError> {
        fs::create_dir_all(folder).map_err(FileError::at("make", folder))?;
        match private_files::lock(&folder.join(LOCK))? {
            Lock::Ours(lock) => Ok(Self {
                folder: folder.to_owned(),
                _lock: lock,
            }),
            Lock::Held(_) => Err(ToolError::Refused(format!(
                "another command is changing {}; try again when it has ended",
                folder.display()
            ))),
        }
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The highest number among a role's documents, published or not; none if there is no document.
    pub(crate) fn newest(&self, role: Role) -> Result<Option<u64>, ToolError> {
        let entries = fs::read_dir(&self.folder).map_err(FileError::at("read", &self.folder))?;
        let mut newest = None;
        for entry in entries {
            let name = entry.map_err(FileError::at("read", &self.folder))?.file_name();
            newest = newest.max(number(role, &name.to_string_lossy()));
        }
        Ok(newest)
    }

    /// The newest root.
    pub(crate) fn root(&self) -> Result<RootRecord, ToolError> {
        self.newest_record(Role::Root)
    }

    pub(crate) fn index(&self) -> Result<IndexRecord, ToolError> {
        self.newest_record(Role::Index)
    }

    pub(crate) fn revocations(&self) -> Result<RevocationsRecord, ToolError> {
        self.newest_record(Role::Revocations)
    }

    /// The published timestamp; none before the first publication.
    pub(crate) fn timestamp(&self) -> Result<Option<TimestampRecord>, ToolError> {
        let Some(signatures) = self.find(path::TIMESTAMP_SIGNATURE)? else {
            return Ok(None);
        };
        let seq = signature::claimed_sequence(&signatures, Role::Timestamp);
        let seq = seq.ok_or_else(|| ToolError::source(path::TIMESTAMP_SIGNATURE, &"names no timestamp"))?;
        parse(Role::Timestamp, seq, &self.read(&path::document(Role::Timestamp, seq))?).map(Some)
    }

    /// The newest document of a role and its number.
    pub(crate) fn newest_document(&self, role: Role) -> Result<(u64, Vec<u8>), ToolError> {
        let seq = self.newest(role)?;
        let seq = seq.ok_or_else(|| ToolError::source(path::document(role, 1), &"is missing; is this a source?"))?;
        Ok((seq, self.read(&path::document(role, seq))?))
    }

    fn newest_record<T: DeserializeOwned>(&self, role: Role) -> Result<T, ToolError> {
        let (seq, bytes) = self.newest_document(role)?;
        parse(role, seq, &bytes)
    }

    /// A required file.
    pub(crate) fn read(&self, place: &str) -> Result<Vec<u8>, ToolError> {
        self.find(place)?.ok_or_else(|| ToolError::source(place, &"is missing"))
    }

    /// A file; none if it is missing.
    pub(crate) fn find(&self, place: &str) -> Result<Option<Vec<u8>>, ToolError> {
        Ok(private_files::read(&self.folder.join(place))?)
    }

    /// Replaces a file atomically. Synced when this returns.
    pub(crate) fn write(&self, place: &str, bytes: &[u8]) -> Result<(), ToolError> {
        let path = self.folder.join(place);
        let parent = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(parent).map_err(FileError::at("make", parent))?;
        let write = || {
            let mut file = tempfile::Builder::new().prefix(".").tempfile_in(parent)?;
            file.write_all(bytes)?;
            make_public(file.as_file())?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(FileError::at("write", &path))?;
        Ok(private_files::sync_directory(parent)?)
    }

    /// Deletes the documents of a role that no client requests any more, and the patches that lead to them.
    pub(crate) fn prune(&self, role: Role, newest: u64) -> Result<(), ToolError> {
        let oldest = newest.saturating_sub(KEPT);
        let folders = match role {
            Role::Index => vec![self.folder.clone(), self.folder.join(path::DIFFS)],
            _ => vec![self.folder.clone()],
        };
        for folder in folders.into_iter().filter(|folder| folder.exists()) {
            for entry in fs::read_dir(&folder).map_err(FileError::at("read", &folder))? {
                let path = entry.map_err(FileError::at("read", &folder))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let document = name.strip_suffix(".minisig").unwrap_or(&name);
                let seq = number(role, document).or_else(|| path::diff_target(&name).filter(|_| role == Role::Index));
                if seq.is_some_and(|seq| seq < oldest) {
                    fs::remove_file(&path).map_err(FileError::at("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

fn parse<T: DeserializeOwned>(role: Role, seq: u64, document: &[u8]) -> Result<T, ToolError> {
    serde_json::from_slice(document).map_err(|error| ToolError::source(path::document(role, seq), &error))
}

/// The number in the file name of a role's document.
fn number(role: Role, name: &str) -> Option<u64> {
    name.strip_prefix(role.name())?
        .strip_prefix('.')?
        .strip_suffix(".json")?
        .parse()
        .ok()
}

/// Temporary files are readable by their owner only, but a web server must be able to read what is published.
#[cfg(unix)]
fn make_public(file: &File) -> std::io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
}

#[cfg(not(unix))]
fn make_public(_file: &File) -> std::io::Result<()> {
    Ok(())
}
