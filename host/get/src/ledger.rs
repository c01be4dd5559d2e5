//! Which files are under way and how all have ended. Pure: changes in, things to tell out.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use engine::{Phase, Task, TaskId};
use transfer::{Failure, FailureKind, Progress};

use crate::render::{Event, FileView, Screen, Totals};

/// The files that have been handed to the engine and have not ended, and the sums over those that have.
#[derive(Debug)]
pub struct Ledger {
    files: HashMap<TaskId, File>,
    /// The files that have a run, by their position.
    running: BTreeMap<usize, TaskId>,
    totals: Totals,
    last_failure: Option<FailureKind>,
    begun: Instant,
    /// The directory from which people see paths.
    current_dir: PathBuf,
}

#[derive(Debug)]
struct File {
    view: FileView,
    begun: Option<Instant>,
    /// Bytes that the run received, as last told.
    received_bytes: u64,
    /// The file that was there before, if that is why nothing is moved.
    existing: Option<PathBuf>,
}

/// A task as the ledger sees it.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Where it is in its life.
    pub state: TaskState<'a>,
    /// Its final path, once known.
    pub path: Option<&'a Path>,
    /// Its size, once known.
    pub total_bytes: Option<u64>,
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy)]
pub enum TaskState<'a> {
    Waiting,
    Running,
    Completed,
    Failed(&'a Failure),
}

impl<'a> From<&'a Task> for Change<'a> {
    fn from(task: &'a Task) -> Self {
        let state = match &task.phase {
            Phase::Pending | Phase::Retrying(_) | Phase::Paused => TaskState::Waiting,
            Phase::Running(_) | Phase::Stopping { .. } => TaskState::Running,
            Phase::Completed => TaskState::Completed,
            Phase::Failed(failure) => TaskState::Failed(failure),
        };
        Self {
            state,
            path: task.path.as_deref(),
            total_bytes: task.total_bytes,
        }
    }
}

impl Ledger {
    /// An empty ledger for `count` files.
    pub fn new(count: usize, current_dir: PathBuf) -> Self {
        Self {
            files: HashMap::new(),
            running: BTreeMap::new(),
            totals: Totals {
                count,
                ..Totals::default()
            },
            last_failure: None,
            begun: Instant::now(),
            current_dir,
        }
    }

    /// Enters the file at position `index` of the input.
    pub fn enter(&mut self, id: TaskId, index: usize, url: String) {
        let view = FileView {
            index,
            url,
            ..FileView::default()
        };
        self.files.insert(
            id,
            File {
                view,
                begun: None,
                received_bytes: 0,
                existing: None,
            },
        );
    }

    /// Forgets a file whose task was removed by somebody else; says whether it was under way.
    pub fn forget(&mut self, id: TaskId, screen: &mut dyn Screen) -> bool {
        let Some(file) = self.remove(id) else { return false };
        self.totals.received_bytes += file.received_bytes;
        screen.tell(&file.view, &Event::Notice("its task was removed"));
        true
    }

    /// Whether every file that was entered has come to its end.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many files have been entered and have not ended.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// The files that have been entered and have not ended.
    pub fn ids(&self) -> Vec<TaskId> {
        self.files.keys().copied().collect()
    }

    /// The sums so far, with what the files under way have received.
    pub fn totals(&self) -> Totals {
        let under_way: u64 = self.files.values().map(|file| file.received_bytes).sum();
        let received_bytes = self.totals.received_bytes + under_way;
        Totals {
            received_bytes,
            elapsed: self.begun.elapsed(),
            ..self.totals
        }
    }

    /// Why the last file that failed did so.
    pub fn last_failure(&self) -> Option<FailureKind> {
        self.last_failure
    }

    /// The files that have a run, in the order of the input.
    pub fn active(&self) -> Vec<&FileView> {
        self.running
            .values()
            .filter_map(|id| self.files.get(id))
            .map(|file| &file.view)
            .collect()
    }

