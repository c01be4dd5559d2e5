//! Lanes: threads on which sockets are read and files are written.
//!
//! A lane has its own reactor and may block on the disk. That is how a slow disk slows the sockets that feed it (no
//! buffers pile up in between), without ever blocking the threads that serve clients. Each file system has its own
//! lanes, so that one that hangs blocks only its own transfers.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio_util::task::LocalPoolHandle;

use crate::os;

/// The most file systems that get lanes of their own; any further one shares those of "unknown".
const MAX_DEVICES: usize = 32;

/// Threads per file system. More than this many transfers share them; a transfer itself runs on one.
const MAX_LANES: usize = 4;

/// How long the file system of a directory is cached. A transfer on the lanes of another file system is no error; it is
/// merely blocked when that one is.
const DEVICE_AGE: Duration = Duration::from_secs(5);

/// The lanes of all file systems, created on first use. Clones share them.
#[derive(Clone)]
pub struct Lanes {
    per_device: usize,
    pools: Arc<Mutex<Pools>>,
}

#[derive(Default)]
struct Pools {
    by_device: HashMap<Option<u64>, LocalPoolHandle>,
    /// Cache of the last directory's file system: consecutive files often go to one directory.
    last: Option<(PathBuf, Option<u64>, Instant)>,
}

/// The work on a lane panicked; the panic itself has been reported where it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the transfer stopped through a defect")]
pub struct Panicked;

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes")
            .field("per_device", &self.per_device)
            .finish_non_exhaustive()
    }
}

impl Default for Lanes {
    /// As many lanes per file system as the machine has processors, up to [`MAX_LANES`].
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            per_device: processors.min(MAX_LANES),
            pools: Arc::default(),
        }
    }
}

impl Lanes {
    /// Runs `work` on the least busy lane of the file system of `directory`, which need not exist yet. Dropping the
    /// returned future aborts the work.
    pub async fn run<F, Fut>(&self, directory: &Path, work: F) -> Result<Fut::Output, Panicked>
    where
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let handle = self.pool(directory).spawn_pinned(work);
        let _abort = AbortOnDrop(handle.abort_handle());
        handle.await.map_err(|_| Panicked)
    }

    fn pool(&self, directory: &Path) -> LocalPoolHandle {
        let known = match &self.lock().last {
            Some((last, device, at)) if last == directory && at.elapsed() < DEVICE_AGE => Some(*device),
            _ => None,
        };
        // Not under the lock, so that a disk that hangs blocks only its own transfers.
        let device = known.unwrap_or_else(|| directory.ancestors().find_map(os::device));
        let mut pools = self.lock();
        if known.is_none() {
            pools.last = Some((directory.to_owned(), device, Instant::now()));
        }
        let key = if pools.by_device.contains_key(&device) || pools.by_device.len() < MAX_DEVICES {
            device
        } else {
            None
        };
        pools
            .by_device
            .entry(key)
            .or_insert_with(|| LocalPoolHandle::new(self.per_device))
            .clone()
    }

    fn lock(&self) -> MutexGuard<'_, Pools> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    #[tokio::test]
    async fn work_need_not_be_send_and_its_result_comes_back() {
        let lanes = Lanes::default();
        let answer = lanes.run(Path::new("/nowhere/yet"), || async {
            let local = Rc::new(41);
            tokio::task::yield_now().await;
            *local + 1
        });
        assert_eq!(answer.await, Ok(42));
    }

    #[tokio::test]
    async fn a_panic_is_told_and_the_lane_goes_on() {
        let lanes = Lanes {
            per_device: 1,
            pools: Arc::default(),
        };
        let panicking = lanes.run(Path::new("/"), || async { panic!("as planned") });
        assert_eq!(panicking.await, Err::<(), _>(Panicked));
        assert_eq!(lanes.run(Path::new("/"), || async { 1 }).await, Ok(1));
    }
}
