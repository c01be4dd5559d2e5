//! The tasks in order of creation, as a persistent list: clones are cheap, so a streamed response keeps the list that
//! it began with while events change the current one. Pure.

use std::{collections::BTreeMap, sync::Arc};

use protocol::TaskStatus;

use super::packed::Packed;

/// Tasks per block. A change while a clone exists copies one block, so blocks are small; a clone copies one pointer per
/// block, so there are few.
const BLOCK: u64 = 256;

/// The packed JSON of a task and the members that lists are filtered by.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) packed: Packed,
    pub(crate) id: Arc<str>,
    pub(crate) queue: Arc<str>,
    pub(crate) group: Arc<str>,
    pub(crate) status: TaskStatus,
    pub(crate) seeding_status: u8,
    pub(crate) is_torrent: bool,
    pub(crate) created_at: u64,
    /// 0 while it is not completed.
    pub(crate) completed_at: u64,
    /// The position in the queue; 0 orders by age.
    pub(crate) queue_order: u32,
}

impl Task {
    /// Parsed when a list asks for it, so that tags cost no memory beside the task's own.
    pub(crate) fn has_tag(&self, tag: &str) -> bool {
        let mut has = false;
        self.packed.members(&mut |name, value| {
            if name == "tags" {
                has = serde_json::from_str::<Vec<String>>(value).is_ok_and(|tags| tags.iter().any(|own| own == tag));
            }
        });
        has
    }
}

type Placed = (u64, Arc<Task>);

/// Ordered by place, oldest first. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskList(BTreeMap<u64, Arc<Vec<Placed>>>);

impl TaskList {
    pub(crate) fn get(&self, place: u64) -> Option<&Arc<Task>> {
        let tasks = self.0.get(&(place / BLOCK))?;
        let index = tasks.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&tasks[index].1)
    }

    pub(crate) fn put(&mut self, place: u64, task: Arc<Task>) {
        let tasks = Arc::make_mut(self.0.entry(place / BLOCK).or_default());
        match tasks.binary_search_by_key(&place, |(place, _)| *place) {
            Ok(index) => tasks[index].1 = task,
            Err(index) => tasks.insert(index, (place, task)),
        }
    }

    pub(crate) fn remove(&mut self, place: u64) {
        let Some(tasks) = self.0.get_mut(&(place / BLOCK)) else {
            return;
        };
        let tasks = Arc::make_mut(tasks);
        tasks.retain(|(held, _)| *held != place);
        if tasks.is_empty() {
            self.0.remove(&(place / BLOCK));
        }
    }

    /// Iterates over the tasks before a place, oldest first.
    pub(crate) fn before(mut self, end: u64) -> impl DoubleEndedIterator<Item = Placed> + Send + use<> {
        self.0.split_off(&(end / BLOCK).saturating_add(1));
        let tasks = self.0.into_values();
        let placed = |tasks: Arc<Vec<Placed>>| (0..tasks.len()).map(move |index| tasks[index].clone());
        tasks.flat_map(placed).filter(move |(place, _)| *place < end)
    }
}
