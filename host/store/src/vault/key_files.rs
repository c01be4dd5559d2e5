//! The files of the key: the one in use, and during a rotation the next one beside it.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use private_files::FileError;

use crate::{
    data_dir::DataDir,
    vault::{
        VaultError,
        sealing::{KEY_BYTES, KeyBytes},
    },
};

/// Name of the key file in the data directory.
const CURRENT: &str = "vault.key";

/// Name of the file of a rotation's new key, until it has replaced the other one.
const NEXT: &str = "vault.key.next";

pub(super) struct KeyFiles {
    current: PathBuf,
    next: PathBuf,
    /// Whether the values are sealed with the next key already, because it could not be renamed yet.
    is_next_in_use: AtomicBool,
}

impl KeyFiles {
    pub(super) fn of(dir: &DataDir) -> Self {
        Self {
            current: dir.join(CURRENT),
            next: dir.join(NEXT),
            is_next_in_use: AtomicBool::new(false),
        }
    }

    pub(super) fn current(&self) -> &Path {
        &self.current
    }

    pub(super) fn read_current(&self) -> Result<Option<KeyBytes>, VaultError> {
        read(&self.current)
    }

    pub(super) fn read_next(&self) -> Result<Option<KeyBytes>, VaultError> {
        read(&self.next)
    }

    pub(super) fn write_current(&self, key: &KeyBytes) -> Result<(), FileError> {
        private_files::replace(&self.current, key)
    }

    /// Durable when this returns. The only copy of a key in use is never overwritten.
    pub(super) fn write_next(&self, key: &KeyBytes) -> Result<(), FileError> {
        if self.is_next_in_use.load(Ordering::Acquire) {
            self.promote_next()?;
        }
        private_files::replace(&self.next, key)
    }

    pub(super) fn remove_next(&self) -> Result<(), FileError> {
        private_files::remove(&self.next)
    }

    /// Replaces the key file by the next one; both are durable, and the old key is gone, when this returns.
    pub(super) fn promote_next(&self) -> Result<(), FileError> {
        self.is_next_in_use.store(true, Ordering::Release);
        fs::rename(&self.next, &self.current).map_err(FileError::at("replace", &self.current))?;
        self.is_next_in_use.store(false, Ordering::Release);
        self.current.parent().map_or(Ok(()), private_files::sync_directory)
    }
}

/// The key in a file; `None` if there is no file.
fn read(path: &Path) -> Result<Option<KeyBytes>, VaultError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(FileError::at("open", path))?,
    };
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    // One byte more than a key, so that a file that is too long is noticed.
    let limit = KEY_BYTES as u64 + 1;
    file.take(limit)
        .read_to_end(&mut bytes)
        .map_err(FileError::at("read", path))?;
    let key = KeyBytes::try_from(bytes.as_slice()).map_err(|_| VaultError::Damaged {
        path: path.to_owned(),
        found: bytes.len(),
    })?;
    Ok(Some(key))
}
