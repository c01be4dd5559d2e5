//! Sums over all tasks, kept up as their statuses change.

use std::{collections::HashMap, time::Duration};

use engine::{Settings, Speeds, TaskId};
use protocol::{RuntimeStats, TaskStatus};
use tokio::time::Instant;

/// Publishing interval while the sums change.
const STATS_EVERY: Duration = Duration::from_millis(500);

/// What of a task is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) status: TaskStatus,
    /// It has a run that uploads the finished file.
    pub(super) is_seeding: bool,
}

/// Bytes per second.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rates {
    pub(super) download: u64,
    pub(super) upload: u64,
}

#[derive(Debug, Default)]
pub(super) struct Sums {
    known: HashMap<TaskId, Counted>,
    active: u64,
    pending: u64,
    seeding: u64,
    /// Of all runs, as last sampled.
    rates: Rates,
    /// The last published sums.
    published: RuntimeStats,
    /// Set while there are unpublished changes.
    pub(super) publish_at: Option<Instant>,
}

impl Sums {
    /// Rebuilds the sums from a snapshot.
    pub(super) fn start_over(&mut self, tasks: HashMap<TaskId, Counted>) {
        (self.active, self.pending, self.seeding) = (0, 0, 0);
        for counted in tasks.values() {
            self.count(Some(*counted), 1);
        }
        self.known = tasks;
    }

    /// Returns the previous status; `None` if the task is new.
    pub(super) fn set(&mut self, task: TaskId, now: Counted) -> Option<TaskStatus> {
        let before = self.known.insert(task, now);
        if before != Some(now) {
            self.count(before, -1);
            self.count(Some(now), 1);
        }
        before.map(|before| before.status)
    }

    pub(super) fn remove(&mut self, task: TaskId) {
        let before = self.known.remove(&task);
        self.count(before, -1);
    }

    pub(super) fn sampled(&mut self, rates: Rates) {
        self.rates = rates;
    }

    fn count(&mut self, task: Option<Counted>, change: i64) {
        let Some(Counted { status, is_seeding }) = task else {
            return;
        };
        let add = |counter: &mut u64| *counter = counter.saturating_add_signed(change);
        match status {
            TaskStatus::Downloading | TaskStatus::Preparing => add(&mut self.active),
            TaskStatus::Pending => add(&mut self.pending),
            _ => {}
        }
        if is_seeding {
            add(&mut self.seeding);
        }
    }

    pub(super) fn changed(&mut self) {
        self.publish_at.get_or_insert_with(|| Instant::now() + STATS_EVERY);
    }

    pub(super) fn stats(
        &mut self,
        (save_dir, disk_free_bytes): (String, Option<u64>),
        settings: &Settings,
    ) -> RuntimeStats {
        let Speeds { download, upload } = settings.speeds();
        if self.active == 0 {
            self.rates.download = 0;
            if self.seeding == 0 {
                self.rates.upload = 0;
            }
        }
        RuntimeStats {
            active_tasks: self.active,
            pending_tasks: self.pending,
            seeding_tasks: self.seeding,
            total_download_bps: self.rates.download,
            total_upload_bps: self.rates.upload,
            download_limit_bps: download,
            upload_limit_bps: upload,
            turtle: settings.is_turtle,
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
