//! What one client knows of its tasks: what was acknowledged, and what may or may not have happened.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// Numbers that look random and are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// From 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() % 1024).expect("it is small")) / 1024.0
    }
}

/// The values that a field may have: one, unless a change of it was cut off.
#[derive(Debug, Clone)]
pub(super) struct May<T>(Vec<T>);

impl<T: Clone + PartialEq> May<T> {
    pub(super) fn be(value: T) -> Self {
        Self(vec![value])
    }

    /// The value that is taken for granted by the next step; after a check it is the only one.
    pub(super) fn now(&self) -> &T {
        &self.0[0]
    }

    /// After a change to this value.
    pub(super) fn become_(&mut self, value: T, is_certain: bool) {
        if is_certain {
            self.0.clear();
        }
        self.0.push(value);
    }

    pub(super) fn allows(&self, value: &T) -> bool {
        self.0.contains(value)
    }

    /// Whether the change that was cut off has happened, if there was one and `found` tells.
    pub(super) fn is_done(&self, found: &T) -> Option<bool> {
        let [before, .., after] = self.0.as_slice() else {
            return None;
        };
        (before != after).then_some(found == after)
    }
}

/// What became of the changes of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    pub(super) acknowledged: u64,
    /// Cut off and, as a look at the service showed, not done.
    pub(super) undone: u64,
    /// Cut off, but done.
    pub(super) done: u64,
}

/// By kind of change.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(pub(super) BTreeMap<&'static str, Count>);

impl Counts {
    pub(super) fn acknowledged(&mut self, kind: &'static str) {
        self.0.entry(kind).or_default().acknowledged += 1;
    }

    pub(super) fn cut_off(&mut self, kind: &'static str, is_done: bool) {
        let count = self.0.entry(kind).or_default();
        *(if is_done { &mut count.done } else { &mut count.undone }) += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (kind, count) in &other.0 {
            let sum = self.0.entry(kind).or_default();
            sum.acknowledged += count.acknowledged;
            sum.undone += count.undone;
            sum.done += count.done;
        }
    }

    /// The kinds of which something was never seen: an acknowledgement, or one side of the moment they are cut off at.
    pub(super) fn missing(&self, kinds: &[&'static str]) -> Vec<(&'static str, Count)> {
        let counts = kinds
            .iter()
            .map(|kind| (*kind, self.0.get(kind).copied().unwrap_or_default()));
        let is_missing = |count: &Count| count.acknowledged == 0 || count.undone == 0 || count.done == 0;
        counts.filter(|(_, count)| is_missing(count)).collect()
    }
}

/// A task, as far as the client knows.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) url: String,
    pub(super) name: May<String>,
    pub(super) is_paused: May<bool>,
    pub(super) is_there: May<bool>,
    /// It was seen completed, and stays that.
    pub(super) is_complete: bool,
    /// A deletion that was asked for leaves its file.
    pub(super) leaves_file: bool,
}

/// The kinds of changes of tasks.
pub(super) const TASK_CHANGES: [&str; 4] = ["create", "delete", "pause or continue", "rename"];

/// A file that a deleted task left.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) url: String,
    pub(super) name: String,
    /// The task was completed: the file is there, whole. Otherwise it may be there.
    pub(super) is_certain: bool,
}

/// All tasks of one client.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// By id.
    pub(super) tasks: HashMap<String, Known>,
    /// Creations that were cut off, by name.
    pub(super) begun: HashMap<String, Known>,
    /// Files that deleted tasks left.
    pub(super) kept: Vec<Kept>,
    pub(super) counts: Counts,
    /// The kind of the change that was cut off.
    pub(super) cut_off: Option<&'static str>,
}

impl Model {
    /// Compares, takes this client's tasks out of `tasks`, and knows for certain what they are.
    pub(super) fn check(&mut self, tasks: &mut Vec<Value>, when: &str) {
        let mut found: HashMap<String, Value> = HashMap::new();
        tasks.retain(|task| {
            let id = task["taskId"].as_str().expect("tasks have ids");
            if let Some(known) = self.begun.remove(name(task)) {
                self.tasks.insert(id.to_owned(), known);
                self.counts.cut_off("create", true);
            }
            let is_ours = self.tasks.contains_key(id);
            if is_ours {
                found.insert(id.to_owned(), task.clone());
            }
            !is_ours
        });
        for _ in self.begun.drain() {
            self.counts.cut_off("create", false);
        }
        let cut_off = self.cut_off.take();
        self.tasks.retain(|id, known| {
            let task = found.get(id);
            assert!(
                known.is_there.allows(&task.is_some()),
                "{when}: {id} is {task:?}, but {known:?}"
            );
            let mut is_done = known.is_there.is_done(&task.is_some());
            if let Some(task) = task {
                is_done = is_done.or(known.check(task, when));
            } else if known.leaves_file {
                self.kept.push(Kept {
                    url: known.url.clone(),
                    name: known.name.now().clone(),
                    is_certain: known.is_complete,
                });
            }
            if let (Some(kind), Some(is_done)) = (cut_off, is_done) {
                self.counts.cut_off(kind, is_done);
            }
            task.is_some()
        });
    }
}

fn name(task: &Value) -> &str {
    task["fileName"].as_str().expect("tasks have names")
}

impl Known {
    /// Compares. Whether a change that was cut off has happened, if there was one and the task shows it.
    fn check(&mut self, task: &Value, when: &str) -> Option<bool> {
        let name = name(task).to_owned();
        assert_eq!(task["url"], self.url.as_str(), "{when}: {task:#}");
        assert!(self.name.allows(&name), "{when}: {task:#}\nbut {self:?}");
        let mut is_done = self.name.is_done(&name);
        let is_paused = match task["status"].as_u64() {
            Some(0 | 1 | 5) => Some(false),
            Some(2) => Some(true),
            // A download may end before it is paused, and stays what it is.
            Some(3) => None,
            other => panic!("{when}: status {other:?} of {task:#}"),
        };
        assert!(
            !self.is_complete || is_paused.is_none(),
            "{when}: it was completed: {task:#}"
        );
        if let Some(is_paused) = is_paused {
            assert!(self.is_paused.allows(&is_paused), "{when}: {task:#}\nbut {self:?}");
            is_done = is_done.or(self.is_paused.is_done(&is_paused));
            self.is_paused = May::be(is_paused);
        } else {
            self.is_paused = May::be(*self.is_paused.now());
        }
        self.is_complete = is_paused.is_none();
        self.leaves_file = false;
        self.name = May::be(name);
        self.is_there = May::be(true);
        is_done
    }
}
