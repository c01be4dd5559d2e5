//! Tracks the files in progress and the totals of ended ones. Pure: receives changes of tasks, reports events to a
//! [`Screen`].

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use engine::{Phase, Task, TaskId};
use transfer::{Failure, FailureKind, Progress};

use crate::render::{Event, FileView, Screen, Totals};

/// Files that were submitted and have not ended, and totals of the others.
#[derive(Debug)]
pub struct Ledger {
    files: HashMap<TaskId, File>,
    /// Files with a run, by position.
    running: BTreeMap<usize, TaskId>,
    totals: Totals,
    last_failure: Option<FailureKind>,
    begun: Instant,
    /// Displayed paths are relative to it.
    current_dir: PathBuf,
}

#[derive(Debug)]
struct File {
    view: FileView,
    begun: Option<Instant>,
    /// Bytes that the run received, as of its last progress.
    received_bytes: u64,
    /// An existing file, because of which nothing is downloaded.
    existing: Option<PathBuf>,
}

/// A change of a task.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The state after the change.
    pub state: TaskState<'a>,
    /// The final path, once known.
    pub path: Option<&'a Path>,
    /// Once known.
    pub total_bytes: Option<u64>,
}

/// The state of a task, as far as the ledger distinguishes it.
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
            Phase::Pending | Phase::Retrying(_) | Phase::AccountLimited(_) | Phase::Paused => TaskState::Waiting,
            Phase::Running(_) | Phase::Stopping { .. } => TaskState::Running,
            Phase::Completed => TaskState::Completed,
            // No account can log in to a process that ends with its downloads.
            Phase::NeedsLogin(wait) => TaskState::Failed(&wait.failure),
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
    /// A ledger of `count` files.
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

    /// Adds the file at position `index` of the input.
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

    /// Notes a file that a directory of the input turned out to have. The first of them has the task of the directory.
    pub(crate) fn note_listed(&mut self, id: TaskId, url: String) {
        if let Some(file) = self.files.get_mut(&id) {
            file.view.url = url;
        } else {
            let index = self.expect_more(1).start;
            self.enter(id, index, url);
        }
    }

    /// More files are wanted than were known at the start; returns their positions.
    pub(crate) fn expect_more(&mut self, count: usize) -> Range<usize> {
        let first = self.totals.count;
        self.totals.count += count;
        first..self.totals.count
    }

    /// Something else than a file failed.
    pub(crate) fn fail_with(&mut self, kind: FailureKind) {
        self.last_failure = Some(kind);
    }

    /// Drops a file whose task was removed by another client; returns whether it was in progress.
    pub fn forget(&mut self, id: TaskId, screen: &mut dyn Screen) -> bool {
        let Some(file) = self.remove(id) else { return false };
        self.totals.received_bytes += file.received_bytes;
        screen.report(&file.view, &Event::Notice("its task was removed"));
        true
    }

    /// Whether every added file has ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of files in progress.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Tasks of the files in progress.
    pub fn ids(&self) -> Vec<TaskId> {
        self.files.keys().copied().collect()
    }

    /// Current totals, including received bytes of files in progress.
    pub fn totals(&self) -> Totals {
        let under_way: u64 = self.files.values().map(|file| file.received_bytes).sum();
        let received_bytes = self.totals.received_bytes + under_way;
        Totals {
            received_bytes,
            elapsed: self.begun.elapsed(),
            ..self.totals
        }
    }

    /// The kind of the last failure.
    pub fn last_failure(&self) -> Option<FailureKind> {
        self.last_failure
    }

    /// Files with a run, in the order of the input.
    pub fn active(&self) -> Vec<&FileView> {
        self.running
            .values()
            .filter_map(|id| self.files.get(id))
            .map(|file| &file.view)
            .collect()
    }

    /// Handles a change of a task and reports it. Returns whether the file is complete, so that the task can be
    /// forgotten.
    pub fn changed(&mut self, id: TaskId, change: Change<'_>, screen: &mut dyn Screen) -> bool {
        let Some(file) = self.files.get_mut(&id) else {
            return false;
        };
        file.view.total_bytes = change.total_bytes.or(file.view.total_bytes);
        if change.path.is_none() && matches!(change.state, TaskState::Waiting) {
            // What it was named as was a description of it: a torrent file.
            file.view.name = None;
        }
        if !matches!(change.state, TaskState::Waiting) && file.begun.is_none() {
            file.begun = Some(Instant::now());
            screen.report(&file.view, &Event::Started);
        }
        let is_skipped = matches!(change.state, TaskState::Failed(_)) && file.existing.is_some();
        if let Some(path) = change.path.filter(|_| file.view.name.is_none() && !is_skipped) {
            let seen = path.strip_prefix(&self.current_dir).unwrap_or(path);
            file.view.name = Some(seen.to_string_lossy().into_owned());
            screen.report(
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
        // Bytes of the last progress, plus those received since.
        let received_bytes = file.received_bytes + size_bytes.saturating_sub(file.view.done_bytes);
        self.totals.finished += 1;
        self.totals.received_bytes += received_bytes;
        let elapsed = file.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
        screen.report(
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
            screen.report(&file.view, &Event::Skipped { existing });
        } else {
            self.totals.failed += 1;
            self.last_failure = Some(failure.kind);
            screen.report(&file.view, &Event::Failed(failure));
        }
    }

    /// Records the progress of a run.
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

    /// Nothing is downloaded for the file, because `existing` exists; its task is about to end.
    pub fn skipped(&mut self, id: TaskId, existing: &Path) {
        if let Some(file) = self.files.get_mut(&id) {
            file.existing = Some(existing.to_owned());
        }
    }

    /// Reports another event of the file.
    pub fn report(&self, id: TaskId, event: &Event<'_>, screen: &mut dyn Screen) {
        if let Some(file) = self.files.get(&id) {
            screen.report(&file.view, event);
        }
    }
}

#[cfg(test)]
mod tests;
