//! The tasks in the orders of aria2's lists (active, waiting, stopped), indexed by GID, and a numbered log of
//! notifications. Updated by changes of the subscription. Pure.
//!
//! Holds references only; the task itself stays in the service's record.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use protocol::{TaskRuntimeDto, TaskStatus};

use crate::{
    service::{Change, Snapshot, Task},
    torrent::Torrent,
    vocabulary::gid::Gid,
};

/// Notices kept for slow readers: enough for ten thousand downloads that start and complete at once; about a mebibyte.
const MAX_NOTICES: usize = 64 * 1024;

/// Removed downloads that are kept; aria2's own default of `max-download-result`.
const MAX_REMOVED: usize = 1000;

/// Files of removed torrents that are kept for [`Board::removed`]: about 6 MiB.
const MAX_REMOVED_FILES: usize = 20_000;

/// The kinds of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The download became active.
    Start,
    /// The download was paused.
    Pause,
    /// The download was removed while it was active.
    Stop,
    /// The file is complete, and is not seeded any more.
    Complete,
    /// The download failed.
    Error,
    /// The files of a torrent are complete; it may be seeded now.
    BtComplete,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "aria2.onDownloadStart",
            Self::Pause => "aria2.onDownloadPause",
            Self::Stop => "aria2.onDownloadStop",
            Self::Complete => "aria2.onDownloadComplete",
            Self::Error => "aria2.onDownloadError",
            Self::BtComplete => "aria2.onBtDownloadComplete",
        }
    }
}

/// The reader fell behind and the notices it needs are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed;

/// A download at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Download {
    pub(crate) gid: Gid,
    /// The current task, or its last state before it was removed.
    pub(crate) task: Arc<dyn Task>,
    /// The last progress of its run.
    pub(crate) progress: Option<Arc<TaskRuntimeDto>>,
    /// Whether it was removed while active, so that there is no task any more.
    pub(crate) is_removed: bool,
    /// What it has to do with others.
    pub(crate) kin: Kin,
    /// What the service knows of it beyond its record, if it is a torrent and that was asked for.
    pub(crate) torrent: Option<Arc<Torrent>>,
}

/// How a download came from another one. The first task of a group is what the others came from: a directory, for
/// example, becomes its first file and then the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Kin {
    #[default]
    None,
    /// These came from it.
    First(Vec<Gid>),
    /// It came from this one.
    Other(Gid),
}

impl Download {
    pub(crate) fn state(&self) -> State {
        State::of(&*self.task)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_removed || self.state().class() == Class::Stopped
    }

    pub(crate) fn is_active(&self) -> bool {
        !self.is_removed && self.state().class() == Class::Active
    }
}

/// What a task does, in aria2's terms: a torrent that is seeded has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// For its turn to download, or to be seeded.
    Waiting,
    Downloading,
    Seeding,
    /// Before it was complete, or while it was seeded.
    Paused,
    Complete,
    Failed,
}

/// Values of `seedingStatus`.
const SEEDING: u8 = 1;
const STOPPED_BY_USER: u8 = 4;
const WAITING_TO_SEED: u8 = 8;

impl State {
    fn of(task: &dyn Task) -> Self {
        match (task.status(), task.seeding_status()) {
            (TaskStatus::Downloading | TaskStatus::Preparing, _) => Self::Downloading,
            (TaskStatus::Pending, _) | (TaskStatus::Completed, WAITING_TO_SEED) => Self::Waiting,
            (TaskStatus::Paused, _) | (TaskStatus::Completed, STOPPED_BY_USER) => Self::Paused,
            (TaskStatus::Completed, SEEDING) => Self::Seeding,
            (TaskStatus::Completed, _) => Self::Complete,
            (TaskStatus::Error, _) => Self::Failed,
        }
    }

    fn class(self) -> Class {
        match self {
            Self::Downloading | Self::Seeding => Class::Active,
            Self::Waiting | Self::Paused => Class::Waiting,
            Self::Complete | Self::Failed => Class::Stopped,
        }
    }
}

/// Why a GID matches no download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotFound {
    Invalid,
    Unknown,
    Ambiguous,
}

/// The list that a task is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Active,
    Waiting,
    Stopped,
}

