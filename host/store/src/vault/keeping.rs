//! Where the key is kept: in its file, or in the desktop's key store with a note in the file.
//!
//! A move is safe against a crash at every point. The file is replaced in one step, and only after the key was read back
//! from the store; an item that is left over in the store is the same key, and is used by the next attempt.

use std::{fmt, sync::Arc};

use key_store::KeyStore;

use crate::vault::{
    VaultError,
    key_files::{KeyFiles, Step},
    sealing::KeyBytes,
};

/// Where a key should be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyPlace {
    /// Where it is; a new one in its file. For servers, which have no key store.
    #[default]
    AsIs,
    /// In its file; moved there if it is in the store.
    File,
    /// In the desktop's key store, if it is there and unlocked; else it stays in its file.
    Desktop,
}

/// The key store, if this system could have one, and where the key should be.
#[derive(Default, Clone)]
pub struct KeyKeeping {
    /// Needed also to read a key that is kept there.
    pub store: Option<Arc<dyn KeyStore>>,
    /// Where the key should be.
    pub place: KeyPlace,
}

impl fmt::Debug for KeyKeeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyKeeping({:?})", self.place)
    }
}

/// Moves the key in use to its place. A store that cannot be used now leaves it in its file.
pub(super) fn apply(
    files: &KeyFiles,
    place: KeyPlace,
    key: &KeyBytes,
    observe: &dyn Fn(Step),
) -> Result<(), VaultError> {
    match place {
        KeyPlace::Desktop if !files.is_in_store()? => {
            if let Err(error) = files.move_to_store(key, observe) {
                let error: &dyn std::error::Error = &error;
                let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
                tracing::info!(why, "the key of the stored secrets stays in its file");
            }
            Ok(())
        }
        KeyPlace::File if files.is_in_store()? => files.move_to_file(key, observe),
        KeyPlace::AsIs | KeyPlace::File | KeyPlace::Desktop => Ok(()),
    }
}
