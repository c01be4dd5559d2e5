//! The workers of a run: the bytes that each has received, and which must end.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use transfer::run::WorkerId;

#[derive(Default)]
pub(crate) struct ActiveWorkers {
    /// Bytes received by each active worker.
    pub(crate) received: RefCell<BTreeMap<WorkerId, u64>>,
    /// The mirror of each worker that a server has begun to send to.
    pub(crate) served: RefCell<BTreeMap<WorkerId, usize>>,
    retired: RefCell<BTreeSet<WorkerId>>,
    next: Cell<u32>,
}

impl ActiveWorkers {
    pub(crate) fn new_worker(&self) -> WorkerId {
        WorkerId(self.next.replace(self.next.get() + 1))
    }

    pub(crate) fn is_retired(&self, worker: WorkerId) -> bool {
        self.retired.borrow().contains(&worker)
    }

    /// Retires the newest of `workers` beyond `wanted`.
    pub(crate) fn retire_surplus(&self, workers: impl Iterator<Item = WorkerId>, wanted: usize) {
        let mut retired = self.retired.borrow_mut();
        let surplus: Vec<_> = workers
            .filter(|worker| !retired.contains(worker))
            .skip(wanted)
            .collect();
        retired.extend(surplus);
    }
}
