//! From an item to its task, once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    machine::State,
    round::candidate,
    step::{Created, Dispatch, Effect, Target},
};
use crate::{
    model::{
        after,
        item::{Item, Phase, TaskId},
        source::{Source, SourceId},
    },
    rule::Reason,
};

/// The wait after a task could not be created; doubled each time.
const RETRY_WAIT: Duration = Duration::from_mins(10);

/// The longest of these waits.
const MAX_RETRY_WAIT: Duration = Duration::from_hours(24);

impl State {
    /// Begins the downloads of a source's new items: oldest first, as many as one fetch may begin.
    pub(super) fn dispatch_new(&mut self, now: Timestamp, id: SourceId) {
        let Some(source) = self.sources.get(&id).cloned() else {
            return;
        };
        // A wait that is longer than any was set by a clock that was ahead.
        let latest = after(now, MAX_RETRY_WAIT);
        let is_over = |at: Timestamp| at <= now || at > latest;
        let is_wanted = |item: &Item| item.reason == Reason::Manual || source.spec.downloads();
        let is_ready =
            |item: &&Arc<Item>| item.phase == Phase::New && is_wanted(item) && item.not_before.is_none_or(is_over);
        let serials = self.index.of_source.get(&id).cloned().unwrap_or_default();
        let ready = serials
            .iter()
            .filter_map(|serial| self.items.get(serial))
            .filter(is_ready);
        let mut ready: Vec<_> = ready.map(|item| (item.time(), item.serial)).collect();
        ready.sort_unstable();
        let mut left = source.spec.per_fetch();
        for (_, serial) in ready {
            if left == 0 {
                break;
            }
            if self.items[&serial].reason == Reason::Manual {
                left -= 1;
                self.dispatch(serial, Reason::Manual);
                continue;
            }
            // Rules, and what else was downloaded, may have changed since it was judged.
            self.index.taken.remove(serial);
            let (phase, reason) = self.judge(&source, &self.items[&serial]);
            if phase == Phase::New {
                left -= 1;
                self.dispatch(serial, reason);
            } else {
                self.edit_item(serial, |item| (item.phase, item.reason) = (phase, reason));
            }
        }
    }

    /// Begins the download of an item: the row that names the task, then the task.
    pub(super) fn dispatch(&mut self, serial: u64, reason: Reason) {
        self.edit_item(serial, |item| {
            item.phase = Phase::Dispatching(item.next_task());
            item.reason = reason;
            item.detail.clear();
            item.has_failed = false;
        });
        let item = Arc::clone(&self.items[&serial]);
        let titles = self.changes.titles.entry(item.source).or_default();
        let source = self.sources.get(&item.source);
        if source.is_some_and(|source| source.spec.settings().notify_on_download) {
            titles.push(item.entry.title.clone());
        }
        self.create(serial);
    }

    /// Asks for the task of an item that is being dispatched. Asking twice makes one task.
    pub(super) fn create(&mut self, serial: u64) {
        let item = &self.items[&serial];
        let (Phase::Dispatching(task), Some(source)) = (item.phase, self.sources.get(&item.source)) else {
            return;
        };
        let dispatch = dispatch(task, item, source);
        self.changes
            .then
            .extend(dispatch.map(|dispatch| Effect::Create(Box::new(dispatch))));
    }

    pub(super) fn created(&mut self, now: Timestamp, task: TaskId, created: Created) {
        let serial = self.index.by_task.get(&task).copied();
        let waiting = serial.filter(|serial| self.items[serial].phase == Phase::Dispatching(task));
        // An item that does not wait for it any more: its source or the task was deleted.
        let Some(serial) = waiting else { return };
        self.edit_item(serial, |item| match created {
            Created::Exists => {
                item.phase = Phase::Downloaded(task);
                item.tasks += 1;
                (item.failures, item.not_before) = (0, None);
            }
            Created::WasDeleted => {
                item.tasks += 1;
                ignore_deleted(item);
            }
            Created::Failed(why) => {
                item.detail = why;
                let wait = RETRY_WAIT
                    .saturating_mul(2_u32.saturating_pow(item.failures))
                    .min(MAX_RETRY_WAIT);
                item.failures = item.failures.saturating_add(1);
                item.not_before = Some(after(now, wait));
                item.phase = Phase::New;
                // What the user asked for is tried again whatever the rules say.
                if item.reason != Reason::Manual {
                    item.reason = Reason::NotStarted;
                }
            }
        });
    }

