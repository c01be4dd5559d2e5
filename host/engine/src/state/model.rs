//! The data of the state machine, and queries on it.

pub(super) mod accounts;
pub(super) mod changes;
pub(super) mod groups;
pub(super) mod logins;
pub(super) mod queue_state;
pub(super) mod seeds;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::civil::DateTime;
use transfer::{CookieJar, Credentials, Netrc};

use crate::{
    event::Snapshot,
    model::{
        account::{AccountKey, AccountSlot},
        error::CommandError,
        id::{QueueId, TaskId, Timestamp},
        proxy::SystemProxy,
        queue::Queue,
        settings::VersionedSettings,
        site::{CookieSite, CookieSummary, Site},
        task::{Phase, Task},
    },
    state::model::{
        accounts::Accounts, changes::Changes, groups::Groups, logins::Logins, queue_state::QueueState, seeds::Seeds,
    },
};

/// The engine's state.
#[derive(Debug)]
pub struct State {
    pub(super) download_dir: Arc<Path>,
    pub(super) system_proxy: Arc<SystemProxy>,
    pub(super) netrc: Option<Arc<Netrc>>,
    pub(super) settings: VersionedSettings,
    /// All tasks by their serial, which is the order of creation.
    pub(super) tasks: BTreeMap<u64, Arc<Task>>,
    pub(super) index: Index,
    pub(super) queue_states: BTreeMap<QueueId, QueueState>,
    pub(super) groups: Groups,
    pub(super) sites: BTreeMap<Site, Credentials>,
    pub(super) cookies: BTreeMap<CookieSite, Arc<CookieJar>>,
    pub(super) logins: Logins,
    pub(super) accounts: Accounts,
    pub(super) seeds: Seeds,
    /// How long the engine has run: a clock that nothing sets.
    pub(super) uptime: Duration,
    /// Until when the schedule of the turtle has acted; none after a start or a change of it.
    pub(super) turtle_seen: Option<DateTime>,
    /// The boosted task, which runs alone.
    pub(super) boost: Option<u64>,
    /// Deleted tasks whose files are not deleted yet.
    pub(super) leaving: BTreeMap<u64, Vec<PathBuf>>,
    /// Deleted tasks of subscriptions that have not noted it yet.
    pub(super) deleted_feed_tasks: BTreeSet<TaskId>,
    /// Running tasks whose progress is newer than their rows.
    pub(super) unsaved_progress: BTreeSet<u64>,
    pub(super) last_serial: u64,
    pub(super) next_run: u64,
    /// What is deleted with tasks besides a part file, during [`Input::Discard`](super::Input::Discard).
    pub(super) leftovers: BTreeMap<TaskId, Vec<PathBuf>>,
    pub(super) is_closing: bool,
    pub(super) changes: Changes,
}

/// Lookup tables. Each is derived from the tasks alone; [`State::edit`] and its siblings keep them up to date.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) by_id: HashMap<TaskId, u64>,
    /// Tasks with a live run.
    pub(super) active: BTreeSet<u64>,
    /// Tasks with a scheduled retry, by its time.
    pub(super) retries: BTreeSet<(Timestamp, u64)>,
    /// Tasks that wait for an account, by its slot: the order of the wait and the serial of the task.
    pub(super) waiting: BTreeMap<AccountSlot, BTreeSet<(u64, u64)>>,
    /// Those of them that wait for the limits of an account: until when, as far as they show it, and the serial.
    pub(super) limited: BTreeMap<AccountKey, BTreeSet<(Option<Timestamp>, u64)>>,
    /// Tasks of torrents, by the hash: their files and records are kept by it, so there is one of each.
    pub(super) torrents: HashMap<[u8; 20], u64>,
    /// Paths that unfinished tasks have reserved, with the serial of the task.
    pub(super) reserved: BTreeSet<(String, u64)>,
}

impl State {
    /// Deleted tasks of subscriptions that have not noted it yet.
    pub fn deleted_feed_tasks(&self) -> Vec<TaskId> {
        self.deleted_feed_tasks.iter().copied().collect()
    }

    /// One task that is not being deleted.
    pub fn task(&self, id: TaskId) -> Option<Arc<Task>> {
        let task = self.tasks.get(self.index.by_id.get(&id)?)?;
        (!task.is_being_deleted()).then(|| Arc::clone(task))
    }

    /// All queues, in order.
    pub fn queues(&self) -> Vec<Arc<Queue>> {
        let mut queues: Vec<_> = self
            .queue_states
            .values()
            .map(|queue_state| Arc::clone(&queue_state.queue))
            .collect();
        queues.sort_by_key(|queue| (queue.position, queue.id));
        queues
    }

