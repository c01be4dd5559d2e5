//! Seals secrets before they become rows, so that a copy of the database reveals none of them.

mod key_files;
mod rotation;
mod sealing;

use std::{
    path::PathBuf,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use chacha20poly1305::ChaCha20Poly1305;
use private_files::FileError;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::Mutex;

use crate::{
    data_dir::DataDir,
    database::{ReadError, Store},
    vault::{
        key_files::KeyFiles,
        sealing::{KEY_BYTES, KeyBytes, cipher, random_key, seal, unseal},
    },
};

pub use rotation::{RotateError, SealedColumn};
pub use sealing::SealError;

/// The context of the row that only the key in use opens.
const MARK: &str = "store.vault/mark";

/// A key that seals values. Every value is bound to its context (`namespace/row`): a sealed value that is moved to
/// another row, changed or sealed with another key cannot be opened.
///
/// The key can be replaced ([`Vault::rotate`]). A value must therefore be sealed within the write that stores it, and
/// opened within the read that fetches it: between the two, the key in use may become another one.
pub struct Vault {
    keys: RwLock<Keys>,
    /// `None`: the key is temporary.
    files: Option<KeyFiles>,
    /// Held by a rotation.
    rotation: Mutex<()>,
}

struct Keys {
    /// Seals.
    current: ChaCha20Poly1305,
    /// Opens, too, during a rotation: reads see the database as it was before, or as it is after.
    other: Option<ChaCha20Poly1305>,
}

/// Why there is no vault.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The key file cannot be read or created.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key file is not a key.
    #[error("the key file {} has {found} bytes instead of {KEY_BYTES}; restore it from a backup", path.display())]
    Damaged {
        /// The key file.
        path: PathBuf,
        /// Its length.
        found: usize,
    },
    /// Neither key file has the key in use.
    #[error("the key file {} is missing or not the one that the secrets are sealed with; restore it from a backup", path.display())]
    WrongKey {
        /// The key file.
        path: PathBuf,
    },
    /// The database does not say which key is in use.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random(#[source] getrandom::Error),
}

impl Vault {
    /// The vault of a data directory with this database; its key is created on first use. A rotation that a crash
    /// interrupted is finished or undone, as the database says. The lock on `dir` guarantees that no other process
    /// creates a key meanwhile.
    pub async fn open(dir: &DataDir, store: &Store) -> Result<Self, VaultError> {
        let files = KeyFiles::of(dir);
        let mark = store.read(read_mark).await?;
        let key = choose(&files, mark.as_deref())?;
        Ok(Self::with_key(&key, Some(files)))
    }

    /// A vault with a temporary key, for databases in memory.
    pub fn ephemeral() -> Result<Self, VaultError> {
        Ok(Self::with_key(&random_key().map_err(VaultError::Random)?, None))
    }

    /// Seals `plain` for the row that `context` names.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        seal(&self.keys().current, context, plain)
    }

    /// Opens what [`Vault::seal`] made for the same `context`.
    pub fn unseal(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let keys = self.keys();
        unseal(&keys.current, context, sealed).or_else(|error| match &keys.other {
            Some(other) => unseal(other, context, sealed),
            None => Err(error),
        })
    }

    fn with_key(key: &KeyBytes, files: Option<KeyFiles>) -> Self {
        let keys = Keys {
            current: cipher(key),
            other: None,
        };
        Self {
            keys: RwLock::new(keys),
            files,
            rotation: Mutex::default(),
        }
    }

    fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn keys_mut(&self) -> RwLockWriteGuard<'_, Keys> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(***)")
    }
}

fn read_mark(connection: &Connection) -> rusqlite::Result<Option<Vec<u8>>> {
    let sql = "SELECT sealed FROM vault";
    connection.query_row(sql, [], |row| row.get(0)).optional()
}

/// The key in use: the one that opens the mark, which a rotation replaces together with all values. Without a mark there
/// was no rotation.
fn choose(files: &KeyFiles, mark: Option<&[u8]>) -> Result<KeyBytes, VaultError> {
    let current = files.read_current()?;
    let Some(mark) = mark else {
        files.remove_next()?;
        if let Some(key) = current {
            return Ok(key);
        }
        let key = random_key().map_err(VaultError::Random)?;
        files.write_current(&key)?;
        return Ok(key);
    };
    let opens = |key: &KeyBytes| unseal(&cipher(key), MARK, mark).is_ok();
    if let Some(key) = current.filter(opens) {
        files.remove_next()?;
        return Ok(key);
    }
    let key = files.read_next()?.filter(opens);
    let key = key.ok_or_else(|| VaultError::WrongKey {
        path: files.current().to_owned(),
    })?;
    files.promote_next()?;
    Ok(key)
}

#[cfg(test)]
mod tests;
