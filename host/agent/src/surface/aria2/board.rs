//! The tasks in the orders that aria2's clients know (active, waiting, stopped), found by GID, and what happens to them as
//! numbered notices. Kept current with the projection, under the same lock. Pure.
//!
//! Only places are kept here; what a task is, the projection knows.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use protocol::{QueueDto, TaskStatus};

use super::gid::Gid;
use crate::projection::{
    shelf::Task,
    tasks::{Change, Changed, Projection},
};

/// Notices kept for readers that are behind: ten thousand downloads that start and complete at once fit, in a mebibyte.
const MAX_NOTICES: usize = 64 * 1024;

/// Removed downloads that are remembered; aria2's own number.
const MAX_REMOVED: usize = 1000;

/// What aria2's clients are told of a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It became active.
    Start,
    /// It was paused.
    Pause,
    /// It was removed while it was active.
    Stop,
    /// Its file is there.
    Complete,
    /// It gave up.
    Error,
}

/// That something happened to a download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(super) kind: Kind,
    pub(super) gid: Gid,
}

/// A reader is so far behind that what it misses is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Missed;

/// A download that is no task any more: one that was removed while it was active.
#[derive(Debug, Clone)]
pub(crate) struct Removed {
    pub(super) gid: Gid,
    /// The task as it was.
    pub(super) task: Arc<str>,
}

/// A download that has stopped.
#[derive(Debug, Clone)]
pub(super) enum Stopped {
    /// The task at this place.
    Task(u64),
    Removed(Removed),
}

/// What a GID names.
#[derive(Debug, Clone)]
pub(super) enum Found {
    /// The task at this place.
    Task(u64),
    Removed(Removed),
}

/// Why a text names no download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotFound {
    Invalid,
    Unknown,
    Ambiguous,
}

/// Where a task is among the others of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Active,
    Waiting,
    Stopped,
}

impl Class {
    fn of(status: TaskStatus) -> Self {
        match status {
            TaskStatus::Downloading | TaskStatus::Preparing => Self::Active,
            TaskStatus::Pending | TaskStatus::Paused => Self::Waiting,
            TaskStatus::Completed | TaskStatus::Error => Self::Stopped,
        }
    }
}

/// A turn among the waiting: the queue's rank, the place in the queue, age.
type Turn = (u32, u32, u64);

/// The orders and the notices.
#[derive(Debug, Default)]
pub(crate) struct Board {
    gids: BTreeMap<Gid, u64>,
    waiting: BTreeSet<Turn>,
    /// By when they became active.
    active: BTreeMap<u64, u64>,
    /// By when they stopped.
    stopped: BTreeMap<u64, Stopped>,
    removed: BTreeMap<Gid, u64>,
    /// Which number an active or stopped task has in its order.
    seats: HashMap<u64, u64>,
    next_seat: u64,
    ranks: HashMap<String, u32>,
    notices: VecDeque<Notice>,
    newest_notice: u64,
    /// How many downloads have stopped since this process began to look.
    stopped_in_all: u64,
    revision: u64,
    is_filled: bool,
}

impl Board {
    /// Takes in what an event changed. Whether there are new notices.
    pub(crate) fn take(&mut self, changed: &Changed, projection: &Projection) -> bool {
        let before = self.newest_notice;
        match changed {
            Changed::Tasks(changes) => {
                for change in changes {
                    self.change(change, projection);
                }
            }
            Changed::Queues => self.rank(projection),
            Changed::All => self.renew(projection),
        }
        self.newest_notice != before
    }

    fn change(&mut self, change: &Change, projection: &Projection) {
        let Some(task) = change.after.as_ref().or(change.before.as_ref()) else {
            return;
        };
        let Some(gid) = Gid::of_task(&task.id) else { return };
        self.revision += 1;
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let (was, is) = (before.map(|task| task.status), after.map(|task| task.status));
        let keeps_seat = was.map(Class::of) == is.map(Class::of) && is.map(Class::of) != Some(Class::Waiting);
        if let Some(before) = before.filter(|_| !keeps_seat) {
            self.leave(change.place, before);
        }
        match (before, after) {
            (_, Some(after)) => {
                self.gids.insert(gid, change.place);
                if !keeps_seat {
                    self.enter(change.place, after);
                }
            }
            (Some(before), None) => {
                self.gids.remove(&gid);
                if Class::of(before.status) == Class::Active {
                    self.remember(gid, &projection.text_of(before));
                }
            }
            (None, None) => {}
        }
        self.notice(gid, was, is);
    }

