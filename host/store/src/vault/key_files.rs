//! The files of the key: the one in use, and during a rotation the next one beside it. A file has the key, or the name that
//! the key has in the desktop's key store.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use data_encoding::HEXLOWER;
use key_store::{KeyStore, KeyStoreError};
use private_files::FileError;
use sha2::{Digest as _, Sha256};

use crate::{
    data_dir::DataDir,
    vault::{VaultError, sealing::KeyBytes},
};

/// Name of the key file in the data directory.
const CURRENT: &str = "vault.key";

/// Name of the file of a rotation's new key, until it has replaced the other one.
const NEXT: &str = "vault.key.next";

/// What a file begins with whose key is in the store. It is not as long as a key, so versions that do not know it refuse
/// the file instead of using it as one.
const NOTE: &str = "org.freedesktop.secrets ";

/// Hexadecimal digits of a key's name: the start of its SHA-256, by which a wrong key is noticed.
const NAME_DIGITS: usize = 32;

/// The points of a move at which a crash leaves something else behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The key is in the store, and in the file.
    Stored,
    /// It was read back from the store.
    Verified,
    /// The file says where it is: in the store, or in itself.
    Noted,
    /// The store does not have it any more.
    Removed,
}

/// What a key file has.
enum Kept {
    Key(KeyBytes),
    /// The name of the key in the store.
    InStore(String),
}

pub(super) struct KeyFiles {
    current: PathBuf,
    next: PathBuf,
    store: Option<Arc<dyn KeyStore>>,
    /// Whether the values are sealed with the next key already, because it could not be renamed yet.
    is_next_in_use: AtomicBool,
}

impl KeyFiles {
    pub(super) fn of(dir: &DataDir, store: Option<Arc<dyn KeyStore>>) -> Self {
        Self {
            current: dir.join(CURRENT),
            next: dir.join(NEXT),
            store,
            is_next_in_use: AtomicBool::new(false),
        }
    }

    pub(super) fn current(&self) -> &Path {
        &self.current
    }

    pub(super) fn read_current(&self) -> Result<Option<KeyBytes>, VaultError> {
        self.key_of(&self.current)
    }

    pub(super) fn read_next(&self) -> Result<Option<KeyBytes>, VaultError> {
        self.key_of(&self.next)
    }

    pub(super) fn write_current(&self, key: &KeyBytes) -> Result<(), FileError> {
        private_files::replace(&self.current, key)
    }

    /// Whether the key in use is in the store.
    pub(super) fn is_in_store(&self) -> Result<bool, VaultError> {
        Ok(matches!(read(&self.current)?, Some(Kept::InStore(_))))
    }

    /// Durable when this returns, where the key in use is. The only copy of a key in use is never overwritten.
    pub(super) fn write_next(&self, key: &KeyBytes) -> Result<(), VaultError> {
        if self.is_next_in_use.load(Ordering::Acquire) {
            self.promote_next()?;
        }
        if self.is_in_store()? {
            self.put(key, &|_| ())?;
            return Ok(private_files::replace(&self.next, note(key).as_bytes())?);
        }
        Ok(private_files::replace(&self.next, key)?)
    }

    /// Removes the key of a rotation that has not happened.
    pub(super) fn remove_next(&self) -> Result<(), VaultError> {
        let next = read(&self.next)?;
        private_files::remove(&self.next)?;
        if let Some(Kept::InStore(name)) = next {
            let is_in_use = matches!(read(&self.current)?, Some(Kept::InStore(current)) if current == name);
            if !is_in_use {
                self.forget(&name);
            }
        }
        Ok(())
    }

    /// Replaces the key file by the next one; both are durable, and the old key is gone, when this returns.
    pub(super) fn promote_next(&self) -> Result<(), VaultError> {
        self.is_next_in_use.store(true, Ordering::Release);
        let old = read(&self.current);
        fs::rename(&self.next, &self.current).map_err(FileError::at("replace", &self.current))?;
        self.is_next_in_use.store(false, Ordering::Release);
        self.current.parent().map_or(Ok(()), private_files::sync_directory)?;
        if let Ok(Some(Kept::InStore(name))) = old {
            self.forget(&name);
        }
        Ok(())
    }

