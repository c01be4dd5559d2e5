//! A queue with its pending tasks, in the order in which they start, and the number of live runs.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    model::queue::Queue,
    model::task::{Phase, Task},
};

/// Explicit order and serial: tasks with an explicit order first, then by age.
type Position = (u32, u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueState {
    pub(crate) queue: Arc<Queue>,
    pending: BTreeSet<Position>,
    /// Those of them that the user resumed: they run although the queue is stopped.
    forced: BTreeSet<Position>,
    /// The number of live runs.
    pub(crate) active: u32,
}

impl QueueState {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self {
            queue,
            pending: BTreeSet::new(),
            forced: BTreeSet::new(),
            active: 0,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.queue.spec.max_concurrent == 0 || self.active < self.queue.spec.max_concurrent
    }

    /// The serial of the next task that may start.
    pub(crate) fn first(&self) -> Option<u64> {
        let line = if self.queue.is_running {
            &self.pending
        } else {
            &self.forced
        };
        line.first().map(|(_, serial)| *serial)
    }

    pub(crate) fn add_to_queue(&mut self, task: &Task) {
        if task.phase == Phase::Pending {
            self.pending.insert(position(task));
            if task.is_forced {
                self.forced.insert(position(task));
            }
        }
        self.active += u32::from(task.run().is_some());
    }

    pub(crate) fn delist(&mut self, task: &Task) {
        self.pending.remove(&position(task));
        self.forced.remove(&position(task));
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
