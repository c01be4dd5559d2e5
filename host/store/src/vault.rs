//! Seals secrets before they become rows, so that a copy of the database reveals none of them.

use std::{
    fs::File,
    io::{self, Read as _},
    path::PathBuf,
};

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit as _, Nonce,
    aead::{Aead as _, Payload},
};
use private_files::FileError;

use crate::data_dir::DataDir;

/// Name of the key file in the data directory.
const KEY_FILE: &str = "vault.key";

/// Length of the key.
const KEY_BYTES: usize = 32;

/// Length of the nonce that starts a sealed value. Random: 2^32 values under one key keep the chance of a repeat
/// below 2^-32, and we seal a few per task.
const NONCE_BYTES: usize = 12;

/// A key that seals values. Every value is bound to its context (`namespace/row`): a sealed value that is moved to
/// another row, changed or sealed with another key cannot be opened.
pub struct Vault(ChaCha20Poly1305);

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
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random(#[source] getrandom::Error),
}

/// Why a value was not sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The value was changed, belongs to another row, or was sealed with another key.
    #[error("a sealed value does not open: it was changed, moved, or sealed with another key file")]
    Forged,
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers")]
    Random,
}

impl Vault {
    /// The vault of a data directory; its key is created on first use. The lock on `dir` guarantees that no other
    /// process creates one meanwhile.
    pub fn open(dir: &DataDir) -> Result<Self, VaultError> {
        let path = dir.join(KEY_FILE);
        match File::open(&path) {
            Ok(file) => Self::read(file, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = random_key()?;
                private_files::replace(&path, &key)?;
                Ok(Self::with_key(&key))
            }
            Err(error) => Err(FileError::at("open", &path)(error).into()),
        }
    }

    /// A vault with a temporary key, for databases in memory.
    pub fn ephemeral() -> Result<Self, VaultError> {
        Ok(Self::with_key(&random_key()?))
    }

    /// Seals `plain` for the row that `context` names.
    pub fn seal(&self, context: &str, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce).map_err(|_| SealError::Random)?;
        let payload = Payload {
            msg: plain,
            aad: context.as_bytes(),
        };
        let sealed = self
            .0
            .encrypt(&Nonce::from(nonce), payload)
            .map_err(|_| SealError::Forged)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what [`Vault::seal`] made for the same `context`.
    pub fn unseal(&self, context: &str, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>().ok_or(SealError::Forged)?;
        let payload = Payload {
            msg: sealed,
            aad: context.as_bytes(),
        };
        self.0
            .decrypt(&Nonce::from(*nonce), payload)
            .map_err(|_| SealError::Forged)
    }

    fn with_key(key: &[u8; KEY_BYTES]) -> Self {
        Self(ChaCha20Poly1305::new(&(*key).into()))
    }

    fn read(file: File, path: PathBuf) -> Result<Self, VaultError> {
        let mut bytes = Vec::with_capacity(KEY_BYTES);
        // One byte more than a key, so that a file that is too long is noticed.
        let limit = KEY_BYTES as u64 + 1;
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(FileError::at("read", &path))?;
        let key = <[u8; KEY_BYTES]>::try_from(bytes.as_slice()).map_err(|_| VaultError::Damaged {
            path,
            found: bytes.len(),
        })?;
        Ok(Self::with_key(&key))
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault(***)")
    }
}

fn random_key() -> Result<[u8; KEY_BYTES], VaultError> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(VaultError::Random)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn dir() -> (tempfile::TempDir, DataDir) {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(root.path().join("data")).unwrap();
        (root, dir)
    }

    #[test]
    fn a_value_opens_with_the_same_key_after_a_restart() {
        let (_root, dir) = dir();
        let sealed = Vault::open(&dir).unwrap().seal("task/1", b"secret").unwrap();
        assert_eq!(Vault::open(&dir).unwrap().unseal("task/1", &sealed).unwrap(), b"secret");
        assert!(!sealed.windows(6).any(|window| window == b"secret"));
    }

    #[test]
    fn a_value_that_was_moved_or_changed_does_not_open() {
        let (_root, dir) = dir();
        let vault = Vault::open(&dir).unwrap();
        let sealed = vault.seal("task/1", b"secret").unwrap();
        assert_eq!(vault.unseal("task/2", &sealed), Err(SealError::Forged));
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert_eq!(vault.unseal("task/1", &changed), Err(SealError::Forged), "byte {index}");
        }
        assert_eq!(vault.unseal("task/1", &sealed[..5]), Err(SealError::Forged));
        assert_eq!(
            Vault::ephemeral().unwrap().unseal("task/1", &sealed),
            Err(SealError::Forged)
        );
    }

    #[test]
    fn a_damaged_key_file_is_an_error_and_never_replaced() {
        let (_root, dir) = dir();
        fs::write(dir.join(KEY_FILE), b"short").unwrap();
        assert!(matches!(Vault::open(&dir), Err(VaultError::Damaged { found: 5, .. })));
        assert_eq!(fs::read(dir.join(KEY_FILE)).unwrap(), b"short");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_root, dir) = dir();
        Vault::open(&dir).unwrap();
        assert_eq!(
            fs::metadata(dir.join(KEY_FILE)).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}
