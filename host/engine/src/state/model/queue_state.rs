//! A queue with its waiting tasks, in the order in which they start, and the number of live runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{
    model::account::AccountKey,
    model::queue::Queue,
    model::task::{Phase, Task},
};

/// Explicit order and serial: tasks with an explicit order first, then by age.
type Position = (u32, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueState {
    pub(crate) queue: Arc<Queue>,
    pending: Line,
    /// Tasks that start once their account has room.
    limited: BTreeMap<AccountKey, Line>,
    /// The serials of those that will run without being in a line now: they wait for a retry or a file operation.
    held: BTreeSet<u64>,
    /// The number of live runs.
    pub(crate) active: u32,
}

/// Waiting tasks in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Line {
    all: BTreeSet<Position>,
    /// Those of them that the user resumed: they run although the queue is stopped.
    forced: BTreeSet<Position>,
}

impl Line {
    fn insert(&mut self, task: &Task) {
        self.all.insert(position(task));
        if task.is_forced {
            self.forced.insert(position(task));
        }
    }

    fn remove(&mut self, task: &Task) {
        self.all.remove(&position(task));
        self.forced.remove(&position(task));
    }

    fn first(&self, is_running: bool) -> Option<Position> {
        let line = if is_running { &self.all } else { &self.forced };
        line.first().copied()
    }
}

impl QueueState {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self {
            queue,
            pending: Line::default(),
            limited: BTreeMap::new(),
            held: BTreeSet::new(),
            active: 0,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.queue.spec.max_concurrent == 0 || self.active < self.queue.spec.max_concurrent
    }

    /// Whether none of its tasks runs or will run by itself.
    pub(crate) fn is_drained(&self) -> bool {
        self.active == 0 && self.pending.all.is_empty() && self.limited.is_empty() && self.held.is_empty()
    }

    /// The serial of the next task that may start, given which accounts have room.
    pub(crate) fn first(&self, has_room: impl Fn(&AccountKey) -> bool) -> Option<u64> {
        let limited = self.limited.iter().filter(|(account, _)| has_room(account));
        let lines = limited.map(|(_, line)| line).chain([&self.pending]);
        let firsts = lines.filter_map(|line| line.first(self.queue.is_running));
        firsts.min().map(|(_, serial)| serial)
    }

    pub(crate) fn add_to_queue(&mut self, task: &Task) {
        match &task.phase {
            Phase::Retrying(_) => {
                self.held.insert(task.serial);
            }
            Phase::Pending if task.is_settling() => {
                self.held.insert(task.serial);
            }
            Phase::Pending => self.pending.insert(task),
            Phase::AccountLimited(wait) => self.limited.entry(wait.account.clone()).or_default().insert(task),
            _ => {}
        }
        self.active += u32::from(task.run().is_some());
    }

    pub(crate) fn delist(&mut self, task: &Task) {
        self.pending.remove(task);
        self.held.remove(&task.serial);
        if let Some(account) = task.limited_account()
            && let Some(line) = self.limited.get_mut(account)
        {
            line.remove(task);
            if line.all.is_empty() {
                self.limited.remove(account);
            }
        }
        self.active -= u32::from(task.run().is_some());
    }
}

fn position(task: &Task) -> Position {
    let place = if task.queue_order == 0 {
        u32::MAX
    } else {
        task.queue_order
    };
    (place, task.serial)
}
