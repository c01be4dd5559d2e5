//! The tasks that seed, those that wait for a slot, and when limits of time may be reached. Derived from the tasks alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::model::{
    seeding::{Limits, SeedSettings, SeedState},
    task::Task,
};

#[derive(Debug, Default)]
pub(crate) struct Seeds {
    /// The serials of those with a run.
    live: BTreeSet<u64>,
    /// Those that wait, by the order of the wait.
    waiting: BTreeSet<(u64, u64)>,
    /// When a limit of time may be reached, or the time is to be saved, by the engine's uptime.
    due: BTreeSet<(Duration, u64)>,
    /// The entry of each in `due`.
    due_of: BTreeMap<u64, Duration>,
    /// The order of the newest wait.
    pub(crate) last_wait: u64,
}

impl Seeds {
    pub(crate) fn list(&mut self, task: &Task, settings: &SeedSettings, uptime: Duration) {
        let Some(seeding) = task.seeding.as_deref() else { return };
        match seeding.state {
            SeedState::Waiting => {
                self.waiting.insert((seeding.order, task.serial));
            }
            SeedState::Seeding(_) => {
                self.live.insert(task.serial);
                let limits = Limits::of(&task.options().seed_limits, settings, task.total_bytes.unwrap_or(0));
                let due = seeding.due(&limits, uptime).into_iter().chain(seeding.save_due());
                if let Some(at) = due.min() {
                    self.due.insert((at, task.serial));
                    self.due_of.insert(task.serial, at);
                }
            }
            SeedState::Stopping(..) => {
                self.live.insert(task.serial);
            }
            SeedState::Downloading | SeedState::Ended(_) => {}
        }
    }

    pub(crate) fn delist(&mut self, task: &Task) {
        self.live.remove(&task.serial);
        if let Some(at) = self.due_of.remove(&task.serial) {
            self.due.remove(&(at, task.serial));
        }
        if let Some(seeding) = &task.seeding {
            self.waiting.remove(&(seeding.order, task.serial));
        }
    }

    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn all_live(&self) -> Vec<u64> {
        self.live.iter().copied().collect()
    }

    /// The first that waits.
    pub(crate) fn first(&self) -> Option<u64> {
        self.waiting.first().map(|(_, serial)| *serial)
    }

    pub(crate) fn all_waiting(&self) -> Vec<u64> {
        self.waiting.iter().map(|(_, serial)| *serial).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Those whose time is to be looked at by `uptime`.
    pub(crate) fn due(&self, uptime: Duration) -> Vec<u64> {
        let due = self.due.iter().take_while(|(at, _)| *at <= uptime);
        due.map(|(_, serial)| *serial).collect()
    }
}
