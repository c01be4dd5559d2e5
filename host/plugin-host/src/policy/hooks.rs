//! What waits for the hooks of plugins. Pure: `call::hook` takes from it and makes the calls.
//!
//! - At most [`HOOK_CALLS`] calls go on at once, and one of each plugin, so that events arrive in their order.
//! - At most [`MAX_WAITING`] events of a plugin wait. The oldest of more is dropped and counted: a plugin that hangs or is
//!   flooded costs no other plugin an event.
//! - Nothing waits while a call of its plugin and a place are free; who waits longest is next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use market::Identity;

/// Calls of hooks at once, beside all other calls.
pub(crate) const HOOK_CALLS: usize = 4;

/// Events of a plugin that wait. Enough for the files of a folder that is added as a whole; a call takes at most five
/// seconds, so the last of them receives it within minutes.
const MAX_WAITING: usize = 64;

/// What waits.
#[derive(Debug)]
pub(crate) struct HookQueue<T> {
    waiting: BTreeMap<Identity, Line<T>>,
    /// The plugins whose calls go on.
    busy: BTreeSet<Identity>,
    next_serial: u64,
}

/// The events of a plugin, oldest first, each with its place among all.
#[derive(Debug)]
struct Line<T> {
    events: VecDeque<(u64, T)>,
    dropped: u32,
}

/// A call to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Due<T> {
    pub(crate) plugin: Identity,
    pub(crate) event: T,
    /// How many events before it were dropped.
    pub(crate) dropped: u32,
}

impl<T> HookQueue<T> {
    pub(crate) fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            busy: BTreeSet::new(),
            next_serial: 0,
        }
    }

    /// Appends an event for `plugin`.
    pub(crate) fn push(&mut self, plugin: &Identity, event: T) {
        self.next_serial += 1;
        let line = self.waiting.entry(plugin.clone()).or_insert_with(|| Line {
            events: VecDeque::new(),
            dropped: 0,
        });
        line.events.push_back((self.next_serial, event));
        if line.events.len() > MAX_WAITING {
            line.events.pop_front();
            line.dropped += 1;
        }
    }

    /// The next call, if one may begin. [`HookQueue::ended`] follows.
    pub(crate) fn take(&mut self) -> Option<Due<T>> {
        if self.busy.len() >= HOOK_CALLS {
            return None;
        }
        let idle = self.waiting.iter().filter(|(plugin, _)| !self.busy.contains(*plugin));
        let oldest = idle.filter_map(|(plugin, line)| Some((line.events.front()?.0, plugin)));
        let (_, plugin) = oldest.min()?;
        let plugin = plugin.clone();
        let line = self.waiting.get_mut(&plugin)?;
        let (_, event) = line.events.pop_front()?;
        let dropped = std::mem::take(&mut line.dropped);
        if line.events.is_empty() {
            self.waiting.remove(&plugin);
        }
        self.busy.insert(plugin.clone());
        Some(Due { plugin, event, dropped })
    }

    /// The call of `plugin` has ended.
    pub(crate) fn ended(&mut self, plugin: &Identity) {
        self.busy.remove(plugin);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plugin(n: usize) -> Identity {
        format!("p{n}@test").parse().unwrap()
    }

    #[test]
    fn a_flood_for_a_plugin_that_hangs_costs_no_other_an_event() {
        let mut queue = HookQueue::new();
        queue.push(&plugin(0), 0);
        assert_eq!(queue.take().unwrap().event, 0);
        for event in 1..=MAX_WAITING + 3 {
            queue.push(&plugin(0), event);
        }
        queue.push(&plugin(1), 1000);
        let due = queue.take().unwrap();
        assert_eq!((due.plugin, due.event, due.dropped), (plugin(1), 1000, 0));
        assert_eq!(queue.take(), None, "the first call goes on");
        queue.ended(&plugin(0));
        let due = queue.take().unwrap();
        assert_eq!((due.event, due.dropped), (4, 3));
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(usize),
        End(usize),
    }

    proptest! {
        #[test]
        fn no_history_breaks_an_invariant(steps in prop::collection::vec(prop_oneof![
            3 => (0..7_usize).prop_map(Step::Push),
            2 => (0..7_usize).prop_map(Step::End),
        ], 0..800)) {
            let mut queue = HookQueue::new();
            let mut busy = BTreeSet::new();
            // By plugin: how many were pushed, and how many were told or dropped.
            let mut pushed = [0_usize; 7];
            let mut over = [0_usize; 7];
            for step in steps {
                match step {
                    Step::Push(n) => {
                        queue.push(&plugin(n), pushed[n]);
                        pushed[n] += 1;
                    }
                    Step::End(n) => {
                        busy.remove(&n);
                        queue.ended(&plugin(n));
                    }
                }
                while let Some(due) = queue.take() {
                    let n = (0..7).find(|n| plugin(*n) == due.plugin).unwrap();
                    prop_assert!(busy.insert(n), "two calls of a plugin");
                    over[n] += due.dropped as usize;
                    prop_assert_eq!(due.event, over[n], "in order, and what is left out was counted");
                    over[n] += 1;
                }
                prop_assert!(busy.len() <= HOOK_CALLS);
                for n in 0..7 {
                    let waiting = queue.waiting.get(&plugin(n)).map_or(0, |line| line.events.len());
                    prop_assert!(waiting <= MAX_WAITING);
                    let idle = busy.len() < HOOK_CALLS && !busy.contains(&n);
                    prop_assert!(!idle || waiting == 0, "an event waits for nothing");
                }
            }
        }
    }
}
