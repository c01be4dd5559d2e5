//! The default download directory and its free space, measured in the background because a network disk may block.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::Settings;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

const MAX_AGE: Duration = Duration::from_secs(5);

/// Not measured yet, or the measurement failed.
const UNKNOWN: u64 = u64::MAX;

#[derive(Debug)]
pub(crate) struct FreeSpace {
    default_dir: PathBuf,
    tracker: TaskTracker,
    bytes: Arc<AtomicU64>,
    is_looking: Arc<AtomicBool>,
    looked_at: Option<(PathBuf, Instant)>,
}

impl FreeSpace {
    pub(crate) fn new(default_dir: PathBuf, tracker: TaskTracker) -> Self {
        Self {
            default_dir,
            tracker,
            bytes: Arc::new(AtomicU64::new(UNKNOWN)),
            is_looking: Arc::default(),
            looked_at: None,
        }
    }

    /// The directory and the last measurement; starts a new measurement if that is older than [`MAX_AGE`].
    pub(crate) fn look(&mut self, settings: &Settings) -> (String, Option<u64>) {
        let dir = settings
            .default_save_dir
            .clone()
            .unwrap_or_else(|| self.default_dir.clone());
        let shown = dir.display().to_string();
        let is_current = self
            .looked_at
            .as_ref()
            .is_some_and(|(of, at)| *of == dir && at.elapsed() < MAX_AGE);
        if !is_current && !self.is_looking.swap(true, Ordering::AcqRel) {
            self.looked_at = Some((dir.clone(), Instant::now()));
            let (bytes, is_looking) = (Arc::clone(&self.bytes), Arc::clone(&self.is_looking));
            self.tracker.spawn_blocking(move || {
                bytes.store(free_bytes(&dir).unwrap_or(UNKNOWN), Ordering::Release);
                is_looking.store(false, Ordering::Release);
            });
        }
        let bytes = self.bytes.load(Ordering::Acquire);
        (shown, (bytes != UNKNOWN).then_some(bytes))
    }
}

/// Bytes available to the user below `dir`, or below its nearest parent that exists.
pub(crate) fn free_bytes(dir: &Path) -> Option<u64> {
    let existing = dir.ancestors().find(|dir| dir.exists())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
