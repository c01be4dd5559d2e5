//! The activity log of each task, shown to users: buffered here, saved in the background.

use std::{collections::HashSet, time::Duration};

use engine::TaskId;
use protocol::TaskStatus;
use store::Store;
use tokio::time::Instant;

use crate::{
    rows::{self, Activity, FailedSource},
    view,
};

/// Longest buffering: a crash loses no more than this.
const SAVE_AFTER: Duration = Duration::from_secs(1);

/// A fuller buffer is saved at once.
const MAX_WAITING: usize = 512;

const MAX_MESSAGE_CHARS: usize = 500;

/// The entries that are not on disk yet.
#[derive(Debug)]
pub(crate) struct History {
    store: Store,
    newest: i64,
    /// Tasks with rows or waiting entries, so that deleting the others costs nothing.
    tasks: HashSet<TaskId>,
    waiting: Vec<Activity>,
    gone: Vec<TaskId>,
    save_at: Option<Instant>,
}

/// What an entry says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Note<'t> {
    pub(crate) kind: &'static str,
    pub(crate) message: &'t str,
    pub(crate) status: Option<TaskStatus>,
    pub(crate) error_kind: Option<&'static str>,
    /// The URL of the source that failed, and why.
    pub(crate) source: Option<(&'t str, &'t str)>,
}

impl<'t> Note<'t> {
    pub(crate) fn of(kind: &'static str, message: &'t str) -> Self {
        Self {
            kind,
            message,
            ..Self::default()
        }
    }
}

impl History {
    pub(crate) async fn load(store: Store) -> Result<Self, store::ReadError> {
        let (newest, tasks) = rows::load_history(&store).await?;
        Ok(Self {
            store,
            newest,
            tasks,
            waiting: Vec::new(),
            gone: Vec::new(),
            save_at: None,
        })
    }

    pub(crate) fn note(&mut self, task: TaskId, note: Note<'_>) -> protocol::ActivityEntry {
        let cut = |text: &str| text.chars().take(MAX_MESSAGE_CHARS).collect();
        self.newest += 1;
        let entry = Activity {
            id: self.newest,
            task,
            at_ms: view::now_millis(),
            kind: note.kind,
            message: cut(note.message),
            status: note.status,
            error_kind: note.error_kind,
            source: note.source.map(|(url, reason)| FailedSource {
                url: url.to_owned(),
                reason: cut(reason),
            }),
        };
        let shown = entry.view();
        self.tasks.insert(task);
        self.waiting.push(entry);
        self.save_at.get_or_insert_with(|| Instant::now() + SAVE_AFTER);
        shown
    }

    /// Deletes the history of a deleted task.
    pub(crate) fn forget(&mut self, task: TaskId) {
        if self.tasks.remove(&task) {
            self.gone.push(task);
            self.save_at.get_or_insert_with(|| Instant::now() + SAVE_AFTER);
        }
    }

    pub(crate) fn save_at(&self) -> Option<Instant> {
        self.save_at
    }

    /// Whether the buffer is full.
    pub(crate) fn is_due(&self) -> bool {
        self.waiting.len() + self.gone.len() >= MAX_WAITING || self.save_at.is_some_and(|at| at <= Instant::now())
    }

    /// Saves the buffer. Entries that cannot be saved are dropped: nothing but the display depends on them.
    pub(crate) async fn save(&mut self) {
        self.save_at = None;
        if self.waiting.is_empty() && self.gone.is_empty() {
            return;
        }
        let entries = std::mem::take(&mut self.waiting);
        let gone = std::mem::take(&mut self.gone);
        let saved = self
            .store
            .write(move |transaction| rows::save_history(transaction, &entries, &gone))
            .await;
        if let Err(error) = saved {
            tracing::warn!(%error, "cannot save what happened to tasks");
        }
    }
}
