//! Looks for the files of completed tasks: some at every interval, and all when a caller asks.
//!
//! A call on a file of a network disk that does not answer blocks its thread and cannot be interrupted. So there is one
//! check at a time, on a thread that nobody waits for: neither the driver nor the end of the process.

use std::{path::PathBuf, thread, time::Duration};

use tokio::{sync::mpsc, time::Instant};

use crate::{
    driver::{batch::Answer, signal::Signal},
    model::{
        file,
        id::{TaskId, Timestamp},
        task::Task,
    },
    state::State,
};

/// Files of a check by the clock; the next one continues after them.
const MAX_FILES: usize = 1_000;

pub(super) struct FileChecks {
    interval: Duration,
    signal: mpsc::Sender<Signal>,
    due_at: Instant,
    is_running: bool,
    /// The serial of the last task that a check by the clock has looked at.
    last: u64,
    /// Callers of the running check.
    callers: Vec<Answer>,
    /// Callers that came meanwhile: the next check, of all files, is theirs.
    next: Vec<Answer>,
}

type Wanted = (TaskId, PathBuf, Option<Timestamp>);

impl FileChecks {
    pub(super) fn new(interval: Duration, signal: mpsc::Sender<Signal>) -> Self {
        Self {
            interval,
            signal,
            due_at: Instant::now() + interval,
            is_running: false,
            last: 0,
            callers: Vec::new(),
            next: Vec::new(),
        }
    }

    /// When [`FileChecks::tick`] has something to do.
    pub(super) fn due_at(&self) -> Option<Instant> {
        (!self.is_running).then_some(self.due_at)
    }

    pub(super) fn tick(&mut self, state: &State) {
        if self.due_at().is_none_or(|at| at > Instant::now()) {
            return;
        }
        self.due_at = Instant::now() + self.interval;
        let round: Vec<_> = state.completed_after(self.last).take(MAX_FILES).collect();
        // The round that reaches the newest task is followed by one that begins with the oldest.
        self.last = round
            .last()
            .filter(|_| round.len() == MAX_FILES)
            .map_or(0, |task| task.serial);
        let wanted: Vec<Wanted> = round.into_iter().filter_map(|task| wanted(task)).collect();
        if !wanted.is_empty() {
            self.check(wanted);
        }
    }

    /// Checks every file for a caller.
    pub(super) fn check_all(&mut self, state: &State, caller: Answer) {
        self.next.push(caller);
        if !self.is_running {
            self.check_for_callers(state);
        }
    }

    /// The running check has ended and its result is applied; returns the callers that waited for it.
    pub(super) fn ended(&mut self, state: &State) -> Vec<Answer> {
        self.is_running = false;
        let callers = std::mem::take(&mut self.callers);
        if !self.next.is_empty() {
            self.check_for_callers(state);
        }
        callers
    }

    fn check_for_callers(&mut self, state: &State) {
        self.callers = std::mem::take(&mut self.next);
        let all = state.completed_after(0).filter_map(|task| wanted(task)).collect();
        self.check(all);
    }

    fn check(&mut self, wanted: Vec<Wanted>) {
        let signal = self.signal.clone();
        let look = move || {
            let found = wanted.into_iter().map(|(task, path, completed_at)| {
                let found = file::look_for(&path, completed_at);
                (task, path, found)
            });
            let _driver_ended = signal.blocking_send(Signal::FilesChecked(found.collect()));
        };
        let spawned = thread::Builder::new().name("file-check".to_owned()).spawn(look);
        self.is_running = spawned.is_ok();
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread can be started to look for the files of completed tasks");
            for mut caller in self.callers.drain(..) {
                caller.fail(&format!("no thread can be started to look for files: {error}"));
            }
        }
    }
}

fn wanted(task: &Task) -> Option<Wanted> {
    Some((task.id, task.path.as_deref()?.to_owned(), task.completed_at))
}