impl Class {
    fn of(task: &dyn Task) -> Self {
        State::of(task).class()
    }
}

/// The sort key of waiting tasks: rank of the queue, position in the queue, age.
type SortKey = (u32, u32, u64);

/// A task and its position.
#[derive(Debug)]
struct Entry {
    task: Arc<dyn Task>,
    age: u64,
    /// Its sequence number among the active or stopped ones; 0 while it waits.
    number: u64,
}

/// What notices depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    state: State,
    is_torrent: bool,
    /// Whether everything was downloaded.
    is_whole: bool,
}

impl Seen {
    fn of(task: &dyn Task) -> Self {
        Self {
            state: State::of(task),
            is_torrent: task.is_torrent(),
            is_whole: task.status() == TaskStatus::Completed,
        }
    }

    /// A stopped task that is stopped in a new snapshot as well gives no second notice, whatever its state is.
    fn as_of_replacement(self, is: Self) -> Self {
        let is_unchanged = self.state.class() == Class::Stopped && is.state.class() == Class::Stopped;
        if is_unchanged { is } else { self }
    }
}

/// The notices about a change of a task; neither `was` before it was created nor `is` after it was deleted.
fn kinds(was: Option<Seen>, is: Option<Seen>) -> [Option<Kind>; 2] {
    let was_active = was.is_some_and(|was| was.state.class() == Class::Active);
    let Some(is) = is else {
        return [was_active.then_some(Kind::Stop), None];
    };
    let was_whole = was.is_some_and(|was| was.is_whole);
    let whole = (is.is_torrent && is.is_whole && !was_whole).then_some(Kind::BtComplete);
    let was = was.map(|was| was.state);
    let change = match is.state {
        state if was == Some(state) => None,
        // It was active when it became complete.
        State::Seeding if whole.is_some() => None,
        State::Downloading | State::Seeding if !was_active => Some(Kind::Start),
        State::Paused if was_active => Some(Kind::Pause),
        State::Complete => Some(Kind::Complete),
        State::Failed => Some(Kind::Error),
        State::Waiting | State::Downloading | State::Seeding | State::Paused => None,
    };
    [whole, change]
}

/// A stopped download: a task, or a removed one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    Task(Gid),
    Removed(Gid),
}

/// A download that was removed while it was active.
#[derive(Debug)]
struct Removed {
    /// Its sequence number among the stopped.
    number: u64,
    /// Its last state.
    task: Arc<dyn Task>,
    torrent: Option<Arc<Torrent>>,
}

/// A filter for the tasks of a list.
pub(crate) type Admits<'a> = dyn Fn(&dyn Task) -> bool + 'a;

#[derive(Debug, Default)]
pub(crate) struct Board {
    tasks: BTreeMap<Gid, Entry>,
    progress: HashMap<Gid, Arc<TaskRuntimeDto>>,
    waiting: BTreeMap<SortKey, Gid>,
    /// By sequence number of becoming active.
    active: BTreeMap<u64, Gid>,
    /// By sequence number of stopping.
    stopped: BTreeMap<u64, Stopped>,
    /// Downloads without a task.
    removed: BTreeMap<Gid, Removed>,
    last_number: u64,
    /// By queue id.
    ranks: HashMap<String, u32>,
    /// The tasks of each group, by age.
    groups: HashMap<String, BTreeSet<(u64, Gid)>>,
    notices: VecDeque<(Kind, Gid)>,
    newest_notice: u64,
    /// Downloads that stopped since this process started.
    stopped_in_all: u64,
    revision: u64,
    is_filled: bool,
}

impl Board {
    pub(crate) fn apply(&mut self, change: Change) {
        match change {
            Change::Task { age, task } => self.put(age, task),
            Change::Deleted { id } => self.delete(&id),
            Change::Progress(progress) => self.progress(progress),
            Change::Queues(queues) => self.rank(queues),
            Change::Everything(snapshot) => self.replace_all(snapshot),
        }
    }