    pub(super) fn task_deleted(&mut self, task: TaskId) {
        // A task may exist although its creation was answered with a failure.
        let is_unconfirmed =
            |item: &&Arc<Item>| item.failures > 0 && item.phase == Phase::New && item.next_task() == task;
        let serial = self.index.by_task.get(&task).copied();
        let serial = serial.or_else(|| self.items.values().find(is_unconfirmed).map(|item| item.serial));
        if let Some(serial) = serial {
            self.edit_item(serial, |item| {
                if item.phase != Phase::Downloaded(task) {
                    item.tasks += 1;
                }
                ignore_deleted(item);
            });
        }
    }

    /// Whether the task of an item has failed; `None` if it is of none.
    pub fn has_failed(&self, task: TaskId) -> Option<bool> {
        let serial = self.index.by_task.get(&task)?;
        self.items.get(serial).map(|item| item.has_failed)
    }

    /// A failed task leaves its episode to other items, among them those that were duplicates of it.
    pub(super) fn task_changed(&mut self, task: TaskId, has_failed: bool) {
        let serial = self.index.by_task.get(&task).copied();
        let Some(item) = serial.and_then(|serial| self.items.get(&serial)) else {
            return;
        };
        if item.has_failed == has_failed {
            return;
        }
        let (serial, identity) = (item.serial, item.release().identity(self.feed_title(item.source)));
        self.edit_item(serial, |item| item.has_failed = has_failed);
        let Some(identity) = identity.filter(|_| has_failed) else {
            return;
        };
        let mut duplicates = BTreeMap::<_, Vec<_>>::new();
        for serial in self.index.duplicates.items(&identity) {
            duplicates.entry(self.items[&serial].source).or_default().push(serial);
        }
        for (source, serials) in duplicates {
            // Without that rule, what was left once is not to be had again.
            if self
                .sources
                .get(&source)
                .is_some_and(|source| source.spec.rules().is_smart())
            {
                self.judge_all(source, serials);
            }
        }
    }
}

/// The item's task was deleted: nothing downloads it again but a user.
fn ignore_deleted(item: &mut Item) {
    item.phase = Phase::Ignored;
    item.reason = Reason::TaskDeleted;
}

fn dispatch(task: TaskId, item: &Item, source: &Arc<Source>) -> Option<Dispatch> {
    let settings = source.spec.settings();
    let url = item.entry.target()?.clone();
    let feed = source.spec.url().clone();
    let is_own = url.origin() == feed.origin();
    let release = item.release();
    let candidate = candidate(&item.entry, &release, source);
    let rules = source.spec.rules();
    let rule = rules.rule_of(candidate);
    let own = rule.and_then(|rule| settings.rules.get(rule));
    let or_source = |of_rule: Option<&String>, of_source: &String| {
        of_rule.filter(|text| !text.is_empty()).unwrap_or(of_source).clone()
    };
    Some(Dispatch {
        task,
        source: item.source,
        target: if item.entry.resolve_with_plugin {
            Target::Plugin
        } else {
            Target::File
        },
        allows_private: settings.allow_private,
        directories: rules.directories(rule, candidate),
        queue: or_source(own.map(|rule| &rule.queue_id), &settings.queue_id),
        save_dir: or_source(own.map(|rule| &rule.save_dir), &settings.save_dir),
        is_paused: settings.start_paused,
        referer: if settings.send_referer && matches!(feed.scheme(), "http" | "https") {
            format!("{}/", feed.as_url().origin().ascii_serialization())
        } else {
            String::new()
        },
        user_agent: settings.user_agent.clone(),
        proxy: source.spec.proxy().cloned(),
        // Secrets belong to the origin that they were given for.
        cookies: transfer::Secret::new(if is_own { &settings.cookies } else { "" }),
        credentials: feed.credentials().filter(|_| is_own),
        url,
        feed,
    })
}
