//! Runs of steps, and what else the effects of the state ask for.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    pin::Pin,
};

use post::{
    Events, MAX_PASSWORDS, Original, Outcome, RunId,
    job::{Effect, JobId, Passwords, Run, Start, Step},
    remove_originals,
    rename::Known,
    sweep,
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    driver::{Driver, Running},
    plan::stages_in,
};

/// News of a run.
#[derive(Debug)]
pub(super) enum Signal {
    Progress(JobId, Run, u16),
    /// It waits until these paths are saved.
    Intends(JobId, Run, Vec<PathBuf>, oneshot::Sender<()>),
    Ended(JobId, Run, Result<Outcome, String>),
    /// Those that are kept.
    Removed(JobId, Run, Vec<PathBuf>),
    /// In these directories something was in use that is not needed any more: a killed unpacker takes its time to end.
    InUse(Vec<PathBuf>),
}

/// Passes news of one run to the loop.
struct ToDriver {
    id: JobId,
    run: Run,
    signals: mpsc::Sender<Signal>,
}

impl Events for ToDriver {
    fn progress(&self, thousandths: u16) {
        // The next one says more.
        let _is_full = self.signals.try_send(Signal::Progress(self.id, self.run, thousandths));
    }

    fn intends(&self, paths: Vec<PathBuf>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let (proceed, is_saved) = oneshot::channel();
            let signal = Signal::Intends(self.id, self.run, paths, proceed);
            if self.signals.send(signal).await.is_err() || is_saved.await.is_err() {
                // Nothing may happen that is not saved. The run is cancelled or the service ends.
                std::future::pending::<()>().await;
            }
        })
    }
}

impl Driver {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Start(start) => self.start(start),
            Effect::Proceed(id, run) => {
                let running = self.runs.get_mut(&(id, run));
                if let Some(proceed) = running.and_then(|running| running.proceed.take()) {
                    let _is_cancelled = proceed.send(());
                }
            }
            Effect::Stop(id, run) => {
                if let Some(running) = self.runs.get(&(id, run)) {
                    running.stop.cancel();
                }
            }
            Effect::RemoveOriginals(id, run, originals) => self.remove_originals(id, run, originals),
            Effect::Save(_) | Effect::Delete(_) | Effect::Publish(_) => unreachable!("they do not wait for the disk"),
        }
    }

    fn start(&mut self, start: Start) {
        let (id, run) = (start.id, start.run);
        let start = self.with_known_passwords(start);
        let about = self.about.get(&id).cloned().unwrap_or_default();
        let known = Known {
            title: None,
            host: about.host,
            date: about.date,
            source: about.source,
        };
        let cancelled = tokio_util::sync::CancellationToken::new();
        let running = Running {
            stop: cancelled.clone(),
            stages_in: stages_in(&start.step, &start.files),
            proceed: None,
        };
        self.runs.insert((id, run), running);
        let (runner, stop) = (std::sync::Arc::clone(&self.runner), self.parts.stop.clone());
        let signals = self.signal.clone();
        let events = ToDriver {
            id,
            run,
            signals: signals.clone(),
        };
        self.parts.tracker.spawn(async move {
            let root = Path::new(&about.root);
            let running = runner.run(&start, root, &known, &events, cancelled.cancelled());
            // A run that the end of the service interrupts has no end: it is begun again at the next start.
            if let Some(result) = stop.run_until_cancelled(running).await {
                let _is_over = signals.send(Signal::Ended(id, run, result)).await;
            }
        });
    }

    /// With those that the service knows, after those of the job.
    fn with_known_passwords(&self, mut start: Start) -> Start {
        if let Step::Unpack {
            passwords: Passwords(passwords),
            ..
        } = &mut start.step
        {
            for password in &self.passwords {
                if !passwords.contains(password) {
                    passwords.push(password.clone());
                }
            }
            passwords.truncate(MAX_PASSWORDS);
        }
        start
    }

    fn remove_originals(&self, id: JobId, run: Run, originals: Vec<Original>) {
        let signals = self.signal.clone();
        self.parts.tracker.spawn(async move {
            let all: Vec<_> = originals.iter().map(|original| original.path.clone()).collect();
            let removed = tokio::task::spawn_blocking(move || remove_originals(&originals)).await;
            let kept = match removed {
                Ok(Ok(kept)) => kept,
                Ok(Err(error)) => {
                    tracing::warn!(job = id.0, %error, "an unpacked archive is kept");
                    all
                }
                Err(error) => {
                    tracing::error!(job = id.0, %error, "an unpacked archive is kept");
                    all
                }
            };
            let _is_over = signals.send(Signal::Removed(id, run, kept)).await;
        });
    }

    /// Removes what runs left that is not needed any more: their results are saved.
    pub(super) fn sweep(&self, places: BTreeSet<PathBuf>) {
        if places.is_empty() {
            return;
        }
        let keep = self.state.interrupted();
        let keep: Vec<RunId> = keep.filter_map(|(id, run)| self.runner.run_id(id, run).ok()).collect();
        let signals = self.signal.clone();
        self.parts.tracker.spawn(async move {
            let swept = tokio::task::spawn_blocking(move || {
                let is_in_use = |place: &PathBuf| match sweep(place, &keep) {
                    Ok(swept) => swept.in_use > 0,
                    Err(error) => {
                        tracing::warn!(%error, "what an unpacking left could not be removed");
                        false
                    }
                };
                places.into_iter().filter(is_in_use).collect::<Vec<_>>()
            });
            if let Ok(in_use) = swept.await
                && !in_use.is_empty()
            {
                let _is_over = signals.send(Signal::InUse(in_use)).await;
            }
        });
    }
}