    fn put(&mut self, age: u64, task: Arc<dyn Task>) {
        let Some(gid) = Gid::of_task(task.id()) else { return };
        self.revision += 1;
        let (is, class) = (Seen::of(&*task), Class::of(&*task));
        if class != Class::Active {
            self.progress.remove(&gid);
        }
        let was = self.tasks.get(&gid).map(|entry| Seen::of(&*entry.task));
        match self.tasks.get_mut(&gid) {
            // It keeps its position.
            Some(entry)
                if was.is_some_and(|was| was.state.class() == class)
                    && class != Class::Waiting
                    && entry.task.group() == task.group() =>
            {
                entry.task = task;
            }
            _ => {
                self.remove_entry(gid);
                self.insert_entry(gid, age, task);
            }
        }
        self.notice(gid, was, Some(is));
    }

    fn delete(&mut self, id: &str) {
        let Some(gid) = Gid::of_task(id) else { return };
        self.progress.remove(&gid);
        let Some(Entry { task, .. }) = self.remove_entry(gid) else {
            return;
        };
        self.revision += 1;
        let was = Seen::of(&*task);
        if was.state.class() == Class::Active {
            self.keep_removed(gid, task);
        }
        self.notice(gid, Some(was), None);
    }

    fn progress(&mut self, progress: Arc<TaskRuntimeDto>) {
        if let Some(gid) = Gid::of_task(&progress.task_id).filter(|gid| self.tasks.contains_key(gid)) {
            self.progress.insert(gid, progress);
        }
    }

    fn insert_entry(&mut self, gid: Gid, age: u64, task: Arc<dyn Task>) {
        let mut number = 0;
        let class = Class::of(&*task);
        if class == Class::Waiting {
            self.waiting.insert(self.sort_key(age, &*task), gid);
        } else {
            self.last_number += 1;
            number = self.last_number;
            if class == Class::Active {
                self.active.insert(number, gid);
            } else {
                self.stopped.insert(number, Stopped::Task(gid));
            }
        }
        if !task.group().is_empty() {
            self.groups
                .entry(task.group().to_owned())
                .or_default()
                .insert((age, gid));
        }
        self.tasks.insert(gid, Entry { task, age, number });
    }

    fn remove_entry(&mut self, gid: Gid) -> Option<Entry> {
        let entry = self.tasks.remove(&gid)?;
        match Class::of(&*entry.task) {
            Class::Waiting => drop(self.waiting.remove(&self.sort_key(entry.age, &*entry.task))),
            Class::Active => drop(self.active.remove(&entry.number)),
            Class::Stopped => drop(self.stopped.remove(&entry.number)),
        }
        if let Some(group) = self.groups.get_mut(entry.task.group()) {
            group.remove(&(entry.age, gid));
            if group.is_empty() {
                self.groups.remove(entry.task.group());
            }
        }
        Some(entry)
    }

    fn kin(&self, gid: Gid, entry: &Entry) -> Kin {
        let mut group = self.groups.get(entry.task.group()).into_iter().flatten();
        match group.next() {
            Some((_, first)) if *first == gid => {
                let others: Vec<Gid> = group.map(|(_, other)| *other).collect();
                if others.is_empty() {
                    Kin::None
                } else {
                    Kin::First(others)
                }
            }
            Some((_, first)) => Kin::Other(*first),
            None => Kin::None,
        }
    }

    fn sort_key(&self, age: u64, task: &dyn Task) -> SortKey {
        let rank = self.ranks.get(task.queue()).copied().unwrap_or(u32::MAX);
        let order = task.queue_order().checked_sub(1).unwrap_or(u32::MAX);
        (rank, order, age)
    }

    fn keep_removed(&mut self, gid: Gid, task: Arc<dyn Task>) {
        self.last_number += 1;
        self.stopped.insert(self.last_number, Stopped::Removed(gid));
        let removed = Removed {
            number: self.last_number,
            task,
            torrent: None,
        };
        self.removed.insert(gid, removed);
        if self.removed.len() > MAX_REMOVED
            && let Some((gid, _)) = self.removed.iter().min_by_key(|(_, removed)| removed.number)
        {
            self.forget(*gid);
        }
    }

    /// Forgets a removed download; returns whether there was one.
    pub(crate) fn forget(&mut self, gid: Gid) -> bool {
        let removed = self.removed.remove(&gid);
        self.revision += 1;
        removed.is_some_and(|removed| self.stopped.remove(&removed.number).is_some())
    }