    fn enter(&mut self, place: u64, task: &Task) {
        if Class::of(task.status) == Class::Waiting {
            self.waiting.insert(self.turn(place, task));
            return;
        }
        self.next_seat += 1;
        self.seats.insert(place, self.next_seat);
        if Class::of(task.status) == Class::Active {
            self.active.insert(self.next_seat, place);
        } else {
            self.stopped.insert(self.next_seat, Stopped::Task(place));
        }
    }

    fn leave(&mut self, place: u64, task: &Task) {
        if Class::of(task.status) == Class::Waiting {
            let turn = self.turn(place, task);
            self.waiting.remove(&turn);
        } else if let Some(seat) = self.seats.remove(&place) {
            self.active.remove(&seat);
            self.stopped.remove(&seat);
        }
    }

    fn turn(&self, place: u64, task: &Task) -> Turn {
        let rank = self.ranks.get(&*task.queue).copied().unwrap_or(u32::MAX);
        let order = task.queue_order.checked_sub(1).unwrap_or(u32::MAX);
        (rank, order, place)
    }

    fn remember(&mut self, gid: Gid, task: &str) {
        self.next_seat += 1;
        let removed = Removed { gid, task: task.into() };
        self.stopped.insert(self.next_seat, Stopped::Removed(removed));
        self.removed.insert(gid, self.next_seat);
        if self.removed.len() > MAX_REMOVED
            && let Some((gid, _)) = self.removed.iter().min_by_key(|(_, seat)| **seat)
        {
            self.forget(*gid);
        }
    }

    /// Forgets a removed download.
    pub(crate) fn forget(&mut self, gid: Gid) -> bool {
        let seat = self.removed.remove(&gid);
        self.revision += 1;
        seat.is_some_and(|seat| self.stopped.remove(&seat).is_some())
    }

    /// Forgets all removed downloads.
    pub(crate) fn forget_all(&mut self) {
        for seat in std::mem::take(&mut self.removed).into_values() {
            self.stopped.remove(&seat);
        }
        self.revision += 1;
    }

    fn notice(&mut self, gid: Gid, was: Option<TaskStatus>, is: Option<TaskStatus>) {
        let was_active = was.is_some_and(|was| Class::of(was) == Class::Active);
        let kind = match is {
            _ if was == is => return,
            Some(TaskStatus::Downloading | TaskStatus::Preparing) if !was_active => Kind::Start,
            Some(TaskStatus::Paused) if was_active => Kind::Pause,
            Some(TaskStatus::Completed) => Kind::Complete,
            Some(TaskStatus::Error) => Kind::Error,
            None if was_active => Kind::Stop,
            _ => return,
        };
        self.stopped_in_all += u64::from(matches!(kind, Kind::Complete | Kind::Error | Kind::Stop));
        self.newest_notice += 1;
        self.notices.push_back(Notice { kind, gid });
        if self.notices.len() > MAX_NOTICES {
            self.notices.pop_front();
        }
    }

