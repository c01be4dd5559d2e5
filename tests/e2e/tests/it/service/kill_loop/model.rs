//! What one client knows of its tasks: what was acknowledged, and what may or may not have happened.

use std::collections::HashMap;

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
pub(crate) struct May<T>(Vec<T>);

impl<T: Clone + PartialEq> May<T> {
    pub(crate) fn be(value: T) -> Self {
        Self(vec![value])
    }

    /// The value that is taken for granted by the next step; after a check it is the only one.
    pub(crate) fn now(&self) -> &T {
        &self.0[0]
    }

    /// After a change to this value.
    pub(crate) fn become_(&mut self, value: T, is_certain: bool) {
        if is_certain {
            self.0.clear();
        }
        self.0.push(value);
    }

    fn allows(&self, value: &T) -> bool {
        self.0.contains(value)
    }
}

/// A task, as far as the client knows.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) url: String,
    pub(crate) name: May<String>,
    pub(crate) is_paused: May<bool>,
    pub(crate) is_there: May<bool>,
}

/// All tasks of one client.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// By id.
    pub(crate) tasks: HashMap<String, Known>,
    /// Creations that were cut off, by name.
    pub(crate) begun: HashMap<String, Known>,
    /// Names of files that deleted tasks left, or may have left.
    pub(crate) kept: Vec<String>,
    pub(crate) acknowledged: u64,
    pub(crate) cut_off: u64,
}

impl Model {
    /// Compares, takes this client's tasks out of `tasks`, and knows for certain what they are.
    pub(crate) fn check(&mut self, tasks: &mut Vec<Value>, when: &str) {
        let mut found: HashMap<String, Value> = HashMap::new();
        tasks.retain(|task| {
            let id = task["taskId"].as_str().expect("tasks have ids");
            if let Some(known) = self.begun.remove(name(task)) {
                self.tasks.insert(id.to_owned(), known);
            }
            let is_ours = self.tasks.contains_key(id);
            if is_ours {
                found.insert(id.to_owned(), task.clone());
            }
            !is_ours
        });
        self.begun.clear();
        self.tasks.retain(|id, known| {
            let task = found.get(id);
            assert!(
                known.is_there.allows(&task.is_some()),
                "{when}: {id} is {task:?}, but {known:?}"
            );
            if let Some(task) = task {
                known.check(task, when);
            }
            task.is_some()
        });
    }
}

fn name(task: &Value) -> &str {
    task["fileName"].as_str().expect("tasks have names")
}

impl Known {
    fn check(&mut self, task: &Value, when: &str) {
        let name = name(task).to_owned();
        assert_eq!(task["url"], self.url.as_str(), "{when}: {task:#}");
        assert!(self.name.allows(&name), "{when}: {task:#}\nbut {self:?}");
        let is_paused = match task["status"].as_u64() {
            Some(0 | 1 | 5) => Some(false),
            Some(2) => Some(true),
            // A download may end before it is paused, and stays what it is.
            Some(3) => None,
            other => panic!("{when}: status {other:?} of {task:#}"),
        };
        if let Some(is_paused) = is_paused {
            assert!(self.is_paused.allows(&is_paused), "{when}: {task:#}\nbut {self:?}");
            self.is_paused = May::be(is_paused);
        }
        self.name = May::be(name);
        self.is_there = May::be(true);
    }
}
