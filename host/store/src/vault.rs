//! Seals secrets before they become rows, so that a copy of the database reveals none of them.

mod keeping;
mod key_files;
mod rotation;
mod sealing;

use std::{
    path::PathBuf,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use chacha20poly1305::ChaCha20Poly1305;
use key_store::KeyStoreError;
use private_files::FileError;
use rusqlite::{Connection, OptionalExtension as _};
use tokio::sync::Mutex;

use crate::{
    data_dir::DataDir,
    database::{ReadError, Store},
    vault::{
        key_files::{KeyFiles, Step},
        sealing::{KEY_BYTES, KeyBytes, cipher, random_key, seal, unseal},
    },
};

pub use keeping::{KeyKeeping, KeyPlace};
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
    /// The key is in the desktop's key store, which cannot be used now.
    #[error(
        "the secrets of this data directory are sealed with a key that is in the desktop's key store, as {} says; \
         nothing was changed. Start again when the store can be used. To have the key in the file instead, for example \
         to move the directory to a server, start once on that desktop with --keys file",
        path.display()
    )]
    KeyStore {
        /// The file that says so.
        path: PathBuf,
        /// Why it cannot be used.
        #[source]
        source: KeyStoreError,
    },
    /// The key is not in the desktop's key store any more.
    #[error(
        "the secrets of this data directory are sealed with the key {name} of the desktop's key store, as {} says, and the \
         store does not have it; nothing was changed. Restore the keyring from a backup, or the file, and start again",
        path.display()
    )]
    NotInStore {
        /// The file that says so.
        path: PathBuf,
        /// The name that the key has in the store.
        name: String,
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
        Self::open_keeping(dir, store, KeyKeeping::default()).await
    }

    /// [`Vault::open`] with a key that may be in the desktop's key store, and is moved to where it should be. If it is
    /// there and cannot be read, this fails and changes nothing.
    pub async fn open_keeping(dir: &DataDir, store: &Store, keeping: KeyKeeping) -> Result<Self, VaultError> {
        Self::open_observed(dir, store, keeping, |_| ()).await
    }

    /// `observe` is called at each step of a move of the key, by the thread that does it.
    async fn open_observed(
        dir: &DataDir,
        store: &Store,
        keeping: KeyKeeping,
        observe: impl Fn(Step) + Send + 'static,
    ) -> Result<Self, VaultError> {
        let KeyKeeping { store: keys, place } = keeping;
        let files = KeyFiles::of(dir, keys);
        let mark = store.read(read_mark).await?;
        // The key store answers over a socket.
        let opening = tokio::task::spawn_blocking(move || {
            let key = choose(&files, mark.as_deref())?;
            keeping::apply(&files, place, &key, &observe)?;
            Ok(Self::with_key(&key, Some(files)))
        });
        opening.await.expect("opening does not panic and is not cancelled")
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
    let Some(mark) = mark else {
        let current = files.read_current()?;
        files.remove_next()?;
        if let Some(key) = current {
            return Ok(key);
        }
        let key = random_key().map_err(VaultError::Random)?;
        files.write_current(&key)?;
        return Ok(key);
    };
    let opens = |key: &KeyBytes| unseal(&cipher(key), MARK, mark).is_ok();
    let current = files.read_current();
    if let Ok(Some(key)) = &current
        && opens(key)
    {
        files.remove_next()?;
        return Ok(*key);
    }
    // What a rotation left goes before an error of the old key, which its store may not have any more.
    let next = files.read_next();
    if let Ok(Some(key)) = &next
        && opens(key)
    {
        files.promote_next()?;
        return Ok(*key);
    }
    current?;
    next?;
    Err(VaultError::WrongKey {
        path: files.current().to_owned(),
    })
}

#[cfg(test)]
mod tests;