    /// Moves the key in use to the store. If anything fails, the file still has it.
    pub(super) fn move_to_store(&self, key: &KeyBytes, observe: &dyn Fn(Step)) -> Result<(), VaultError> {
        self.put(key, observe)?;
        private_files::replace(&self.current, note(key).as_bytes())?;
        observe(Step::Noted);
        Ok(())
    }

    /// Moves the key in use to its file.
    pub(super) fn move_to_file(&self, key: &KeyBytes, observe: &dyn Fn(Step)) -> Result<(), VaultError> {
        private_files::replace(&self.current, key)?;
        observe(Step::Noted);
        self.forget(&name(key));
        observe(Step::Removed);
        Ok(())
    }

    /// Puts a key into the store, and reads it back: a store that says yes and forgets must not have the only copy.
    fn put(&self, key: &KeyBytes, observe: &dyn Fn(Step)) -> Result<(), VaultError> {
        let failed = |source| VaultError::KeyStore {
            path: self.current.clone(),
            source,
        };
        let store = self.store().map_err(failed)?;
        let name = name(key);
        store.save(&name, HEXLOWER.encode(key).as_bytes()).map_err(failed)?;
        observe(Step::Stored);
        if self.load(&name, &self.current)? != *key {
            return Err(failed(KeyStoreError::Broken(
                "it does not give back what it stored".to_owned(),
            )));
        }
        observe(Step::Verified);
        Ok(())
    }

    /// Removes a key that is not in use from the store. What cannot be removed stays: it opens nothing any more.
    fn forget(&self, name: &str) {
        let removed = self.store().and_then(|store| store.remove(name));
        if let Err(error) = removed {
            tracing::warn!(%error, name, "a key that is not in use stays in the desktop's key store");
        }
    }

    fn store(&self) -> Result<&dyn KeyStore, KeyStoreError> {
        let store = self.store.as_deref();
        store.ok_or_else(|| KeyStoreError::Absent("this process was started without one".to_owned()))
    }

    /// The key that a file has or names; `None` if there is no file.
    fn key_of(&self, path: &Path) -> Result<Option<KeyBytes>, VaultError> {
        match read(path)? {
            None => Ok(None),
            Some(Kept::Key(key)) => Ok(Some(key)),
            Some(Kept::InStore(name)) => self.load(&name, path).map(Some),
        }
    }

    /// The key of this name in the store, which the file at `path` says.
    fn load(&self, name: &str, path: &Path) -> Result<KeyBytes, VaultError> {
        let loaded = self.store().and_then(|store| store.load(name));
        let text = loaded.map_err(|source| VaultError::KeyStore {
            path: path.to_owned(),
            source,
        })?;
        let missing = || VaultError::NotInStore {
            path: path.to_owned(),
            name: name.to_owned(),
        };
        let key = HEXLOWER.decode(&text.ok_or_else(missing)?).ok();
        let key = key.and_then(|key| KeyBytes::try_from(key.as_slice()).ok());
        key.filter(|key| self::name(key) == name).ok_or_else(missing)
    }
}

/// The name of a key in the store.
fn name(key: &KeyBytes) -> String {
    let mut name = HEXLOWER.encode(&Sha256::digest(key));
    name.truncate(NAME_DIGITS);
    name
}

/// The content of a file whose key is in the store.
fn note(key: &KeyBytes) -> String {
    format!("{NOTE}{}\n", name(key))
}

/// What a file has; `None` if there is no file.
fn read(path: &Path) -> Result<Option<Kept>, VaultError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(FileError::at("open", path))?,
    };
    let mut bytes = Vec::new();
    // One byte more than either content, so that a file that is too long is noticed.
    let limit = NOTE.len() + NAME_DIGITS + "\n".len() + 1;
    file.take(limit as u64)
        .read_to_end(&mut bytes)
        .map_err(FileError::at("read", path))?;
    if let Some(name) = noted_name(&bytes) {
        return Ok(Some(Kept::InStore(name)));
    }
    let key = KeyBytes::try_from(bytes.as_slice()).map_err(|_| VaultError::Damaged {
        path: path.to_owned(),
        found: bytes.len(),
    })?;
    Ok(Some(Kept::Key(key)))
}

fn noted_name(bytes: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(bytes)
        .ok()?
        .strip_prefix(NOTE)?
        .strip_suffix('\n')?;
    let is_name = name.len() == NAME_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| name.to_owned())
}
