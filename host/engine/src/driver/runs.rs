//! The live runs, and the pending calls of resolvers.

use std::{collections::HashMap, sync::Arc, time::Duration};

use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;
use transfer::{Progress, RateLimiter};

use crate::{
    mailbox::LiveRuns,
    model::{
        id::{RunId, TaskId},
        speed::Speeds,
    },
};

pub(super) struct Runs {
    live: HashMap<RunId, LiveRun>,
    resolving: HashMap<RunId, CancellationToken>,
    published: watch::Sender<Arc<LiveRuns>>,
    /// Cancelled to end runs that did not stop in time.
    pub(super) force_stop: CancellationToken,
    /// When to sample progress next; only while anything runs.
    pub(super) sample_at: Option<Instant>,
}

pub(super) struct LiveRun {
    pub(super) task: TaskId,
    pub(super) stop: CancellationToken,
    pub(super) limiters: Limiters,
    pub(super) progress: watch::Receiver<Progress>,
}

/// The limits of one scope.
#[derive(Clone)]
pub(super) struct Limiters {
    pub(super) download: RateLimiter,
    pub(super) upload: RateLimiter,
}

impl Limiters {
    pub(super) fn new(speeds: Speeds) -> Self {
        Self {
            download: RateLimiter::new(speeds.download),
            upload: RateLimiter::new(speeds.upload),
        }
    }

    pub(super) fn set(&self, speeds: Speeds) {
        self.download.set(speeds.download);
        self.upload.set(speeds.upload);
    }
}

impl Runs {
    pub(super) fn new() -> (Self, watch::Receiver<Arc<LiveRuns>>) {
        let (published, receiver) = watch::channel(Arc::default());
        let runs = Self {
            live: HashMap::new(),
            resolving: HashMap::new(),
            published,
            force_stop: CancellationToken::new(),
            sample_at: None,
        };
        (runs, receiver)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The tasks that have a live run.
    pub(super) fn tasks(&self) -> Vec<TaskId> {
        self.live.values().map(|run| run.task).collect()
    }

    pub(super) fn insert(&mut self, id: RunId, run: LiveRun, sample_interval: Duration) {
        self.published.send_modify(|runs| {
            Arc::make_mut(runs).insert(run.task, (id, run.progress.clone()));
        });
        self.live.insert(id, run);
        self.sample_at.get_or_insert_with(|| Instant::now() + sample_interval);
    }

    pub(super) fn remove(&mut self, task: TaskId, id: RunId) {
        self.live.remove(&id);
        self.published
            .send_modify(|runs| drop(Arc::make_mut(runs).remove(&task)));
        if self.live.is_empty() {
            self.sample_at = None;
        }
    }

    /// Stops a run, or the resolver call that it waits for.
    pub(super) fn stop(&self, id: RunId) {
        if let Some(run) = self.live.get(&id) {
            run.stop.cancel();
        }
        if let Some(stop) = self.resolving.get(&id) {
            stop.cancel();
        }
    }

    pub(super) fn limiters(&self, id: RunId) -> Option<&Limiters> {
        self.live.get(&id).map(|run| &run.limiters)
    }

    /// Registers a resolver call for a run; the token cancels it.
    pub(super) fn resolve(&mut self, id: RunId) -> CancellationToken {
        let stop = CancellationToken::new();
        self.resolving.insert(id, stop.clone());
        stop
    }

    pub(super) fn resolved(&mut self, id: RunId) {
        self.resolving.remove(&id);
    }

    /// The progress of runs that advanced since the last sample.
    pub(super) fn sample(&mut self) -> Vec<(TaskId, RunId, Progress)> {
        let mut samples = Vec::new();
        for (id, run) in &mut self.live {
            if run.progress.has_changed().unwrap_or(false) {
                samples.push((run.task, *id, run.progress.borrow_and_update().clone()));
            }
        }
        samples
    }
}