    /// Keeps what was known of the torrent of a removed download, if it has not more files than such results may have
    /// together.
    pub(crate) fn remember(&mut self, gid: Gid, torrent: Arc<Torrent>) {
        let kept = self.removed.values().filter_map(|removed| removed.torrent.as_ref());
        let files: usize = kept.map(|torrent| torrent.files.len()).sum();
        if files + torrent.files.len() > MAX_REMOVED_FILES {
            return;
        }
        if let Some(removed) = self.removed.get_mut(&gid) {
            removed.torrent = Some(torrent);
            self.revision += 1;
        }
    }

    pub(crate) fn forget_all(&mut self) {
        for removed in std::mem::take(&mut self.removed).into_values() {
            self.stopped.remove(&removed.number);
        }
        self.revision += 1;
    }

    fn notice(&mut self, gid: Gid, was: Option<Seen>, is: Option<Seen>) {
        for kind in kinds(was, is).into_iter().flatten() {
            self.stopped_in_all += u64::from(matches!(kind, Kind::Complete | Kind::Error | Kind::Stop));
            self.newest_notice += 1;
            self.notices.push_back((kind, gid));
            if self.notices.len() > MAX_NOTICES {
                self.notices.pop_front();
            }
        }
    }

    /// Replaces all tasks. Known ones keep their positions; status changes that happened meanwhile produce notices.
    fn replace_all(&mut self, snapshot: Snapshot) {
        if snapshot.is_gap {
            self.force_gap();
        }
        let before = std::mem::take(&mut self.tasks);
        self.waiting.clear();
        self.active.clear();
        self.groups.clear();
        self.progress.clear();
        self.stopped.retain(|_, stopped| matches!(stopped, Stopped::Removed(_)));
        self.read_ranks(snapshot.queues);
        let tasks = snapshot.tasks.into_iter();
        let mut tasks: Vec<(Gid, u64, Arc<dyn Task>)> = tasks
            .filter_map(|(age, task)| Some((Gid::of_task(task.id())?, age, task)))
            .collect();
        // Downloads that stopped before this process started are ordered by completion time, else by creation time.
        tasks.sort_by_key(|(gid, age, task)| {
            let number = before.get(gid).map_or(0, |entry| entry.number);
            (number == 0, number, task.dated(), *age)
        });
        for (gid, age, task) in tasks {
            let is = Seen::of(&*task);
            self.insert_entry(gid, age, task);
            if self.is_filled {
                let was = before.get(&gid).map(|entry| Seen::of(&*entry.task));
                self.notice(gid, was.map(|was| was.as_of_replacement(is)), Some(is));
            }
        }
        for (gid, entry) in &before {
            if !self.tasks.contains_key(gid) && Class::of(&*entry.task) == Class::Active {
                self.notice(*gid, Some(Seen::of(&*entry.task)), None);
            }
        }
        snapshot
            .progress
            .into_iter()
            .for_each(|progress| self.progress(progress));
        self.is_filled = true;
        self.revision += 1;
    }

    /// Makes every reader get [`Missed`], so that it takes a new snapshot.
    fn force_gap(&mut self) {
        self.notices.clear();
        self.newest_notice += 1;
    }

    fn rank(&mut self, queues: Vec<String>) {
        self.read_ranks(queues);
        let waiting = std::mem::take(&mut self.waiting).into_values();
        self.waiting = waiting
            .filter_map(|gid| {
                let entry = self.tasks.get(&gid)?;
                Some((self.sort_key(entry.age, &*entry.task), gid))
            })
            .collect();
        self.revision += 1;
    }

    fn read_ranks(&mut self, queues: Vec<String>) {
        self.ranks = queues.into_iter().zip(0..).collect();
    }

