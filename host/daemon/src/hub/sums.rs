//! Sums over all tasks, kept up as their statuses change.

use std::{collections::HashMap, time::Duration};

use engine::TaskId;
use protocol::{RuntimeStats, TaskStatus};
use tokio::time::Instant;

/// Publishing interval while the sums change.
const STATS_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Sums {
    statuses: HashMap<TaskId, TaskStatus>,
    active: u64,
    pending: u64,
    /// Of all runs, as last sampled.
    download_bps: u64,
    /// The last published sums.
    published: RuntimeStats,
    /// Set while there are unpublished changes.
    pub(super) publish_at: Option<Instant>,
}

impl Sums {
    /// Rebuilds the sums from a snapshot.
    pub(super) fn start_over(&mut self, statuses: HashMap<TaskId, TaskStatus>) {
        self.active = 0;
        self.pending = 0;
        for status in statuses.values() {
            count(&mut self.active, &mut self.pending, Some(*status), 1);
        }
        self.statuses = statuses;
    }

    /// Returns the previous status; `None` if the task is new.
    pub(super) fn set(&mut self, task: TaskId, status: TaskStatus) -> Option<TaskStatus> {
        let before = self.statuses.insert(task, status);
        if before != Some(status) {
            count(&mut self.active, &mut self.pending, before, -1);
            count(&mut self.active, &mut self.pending, Some(status), 1);
        }
        before
    }

    pub(super) fn remove(&mut self, task: TaskId) {
        let before = self.statuses.remove(&task);
        count(&mut self.active, &mut self.pending, before, -1);
    }

    pub(super) fn sampled(&mut self, download_bps: u64) {
        self.download_bps = download_bps;
    }

    pub(super) fn changed(&mut self) {
        self.publish_at.get_or_insert_with(|| Instant::now() + STATS_EVERY);
    }

    pub(super) fn stats(&mut self, (save_dir, disk_free_bytes): (String, Option<u64>)) -> RuntimeStats {
        if self.active == 0 {
            self.download_bps = 0;
        }
        RuntimeStats {
            active_tasks: self.active,
            pending_tasks: self.pending,
            total_download_bps: self.download_bps,
            total_upload_bps: 0,
            disk_free_bytes,
            save_dir,
        }
    }

    /// Whether `stats` differ from the last published ones. If so, they become the last published ones.
    pub(super) fn replace_published(&mut self, stats: &RuntimeStats) -> bool {
        self.publish_at = None;
        let replace_published = *stats != self.published;
        self.published.clone_from(stats);
        replace_published
    }
}

fn count(active: &mut u64, pending: &mut u64, status: Option<TaskStatus>, change: i64) {
    let counter = match status {
        Some(TaskStatus::Downloading | TaskStatus::Preparing) => active,
        Some(TaskStatus::Pending) => pending,
        _ => return,
    };
    *counter = counter.saturating_add_signed(change);
}
