//! A queue's tasks that wait, in the order of their turns, and how many run.

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    model::queue::Queue,
    model::task::{Phase, Task},
};

/// A place in line: tasks with an explicit place first, then by age.
type Turn = (u32, u64);

/// A queue and its tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) queue: Arc<Queue>,
    /// Tasks that wait for a run.
    pending: BTreeSet<Turn>,
    /// Those of them that the user started by hand: they run although the queue stands still.
    forced: BTreeSet<Turn>,
    /// Live runs.
    pub(crate) active: u32,
}

impl Lane {
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

    /// The serial of the task whose turn is next, if any may start.
    pub(crate) fn first(&self) -> Option<u64> {
        let line = if self.queue.is_running {
            &self.pending
        } else {
            &self.forced
        };
        line.first().map(|(_, serial)| *serial)
    }

    pub(crate) fn enlist(&mut self, task: &Task) {
        if task.phase == Phase::Pending {
            self.pending.insert(turn(task));
            if task.is_forced {
                self.forced.insert(turn(task));
            }
        }
        self.active += u32::from(task.run().is_some());
    }

    pub(crate) fn delist(&mut self, task: &Task) {
        self.pending.remove(&turn(task));
        self.forced.remove(&turn(task));
        self.active -= u32::from(task.run().is_some());
    }
}

fn turn(task: &Task) -> Turn {
    let place = if task.queue_order == 0 {
        u32::MAX
    } else {
        task.queue_order
    };
    (place, task.serial)
}