    /// Increases with every change of the lists; used to invalidate cached answers.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    fn download(&self, gid: Gid) -> Option<Download> {
        let entry = self.tasks.get(&gid)?;
        Some(Download {
            gid,
            task: Arc::clone(&entry.task),
            progress: self.progress.get(&gid).cloned(),
            is_removed: false,
            kin: self.kin(gid, entry),
            torrent: None,
        })
    }

    fn removed(&self, gid: Gid) -> Option<Download> {
        let removed = self.removed.get(&gid)?;
        Some(Download {
            gid,
            task: Arc::clone(&removed.task),
            progress: None,
            is_removed: true,
            kin: Kin::None,
            torrent: removed.torrent.clone(),
        })
    }

    /// Finds a download by GID or unique prefix.
    pub(crate) fn find(&self, text: &str) -> Result<Download, NotFound> {
        let (first, last) = Gid::range(text).ok_or(NotFound::Invalid)?;
        let tasks = self.tasks.range(first..=last).map(|(gid, _)| *gid);
        let removed = self.removed.range(first..=last).map(|(gid, _)| *gid);
        // A task that was created with the GID of a removed download takes precedence.
        let removed = removed.filter(|gid| !self.tasks.contains_key(gid));
        let mut found = tasks.chain(removed);
        match (found.next(), found.next()) {
            (None, _) => Err(NotFound::Unknown),
            (Some(gid), None) => self
                .download(gid)
                .or_else(|| self.removed(gid))
                .ok_or(NotFound::Unknown),
            (Some(_), Some(_)) => Err(NotFound::Ambiguous),
        }
    }

    /// In the order in which they became active.
    pub(crate) fn active(&self) -> impl Iterator<Item = Download> {
        self.active.values().filter_map(|gid| self.download(*gid))
    }

    /// Waiting and paused downloads, in the order of their turns.
    pub(crate) fn waiting(&self) -> impl DoubleEndedIterator<Item = Gid> + ExactSizeIterator {
        self.waiting.values().copied()
    }

    pub(crate) fn task(&self, gid: Gid) -> Option<&Arc<dyn Task>> {
        self.tasks.get(&gid).map(|entry| &entry.task)
    }

    /// The waiting (else: stopped) downloads that `admits` accepts, restricted to the `range` that is computed from
    /// their number.
    pub(crate) fn list(
        &self,
        is_waiting: bool,
        admits: Option<&Admits<'_>>,
        range: impl FnOnce(usize) -> std::ops::Range<usize>,
    ) -> Vec<Download> {
        let waiting = self.waiting.values().map(|gid| Stopped::Task(*gid));
        let stopped = self.stopped.values().copied();
        let look = |place: Stopped| match place {
            Stopped::Task(gid) => self.download(gid),
            Stopped::Removed(gid) => self.removed(gid),
        };
        if let Some(admits) = admits {
            let all: Box<dyn Iterator<Item = Stopped>> = if is_waiting {
                Box::new(waiting)
            } else {
                Box::new(stopped)
            };
            let seen: Vec<Download> = all.filter_map(look).filter(|found| admits(&*found.task)).collect();
            let range = range(seen.len());
            return seen.into_iter().skip(range.start).take(range.len()).collect();
        }
        if is_waiting {
            let range = range(waiting.len());
            waiting.skip(range.start).take(range.len()).filter_map(look).collect()
        } else {
            let range = range(stopped.len());
            stopped.skip(range.start).take(range.len()).filter_map(look).collect()
        }
    }

    pub(crate) fn stopped_tasks(&self) -> impl Iterator<Item = &str> {
        self.stopped.values().filter_map(|stopped| match stopped {
            Stopped::Task(gid) => self.task(*gid).map(|task| task.id()),
            Stopped::Removed(_) => None,
        })
    }

    /// Number of active, waiting and stopped downloads, and of those that stopped since this process started.
    pub(crate) fn counts(&self) -> [u64; 4] {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let stopped = count(self.stopped.len());
        [
            count(self.active.len()),
            count(self.waiting.len()),
            stopped,
            self.stopped_in_all.max(stopped),
        ]
    }

    pub(crate) fn newest_notice(&self) -> u64 {
        self.newest_notice
    }

    /// Up to `most` notices after `cursor`, in order.
    pub(crate) fn notices_after(&self, cursor: u64, most: usize) -> Result<Vec<(Kind, Gid)>, Missed> {
        let held = u64::try_from(self.notices.len()).unwrap_or(u64::MAX);
        let missing = self.newest_notice.saturating_sub(cursor);
        if missing > held {
            return Err(Missed);
        }
        let skip = usize::try_from(held - missing).unwrap_or(usize::MAX);
        Ok(self.notices.iter().skip(skip).take(most).copied().collect())
    }
}

#[cfg(test)]
mod tests;
