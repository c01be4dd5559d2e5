//! Shows the progress of added tasks in the formats of `svc get`.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context as _;
use command::Exit;
use engine::TaskId;
use get::{
    ledger::{Change, Ledger, TaskState},
    render::{Event, Screen, Totals},
};
use protocol::{
    ActivityEntry, DaemonEvent, DaemonSnapshot, EventBody, TaskDto, TaskRuntimeDto, TaskStatus, agent::AgentSnapshot,
};
use transfer::{Failure, FailureKind, Progress, Stage};

use crate::service::{Observer, attend::End};

pub(crate) struct ProgressObserver {
    ledger: Ledger,
    screen: Box<dyn Screen>,
    /// Tasks that another client removed.
    removed: usize,
}

impl ProgressObserver {
    /// Tracks tasks by id and safe URL, in the order of the input.
    pub(crate) fn new(entered: &[(String, String)], screen: Box<dyn Screen>) -> Self {
        let mut ledger = Ledger::new(entered.len(), PathBuf::new());
        for (index, (id, url)) in entered.iter().enumerate() {
            if let Ok(id) = id.parse() {
                ledger.enter(id, index, url.clone());
            }
        }
        Self {
            ledger,
            screen,
            removed: 0,
        }
    }

    /// Applies a complete state. Tracked tasks that are missing in it were deleted.
    fn replaced(&mut self, daemon: &DaemonSnapshot) {
        let there: HashSet<TaskId> = daemon.tasks.iter().filter_map(|task| id(&task.task_id)).collect();
        for gone in self.ledger.ids().into_iter().filter(|id| !there.contains(id)) {
            self.gone(gone);
        }
        daemon.tasks.iter().for_each(|task| self.changed(task));
        daemon.task_runtime.values().for_each(|run| self.progressed(run));
    }

    fn changed(&mut self, task: &TaskDto) {
        let Some(id) = id(&task.task_id) else { return };
        let failure = failure(task);
        let path = Path::new(&task.save_dir).join(&task.file_name);
        let change = Change {
            state: match task.status {
                TaskStatus::Pending | TaskStatus::Paused => TaskState::Waiting,
                TaskStatus::Downloading | TaskStatus::Preparing => TaskState::Running,
                TaskStatus::Completed => TaskState::Completed,
                TaskStatus::Error => TaskState::Failed(&failure),
            },
            // Before the first response, the name is only a guess.
            path: (task.total_bytes > 0 || task.status == TaskStatus::Completed).then_some(&path),
            total_bytes: Some(task.total_bytes).filter(|total| *total > 0),
        };
        self.ledger.changed(id, change, self.screen.as_mut());
    }

    fn progressed(&mut self, run: &TaskRuntimeDto) {
        let Some(id) = id(&run.task_id) else { return };
        let progress = Progress {
            stage: Stage::Moving,
            total_bytes: Some(run.total_bytes).filter(|total| *total > 0),
            done_bytes: run.downloaded_bytes,
            received_bytes: run.downloaded_bytes,
            bytes_per_second: run.download_bps,
            connections: run
                .active_transfers
                .and_then(|count| u16::try_from(count).ok())
                .unwrap_or_default(),
            ..Progress::default()
        };
        self.ledger.progressed(id, &progress);
    }

    fn noted(&mut self, entry: &ActivityEntry) {
        // Changes of a task's state have their own event.
        if let Some(id) = id(&entry.task_id).filter(|_| entry.status.is_none()) {
            self.ledger
                .report(id, &Event::Notice(&entry.message), self.screen.as_mut());
        }
    }

    fn gone(&mut self, id: TaskId) {
        if self.ledger.forget(id, self.screen.as_mut()) {
            self.removed += 1;
        }
    }

    /// Reports the result and returns the exit.
    pub(crate) fn end(mut self, end: End) -> anyhow::Result<Exit> {
        self.screen.summary(&Totals {
            is_left_to_service: true,
            ..self.ledger.totals()
        });
        match self.screen.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                return Err(error).context("cannot write to standard output");
            }
            _ => {}
        }
        Ok(match end {
            End::Done if self.removed == 0 => self.ledger.last_failure().map_or(Exit::Success, Exit::from),
            _ => Exit::Unfinished,
        })
    }
}

impl Observer for ProgressObserver {
    fn interval(&self) -> Option<Duration> {
        self.screen.interval()
    }

    fn snapshot(&mut self, snapshot: &AgentSnapshot) {
        self.replaced(&snapshot.daemon);
    }

    fn event(&mut self, _told: &EventBody, event: &DaemonEvent) {
        match event {
            DaemonEvent::SnapshotReplaced(daemon) => self.replaced(daemon),
            DaemonEvent::TaskChanged(task) => self.changed(task),
            DaemonEvent::TasksSnapshot(snapshot) => {
                snapshot.tasks.iter().for_each(|task| self.changed(task));
                let gone = snapshot.deleted_task_ids.iter().filter_map(|gone| id(gone));
                gone.for_each(|gone| self.gone(gone));
            }
            DaemonEvent::TaskDeleted { task_id } => {
                if let Some(id) = id(task_id) {
                    self.gone(id);
                }
            }
            DaemonEvent::TaskRuntimeChanged(run) => self.progressed(run),
            DaemonEvent::TaskActivityAdded(entry) => self.noted(entry),
            _ => {}
        }
    }

    /// Shows the progress of active tasks.
    fn look(&mut self) {
        self.screen.progress(&self.ledger.active(), &self.ledger.totals());
    }

    fn flush(&mut self) -> io::Result<()> {
        self.screen.flush()
    }

    fn is_done(&self) -> bool {
        self.ledger.is_empty()
    }
}

fn id(text: &str) -> Option<TaskId> {
    text.parse().ok()
}

fn failure(task: &TaskDto) -> Failure {
    let kind = FailureKind::ALL.iter().find(|kind| kind.code() == task.error_kind);
    Failure::new(
        kind.copied().unwrap_or(FailureKind::Internal),
        task.error_message.clone(),
    )
}