    /// All tasks anew. What is known of them keeps its order, and what became of it meanwhile is told.
    pub(crate) fn renew(&mut self, projection: &Projection) {
        let seats = std::mem::take(&mut self.seats);
        let seat_of = |place: &u64| seats.get(place).copied();
        let before: HashMap<Gid, Option<u64>> = self.gids.iter().map(|(gid, place)| (*gid, seat_of(place))).collect();
        let was_active: HashMap<u64, u64> = self.active.iter().map(|(seat, place)| (*place, *seat)).collect();
        let old_gids = std::mem::take(&mut self.gids);
        self.waiting.clear();
        self.active.clear();
        self.stopped.retain(|_, stopped| matches!(stopped, Stopped::Removed(_)));
        self.read_ranks(projection);
        let mut tasks: Vec<(u64, Arc<Task>, Gid)> = projection
            .placed()
            .filter_map(|(place, task)| Gid::of_task(&task.id).map(|gid| (place, task, gid)))
            .collect();
        // What stopped before anybody looked is ordered by when it was completed, else made.
        tasks.sort_by_key(|(place, task, gid)| {
            let seat = before.get(gid).copied().flatten().unwrap_or(u64::MAX);
            (seat, task.completed_at.max(task.created_at), *place)
        });
        for (place, task, gid) in tasks {
            self.enter(place, &task);
            self.gids.insert(gid, place);
            let old_place = old_gids.get(&gid);
            let was = old_place.map(|place| {
                if was_active.contains_key(place) {
                    Class::Active
                } else if seats.contains_key(place) {
                    Class::Stopped
                } else {
                    Class::Waiting
                }
            });
            if self.is_filled {
                self.notice_renewed(gid, was, task.status);
            }
        }
        for (gid, place) in &old_gids {
            if !self.gids.contains_key(gid) && was_active.contains_key(place) {
                self.notice(*gid, Some(TaskStatus::Downloading), None);
            }
        }
        self.is_filled = true;
        self.revision += 1;
    }

    fn notice_renewed(&mut self, gid: Gid, was: Option<Class>, is: TaskStatus) {
        let was = was.map(|class| match class {
            Class::Active => TaskStatus::Downloading,
            Class::Waiting => TaskStatus::Pending,
            // It does not matter how: a stopped task that stays so is told no second time.
            Class::Stopped if Class::of(is) == Class::Stopped => is,
            Class::Stopped => TaskStatus::Error,
        });
        self.notice(gid, was, Some(is));
    }

    fn rank(&mut self, projection: &Projection) {
        self.read_ranks(projection);
        let places: Vec<u64> = self.waiting.iter().map(|(_, _, place)| *place).collect();
        self.waiting = places
            .into_iter()
            .filter_map(|place| projection.at(place).map(|task| self.turn(place, task)))
            .collect();
        self.revision += 1;
    }

    fn read_ranks(&mut self, projection: &Projection) {
        let queues: Vec<QueueDto> = serde_json::from_str(projection.queues()).unwrap_or_default();
        self.ranks = queues.into_iter().map(|queue| queue.queue_id).zip(0..).collect();
    }

    /// Grows with everything that changes what is listed here.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// What a GID, or the beginning of one, names.
    pub(super) fn find(&self, text: &str) -> Result<(Gid, Found), NotFound> {
        let (first, last) = Gid::range(text).ok_or(NotFound::Invalid)?;
        let tasks = self
            .gids
            .range(first..=last)
            .map(|(gid, place)| (*gid, Found::Task(*place)));
        let removed = self.removed.range(first..=last).filter_map(|(gid, seat)| {
            let Stopped::Removed(removed) = self.stopped.get(seat)? else {
                return None;
            };
            // A task that has the GID by now goes before.
            (!self.gids.contains_key(gid)).then(|| (*gid, Found::Removed(removed.clone())))
        });
        let mut found = tasks.chain(removed);
        match (found.next(), found.next()) {
            (None, _) => Err(NotFound::Unknown),
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => Err(NotFound::Ambiguous),
        }
    }

    /// The active tasks' places, in the order in which they started.
    pub(super) fn active(&self) -> impl Iterator<Item = u64> {
        self.active.values().copied()
    }

    /// The places of those that wait or are paused, in the order of their turns.
    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = u64> + ExactSizeIterator {
        self.waiting.iter().map(|(_, _, place)| *place)
    }

    /// The stopped ones, in the order in which they stopped.
    pub(super) fn stopped(&self) -> impl DoubleEndedIterator<Item = &Stopped> + ExactSizeIterator {
        self.stopped.values()
    }

    /// How many are active, waiting, stopped, and have stopped since this process began to look.
    pub(super) fn counts(&self) -> [u64; 4] {
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        let stopped = count(self.stopped.len());
        [
            count(self.active.len()),
            count(self.waiting.len()),
            stopped,
            self.stopped_in_all.max(stopped),
        ]
    }

    /// The number of the newest notice.
    pub(crate) fn newest_notice(&self) -> u64 {
        self.newest_notice
    }

    /// Up to `most` notices after the `cursor`-th, in order.
    pub(super) fn notices_after(&self, cursor: u64, most: usize) -> Result<Vec<Notice>, Missed> {
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
