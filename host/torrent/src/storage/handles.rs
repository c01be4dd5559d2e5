//! Open files: few of them, however many files and torrents there are.

use std::{
    collections::HashMap,
    fs::File,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Files that a session keeps open. Together with its sockets well below the usual limit of 1,024.
const MAX_OPEN: usize = 128;

/// A file of a torrent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) storage: u64,
    pub(crate) file: u32,
}

/// The files that a session has open; the one that was not used for longest is closed for another.
#[derive(Debug, Default)]
pub(crate) struct Handles {
    open: Mutex<Open>,
    storages: AtomicU64,
}

#[derive(Debug, Default)]
struct Open {
    files: HashMap<Key, (Arc<File>, u64)>,
    uses: u64,
}

impl Handles {
    /// A number for a torrent's files.
    pub(crate) fn number(&self) -> u64 {
        self.storages.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, key: Key) -> Option<Arc<File>> {
        let mut open = self.lock();
        open.uses += 1;
        let now = open.uses;
        let (file, used) = open.files.get_mut(&key)?;
        *used = now;
        Some(Arc::clone(file))
    }

    pub(crate) fn put(&self, key: Key, file: File) -> Arc<File> {
        let file = Arc::new(file);
        let mut open = self.lock();
        if open.files.len() >= MAX_OPEN {
            let oldest = open
                .files
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| *key);
            if let Some(oldest) = oldest {
                open.files.remove(&oldest);
            }
        }
        open.uses += 1;
        let now = open.uses;
        open.files.insert(key, (Arc::clone(&file), now));
        file
    }

    /// Closes the files of a torrent: they are renamed or deleted.
    pub(crate) fn forget(&self, storage: u64) {
        self.lock().files.retain(|key, _| key.storage != storage);
    }

    /// Files that are open.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().files.len()
    }
}