    /// The sites that have credentials, and their user names.
    pub fn sites(&self) -> Vec<(Site, String)> {
        self.sites
            .iter()
            .map(|(site, credentials)| (site.clone(), credentials.user.clone()))
            .collect()
    }

    /// The credentials of a site.
    pub fn site_credentials(&self, site: &Site) -> Option<Credentials> {
        self.sites.get(site).cloned()
    }

    /// The sites that have cookies.
    pub fn cookie_sites(&self) -> Vec<CookieSummary> {
        let sites = self.cookies.iter();
        sites.map(|(site, jar)| CookieSummary::of(site, jar)).collect()
    }

    /// The settings.
    pub fn settings(&self) -> &VersionedSettings {
        &self.settings
    }

    /// A snapshot as of the event `sequence`.
    pub fn snapshot(&self, sequence: u64) -> Snapshot {
        let mut groups: Vec<_> = self.groups.iter().map(|members| Arc::clone(&members.group)).collect();
        groups.sort_by_key(|group| (group.created_at, group.id));
        Snapshot {
            sequence,
            tasks: self
                .tasks
                .values()
                .filter(|task| !task.is_being_deleted())
                .map(Arc::clone)
                .collect(),
            queues: self.queues(),
            groups,
            settings: self.settings.clone(),
            boost: self.boosted(),
        }
    }

    /// When the next [`Input::Clock`](super::Input::Clock) is due for a retry.
    pub fn next_retry(&self) -> Option<Timestamp> {
        self.index.retries.first().map(|(at, _)| *at)
    }

    /// At which uptime a limit of seeding may be reached.
    pub fn next_seed_end(&self) -> Option<Duration> {
        self.seeds.next_due()
    }

    /// When, in local time, the next [`Input::Clock`](super::Input::Clock) is due for a schedule.
    pub fn next_edge(&self, local: DateTime) -> Option<DateTime> {
        self.queue_states
            .values()
            .map(|queue_state| &queue_state.queue.schedule)
            .chain([&self.settings.settings.turtle_schedule])
            .filter_map(|schedule| schedule.next(local))
            .min()
    }

    /// Whether any queue, or the turtle, has a schedule.
    pub fn has_schedule(&self) -> bool {
        let mut queues = self.queue_states.values().map(|queue_state| &queue_state.queue);
        self.settings.settings.turtle_schedule.is_enabled || queues.any(|queue| queue.schedule.is_enabled)
    }

    /// Whether a new schedule needs an [`Input::Clock`](super::Input::Clock) now.
    pub fn has_new_schedule(&self) -> bool {
        let mut queues = self.queue_states.values().map(|queue_state| &queue_state.queue);
        let is_turtles = self.settings.settings.turtle_schedule.is_enabled && self.turtle_seen.is_none();
        is_turtles || queues.any(|queue| queue.schedule.is_enabled && queue.schedule_seen.is_none())
    }

    /// Whether a file operation outside of a run is in progress.
    pub fn is_settling(&self) -> bool {
        self.tasks.values().any(|task| task.is_settling())
    }

    /// The number of live runs that download.
    pub fn live_runs(&self) -> usize {
        self.index.active.len()
    }

    /// The number of live runs that seed.
    pub fn live_seeds(&self) -> usize {
        self.seeds.live()
    }

    /// Whether rows wait for a save retry.
    pub fn has_unsaved(&self) -> bool {
        self.changes.has_unsaved()
    }

    /// The completed tasks after this serial, in order of their serials.
    pub fn completed_after(&self, serial: u64) -> impl Iterator<Item = &Arc<Task>> {
        let tasks = self.tasks.range(serial.saturating_add(1)..);
        tasks
            .map(|(_, task)| task)
            .filter(|task| task.phase == Phase::Completed)
    }

    pub(super) fn boosted(&self) -> Option<TaskId> {
        self.boost
            .and_then(|serial| self.tasks.get(&serial))
            .map(|task| task.id)
    }

    /// The serial of a task that a command may name.
    pub(super) fn serial(&self, id: TaskId) -> Result<u64, CommandError> {
        let serial = self
            .index
            .by_id
            .get(&id)
            .copied()
            .filter(|serial| !self.tasks[serial].is_being_deleted());
        serial.ok_or(CommandError::UnknownTask(id))
    }

    pub(super) fn default_queue(&self) -> QueueId {
        let wanted = self.settings.settings.default_queue_id;
        if self.queue_states.contains_key(&wanted) {
            wanted
        } else {
            QueueId::Main
        }
    }

    pub(super) fn those(&self, which: impl Fn(&Task) -> bool) -> Vec<u64> {
        let listed = self
            .tasks
            .values()
            .filter(|task| !task.is_being_deleted() && which(task));
        listed.map(|task| task.serial).collect()
    }
}