    /// A task changed; tells what that means. Says whether the file is there, so that the task can be forgotten.
    pub fn changed(&mut self, id: TaskId, change: Change<'_>, screen: &mut dyn Screen) -> bool {
        let Some(file) = self.files.get_mut(&id) else {
            return false;
        };
        file.view.total_bytes = change.total_bytes.or(file.view.total_bytes);
        if !matches!(change.state, TaskState::Waiting) && file.begun.is_none() {
            file.begun = Some(Instant::now());
            screen.tell(&file.view, &Event::Started);
        }
        let is_skipped = matches!(change.state, TaskState::Failed(_)) && file.existing.is_some();
        if let Some(path) = change.path.filter(|_| file.view.name.is_none() && !is_skipped) {
            let seen = path.strip_prefix(&self.current_dir).unwrap_or(path);
            file.view.name = Some(seen.to_string_lossy().into_owned());
            screen.tell(
                &file.view,
                &Event::Named {
                    path,
                    total_bytes: change.total_bytes,
                },
            );
        }
        match change.state {
            TaskState::Waiting => {
                self.running.remove(&file.view.index);
                false
            }
            TaskState::Running => {
                self.running.insert(file.view.index, id);
                false
            }
            TaskState::Completed => {
                self.completed(id, change.path.unwrap_or(Path::new("")), screen);
                true
            }
            TaskState::Failed(failure) => {
                self.failed(id, failure, screen);
                false
            }
        }
    }

    fn remove(&mut self, id: TaskId) -> Option<File> {
        let file = self.files.remove(&id)?;
        self.running.remove(&file.view.index);
        Some(file)
    }

    fn completed(&mut self, id: TaskId, path: &Path, screen: &mut dyn Screen) {
        let Some(file) = self.remove(id) else { return };
        let size_bytes = file.view.total_bytes.unwrap_or(file.view.done_bytes);
        // What was told last, and what has come since.
        let received_bytes = file.received_bytes + size_bytes.saturating_sub(file.view.done_bytes);
        self.totals.finished += 1;
        self.totals.received_bytes += received_bytes;
        let elapsed = file.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        screen.tell(
            &file.view,
            &Event::Finished {
                path,
                size_bytes,
                received_bytes,
                elapsed,
            },
        );
    }

    fn failed(&mut self, id: TaskId, failure: &Failure, screen: &mut dyn Screen) {
        let Some(file) = self.remove(id) else { return };
        self.totals.received_bytes += file.received_bytes;
        if let Some(existing) = &file.existing {
            self.totals.skipped += 1;
            screen.tell(&file.view, &Event::Skipped { existing });
        } else {
            self.totals.failed += 1;
            self.last_failure = Some(failure.kind);
            screen.tell(&file.view, &Event::Failed(failure));
        }
    }

    /// A run told how it is doing.
    pub fn progressed(&mut self, id: TaskId, progress: &Progress) {
        let Some(file) = self.files.get_mut(&id) else { return };
        file.received_bytes = progress.received_bytes;
        let view = &mut file.view;
        view.stage = progress.stage;
        view.total_bytes = progress.total_bytes.or(view.total_bytes);
        view.done_bytes = progress.done_bytes;
        view.bytes_per_second = progress.bytes_per_second;
        view.connections = progress.connections;
    }

    /// Nothing is moved for the file, because `existing` is there; its task is about to end.
    pub fn skipped(&mut self, id: TaskId, existing: &Path) {
        if let Some(file) = self.files.get_mut(&id) {
            file.existing = Some(existing.to_owned());
        }
    }

    /// Something else happened to the file.
    pub fn tell(&self, id: TaskId, event: &Event<'_>, screen: &mut dyn Screen) {
        if let Some(file) = self.files.get(&id) {
            screen.tell(&file.view, event);
        }
    }
}

#[cfg(test)]
mod tests;
