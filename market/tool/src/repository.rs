//! The folder that a source is published from: plain files for any web server. Every file keeps its bytes for ever,
//! except signatures that another key joins and the one of the timestamp, which is replaced at the very end. So whoever
//! reads while something is published sees the source before or after it, and never a mixture.

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
use serde::de::DeserializeOwned;

use crate::ToolError;

/// Keeps two commands from publishing at the same time. Web servers and clients skip names with a point in front.
const LOCK: &str = ".lock";

/// How many of each file stay: whoever began to read finds what the timestamp before named, and patches of these indexes
/// are made.
pub(crate) const KEPT: u64 = 8;

/// A folder with a source.
#[derive(Debug)]
pub struct Repository {
    folder: PathBuf,
    _lock: File,
}

impl Repository {
    /// Opens the folder, which is made if it is missing. One command at a time may have it.
    pub fn open(folder: &Path) -> Result<Self, ToolError> {
        fs::create_dir_all(folder).map_err(ToolError::io("create", folder))?;
        let path = folder.join(LOCK);
        let lock = File::create(&path).map_err(ToolError::io("create", &path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                folder: folder.to_owned(),
                _lock: lock,
            }),
            Err(fs::TryLockError::WouldBlock) => Err(ToolError::Refused(format!(
                "another command is at work in {}",
                folder.display()
            ))),
            Err(fs::TryLockError::Error(error)) => Err(ToolError::io("lock", path)(error)),
        }
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The newest number of a role's files, published or not; none if there is none.
    pub(crate) fn newest(&self, role: Role) -> Result<Option<u64>, ToolError> {
        let entries = fs::read_dir(&self.folder).map_err(ToolError::io("read", &self.folder))?;
        let mut newest = None;
        for entry in entries {
            let name = entry.map_err(ToolError::io("read", &self.folder))?.file_name();
            newest = newest.max(number(role, &name.to_string_lossy()));
        }
        Ok(newest)
    }

    /// The newest root, which must be there.
    pub(crate) fn root(&self) -> Result<RootRecord, ToolError> {
        self.newest_record(Role::Root)
    }

    pub(crate) fn index(&self) -> Result<IndexRecord, ToolError> {
        self.newest_record(Role::Index)
    }

    pub(crate) fn revocations(&self) -> Result<RevocationsRecord, ToolError> {
        self.newest_record(Role::Revocations)
    }

    /// The timestamp that is published; none before the first one.
    pub(crate) fn timestamp(&self) -> Result<Option<TimestampRecord>, ToolError> {
        let Some(signatures) = self.find(path::TIMESTAMP_SIGNATURE)? else {
            return Ok(None);
        };
        let seq = signature::claimed_sequence(&signatures, Role::Timestamp);
        let seq = seq.ok_or_else(|| ToolError::source(path::TIMESTAMP_SIGNATURE, &"names no timestamp"))?;
        self.record(Role::Timestamp, seq).map(Some)
    }

    fn newest_record<T: DeserializeOwned>(&self, role: Role) -> Result<T, ToolError> {
        let seq = self.newest(role)?;
        let seq = seq.ok_or_else(|| ToolError::source(path::document(role, 1), &"is missing; is this a source?"))?;
        self.record(role, seq)
    }

    fn record<T: DeserializeOwned>(&self, role: Role, seq: u64) -> Result<T, ToolError> {
        let place = path::document(role, seq);
        let bytes = self.read(&place)?;
        serde_json::from_slice(&bytes).map_err(|error| ToolError::source(place, &error))
    }

    pub(crate) fn read(&self, place: &str) -> Result<Vec<u8>, ToolError> {
        self.find(place)?.ok_or_else(|| ToolError::source(place, &"is missing"))
    }

    pub(crate) fn find(&self, place: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let path = self.folder.join(place);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ToolError::io("read", path)(error)),
        }
    }

    /// Puts a file into its place at once, whole and synced.
    pub(crate) fn write(&self, place: &str, bytes: &[u8]) -> Result<(), ToolError> {
        let path = self.folder.join(place);
        let parent = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(parent).map_err(ToolError::io("create", parent))?;
        let mut file = tempfile::Builder::new()
            .prefix(".")
            .tempfile_in(parent)
            .map_err(ToolError::io("write", &path))?;
        file.write_all(bytes).map_err(ToolError::io("write", &path))?;
        readable(file.as_file()).map_err(ToolError::io("write", &path))?;
        file.as_file().sync_all().map_err(ToolError::io("write", &path))?;
        file.persist(&path)
            .map_err(|error| ToolError::io("write", &path)(error.error))?;
        File::open(parent)
            .and_then(|folder| folder.sync_all())
            .map_err(ToolError::io("write", parent))
    }

    /// Takes away files of a role that no client asks for any more, and patches that lead to them.
    pub(crate) fn prune(&self, role: Role, newest: u64) -> Result<(), ToolError> {
        let oldest = newest.saturating_sub(KEPT);
        let folders = match role {
            Role::Index => vec![self.folder.clone(), self.folder.join(path::DIFFS)],
            _ => vec![self.folder.clone()],
        };
        for folder in folders.into_iter().filter(|folder| folder.exists()) {
            for entry in fs::read_dir(&folder).map_err(ToolError::io("read", &folder))? {
                let path = entry.map_err(ToolError::io("read", &folder))?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let document = name.strip_suffix(".minisig").unwrap_or(&name);
                let seq = number(role, document).or_else(|| path::diff_target(&name).filter(|_| role == Role::Index));
                if seq.is_some_and(|seq| seq < oldest) {
                    fs::remove_file(&path).map_err(ToolError::io("remove", &path))?;
                }
            }
        }
        Ok(())
    }
}

fn number(role: Role, name: &str) -> Option<u64> {
    name.strip_prefix(role.name())?
        .strip_prefix('.')?
        .strip_suffix(".json")?
        .parse()
        .ok()
}

/// Temporary files are for their owner only; what is published is for everybody.
#[cfg(unix)]
fn readable(file: &File) -> std::io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_file: &File) -> std::io::Result<()> {
    Ok(())
}
