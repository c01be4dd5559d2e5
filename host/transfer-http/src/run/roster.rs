//! The workers of a run: which there are, what each has brought, and which are to end.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
};

use crate::run::plan::WorkerId;

#[derive(Default)]
pub(crate) struct Roster {
    /// What each worker at work has brought, in bytes.
    pub(crate) brought: RefCell<BTreeMap<WorkerId, u64>>,
    retired: RefCell<BTreeSet<WorkerId>>,
    next: Cell<u32>,
}

impl Roster {
    pub(crate) fn new_worker(&self) -> WorkerId {
        WorkerId(self.next.replace(self.next.get() + 1))
    }

    pub(crate) fn is_retired(&self, worker: WorkerId) -> bool {
        self.retired.borrow().contains(&worker)
    }

    /// Tells the newest of `workers` beyond `wanted` to end.
    pub(crate) fn retire_surplus(&self, workers: impl Iterator<Item = WorkerId>, wanted: usize) {
        let mut retired = self.retired.borrow_mut();
        let surplus: Vec<_> = workers
            .filter(|worker| !retired.contains(worker))
            .skip(wanted)
            .collect();
        retired.extend(surplus);
    }
}
