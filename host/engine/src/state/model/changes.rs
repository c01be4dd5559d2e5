//! The changes of one input, until they are turned into rows and events.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use crate::{
    milestone::TaskMilestone,
    model::{
        group::Group,
        id::{GroupId, TaskId},
        task::Task,
    },
    state::step::{Effect, Row},
};

#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each list that changed as a whole is published once"
)]
pub(crate) struct Changes {
    pub(crate) tasks: BTreeMap<u64, Saving>,
    pub(crate) deleted: Vec<TaskId>,
    pub(crate) rows: Vec<Row>,
    pub(crate) queues: bool,
    pub(crate) groups_added: Vec<Arc<Group>>,
    pub(crate) groups_deleted: Vec<GroupId>,
    pub(crate) settings: bool,
    pub(crate) sites: bool,
    pub(crate) boost: bool,
    /// What tasks reached, by their serials.
    pub(crate) reached: Vec<(TaskMilestone, u64)>,
    /// Deleted tasks that had neither completed nor failed.
    pub(crate) cancelled: Vec<Arc<Task>>,
    /// Effects that wait for the rows.
    pub(crate) after_save: Vec<Effect>,
    /// Rows that could not be saved. Only their keys matter; their content may be outdated.
    pub(crate) unsaved: Vec<Row>,
}

/// How much of a changed task must be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Saving {
    /// Nothing: a started run is pending again after a restart.
    Nothing,
    /// All but the specification.
    State,
    /// All.
    Whole,
}

impl Changes {
    pub(crate) fn keep_unsaved(&mut self, rows: Vec<Row>) {
        self.unsaved.extend(rows);
        // Of the rows of one thing the last one is enough: saving may fail for hours.
        let mut seen = HashSet::new();
        let mut kept: Vec<_> = self
            .unsaved
            .drain(..)
            .rev()
            .filter(|row| seen.insert(row.key()))
            .collect();
        kept.reverse();
        self.unsaved = kept;
    }

    pub(crate) fn has_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }
}
