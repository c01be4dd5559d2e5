//! Runs: reservations, progress, ends, and the retries that follow.

use std::{path::PathBuf, sync::Arc, time::Duration};

use transfer::{Failure, FailureKind, Finished, GivenBy, Landing, Outcome, Progress, SafeUrl, Stage};

use crate::{
    milestone::TaskMilestone,
    model::{
        error::CommandError,
        file::FileState,
        id::{RunId, TaskId, Timestamp},
        settings::{FileMissingAction, MAX_FINITE_RETRIES},
        task::{After, FileFate, Phase, Retry, Run, Unsettled},
    },
    state::{model::State, step::Effect},
};

/// Limit of the exponential back-off of automatic retries.
const LONGEST_RETRY_WAIT: Duration = Duration::from_mins(5);

/// Wait before resolving an expired direct URL again, so that a site that refuses fresh ones too is not flooded.
const RESOLVE_AGAIN_WAIT: Duration = Duration::from_secs(1);

/// Limit of a server's `Retry-After`.
pub(super) const LONGEST_SERVER_WAIT: Duration = Duration::from_hours(24);

impl State {
    /// The serial of the task whose live run `run` is. `None` for a message of an earlier run.
    pub(super) fn serial_of_run(&self, id: TaskId, run: RunId) -> Option<u64> {
        let serial = *self.index.by_id.get(&id)?;
        (self.tasks[&serial].run()?.id == run).then_some(serial)
    }

    pub(super) fn reserved(
        &mut self,
        id: TaskId,
        run: RunId,
        path: PathBuf,
        total: Option<u64>,
    ) -> Result<(), CommandError> {
        let Some(serial) = self.serial_of_run(id, run) else {
            return Ok(());
        };
        if self.is_reserved_by_other(Some(serial), &path) {
            return Err(CommandError::TargetExists(path));
        }
        if self.tasks[&serial].path.is_none() {
            self.changes.reached.push((TaskMilestone::MetaProbed, serial));
        }
        self.edit(serial, |task| {
            task.path = Some(path.into_boxed_path());
            task.owns_file = false;
            task.total_bytes = total.or(task.total_bytes);
        });
        Ok(())
    }

    pub(super) fn landing(&mut self, id: TaskId, run: RunId, landing: Landing) {
        let Some(serial) = self.serial_of_run(id, run) else {
            return;
        };
        self.record(serial, |task| {
            task.unsettled = Some(Box::new(Unsettled::Landing(landing)));
        });
        self.save_state(serial);
    }

    pub(super) fn check_landing(&self, serial: u64, effects: &mut Vec<Effect>) {
        let Some(task) = self.tasks.get(&serial) else { return };
        if let Some(Unsettled::Landing(landing)) = task.unsettled.as_deref() {
            effects.push(Effect::LookForLanding {
                task: task.id,
                landing: landing.clone(),
                rest: task.part_files(),
            });
        }
    }

    pub(super) fn landing_looked_for(&mut self, now: Timestamp, id: TaskId, found: FileState) {
        let Ok(serial) = self.serial(id) else { return };
        let Some(Unsettled::Landing(landing)) = self.tasks[&serial].unsettled.as_deref().cloned() else {
            return;
        };
        match found {
            FileState::Present => {
                let finished = Finished {
                    path: landing.path,
                    size_bytes: landing.size_bytes,
                    received_bytes: 0,
                    is_own: true,
                    can_seed: false,
                };
                self.finished(now, serial, finished);
            }
            FileState::Missing | FileState::Away => self.edit(serial, |task| task.unsettled = None),
        }
    }

    pub(super) fn progressed(&mut self, samples: Vec<(TaskId, RunId, Progress)>, effects: &mut Vec<Effect>) {
        for (id, run, progress) in samples {
            if let Some(serial) = self.serial_of_seed(id, run) {
                self.seed_progressed(serial, &progress, effects);
                continue;
            }
            let Some(serial) = self.serial_of_run(id, run) else {
                continue;
            };
            self.accounts.count_received(run, progress.received_bytes);
            let before = &self.tasks[&serial];
            let is_told = before.run().is_some_and(|run| run.stage != progress.stage)
                || (progress.total_bytes.is_some() && before.total_bytes != progress.total_bytes);
            let uploaded = before.seeding.as_ref().map_or(0, |seeding| seeding.uploaded_bytes);
            if before.done_bytes != progress.done_bytes || uploaded < progress.uploaded_bytes || is_told {
                self.record(serial, |task| {
                    // A direct URL that delivered bytes before it expired resets the attempts.
                    if progress.done_bytes > task.done_bytes && task.resolution().is_some() {
                        task.attempts = 0;
                    }
                    task.done_bytes = progress.done_bytes;
                    task.total_bytes = progress.total_bytes.or(task.total_bytes);
                    if uploaded < progress.uploaded_bytes {
                        task.seeding.get_or_insert_default().uploaded_bytes = progress.uploaded_bytes;
                    }
                    // Everything was hashed, and something is missing: a later run need not hash it again.
                    if progress.stage == Stage::Moving
                        && progress.total_bytes.is_some_and(|total| progress.done_bytes < total)
                        && let Some(seeding) = task.seeding.as_deref_mut()
                    {
                        seeding.recheck = None;
                    }
                });
            }
            if is_told {
                self.mark(serial, |task| task.phase = with_stage(&task.phase, &progress));
            }
        }
    }

    /// What there is of a deleted task whose run has ended.
    pub(super) fn leftovers_listed(&mut self, id: TaskId, files: Vec<PathBuf>) {
        let serial = self.index.by_id.get(&id).copied();
        if let Some(serial) = serial.filter(|serial| self.tasks[serial].is_leaving()) {
            self.discard(vec![(serial, files)]);
        }
    }

    pub(super) fn ended(
        &mut self,
        now: Timestamp,
        (id, run): (TaskId, RunId),
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) {
        if let Some(serial) = self.serial_of_seed(id, run) {
            self.seed_ended(serial, outcome, effects);
            return;
        }
        let Some(serial) = self.serial_of_run(id, run) else {
            return;
        };
        self.unsaved_progress.remove(&serial);
        if let Outcome::Finished(finished) = &outcome {
            self.accounts.count_received(run, finished.received_bytes);
        }
        let then = match self.tasks[&serial].phase {
            Phase::Stopping { then, .. } => Some(then),
            _ => None,
        };
        match (outcome, then) {
            (_, Some(After::Delete(fate))) if self.tasks[&serial].is_leaving() => {
                // What was listed when it was deleted lacks the files that have come since.
                effects.push(Effect::ListLeftovers(id, self.tasks[&serial].discarded(fate)));
            }
            (Outcome::Finished(finished), Some(After::Delete(fate))) => {
                let made = if fate == FileFate::Delete && finished.is_own {
                    vec![finished.path]
                } else {
                    Vec::new()
                };
                self.discard(vec![(serial, made)]);
            }
            (Outcome::Finished(finished), _) => self.finished(now, serial, finished),
            (_, Some(After::Delete(fate))) => self.delete_at_rest(&[serial], fate),
            (Outcome::Described { size_bytes }, _) => self.described(now, serial, size_bytes),
            (Outcome::Became { url, given_by }, then) => {
                self.became(now, serial, (url, given_by), then == Some(After::Pause));
            }
            (_, Some(After::Pause)) => self.edit(serial, |task| task.phase = Phase::Paused),
            (_, Some(After::Requeue)) => self.edit(serial, |task| task.phase = Phase::Pending),
            (Outcome::Skipped { existing }, None) => {
                let message = format!("{} exists already; nothing was downloaded", existing.display());
                let event = crate::event::Event::Skipped {
                    task: id,
                    existing: Arc::new(existing),
                };
                effects.push(Effect::Emit(event));
                self.failed(now, serial, Failure::new(FailureKind::Exists, message));
            }
            (Outcome::Failed(failure), None) if self.is_expired(serial, &failure) => self.relink(now, serial, failure),
            (Outcome::Failed(failure), None) => self.failed(now, serial, failure),
            (Outcome::Waits, None) => self.edit(serial, |task| task.phase = Phase::Paused),
            (Outcome::Stopped, None) => {
                let failure = Failure::new(
                    FailureKind::Internal,
                    "the run stopped although no stop was requested; resume it",
                );
                self.failed(now, serial, failure);
            }
        }
        self.check_landing(serial, effects);
    }

    /// Whether a server refused a resolver's direct URL: it may have expired, so a fresh one may help.
    fn is_expired(&self, serial: u64, failure: &Failure) -> bool {
        self.tasks[&serial].resolution().is_some() && failure.kind.is_link_refused() && self.may_retry(serial)
    }

    /// Schedules another resolve.
    fn relink(&mut self, now: Timestamp, serial: u64, failure: Failure) {
        self.retry_at(serial, failure, now.after(RESOLVE_AGAIN_WAIT));
    }

    fn may_retry(&self, serial: u64) -> bool {
        let most = self.settings.settings.max_auto_retries;
        most.is_none_or(|most| self.tasks[&serial].attempts < most)
    }

    /// A task whose URL led to the description of a download goes on with the URL of that.
    fn became(&mut self, now: Timestamp, serial: u64, (url, given_by): (SafeUrl, GivenBy), is_paused: bool) {
        if let Some(owner) = self.torrent_owner(&url) {
            let error = CommandError::SameTorrent(owner);
            self.failed(now, serial, Failure::new(FailureKind::Exists, error.to_string()));
            return;
        }
        self.edit_spec(serial, |task| {
            task.ask(|asked| asked.become_at(url, given_by));
            task.phase = if is_paused { Phase::Paused } else { Phase::Pending };
            task.path = None;
            task.unsettled = None;
            task.done_bytes = 0;
            task.total_bytes = task.spec().announced_bytes();
        });
    }

    fn finished(&mut self, now: Timestamp, serial: u64, finished: Finished) {
        let can_seed = finished.can_seed;
        self.edit(serial, |task| {
            task.complete(now, finished.size_bytes);
            task.path = Some(finished.path.into_boxed_path());
            task.owns_file = finished.is_own;
            task.unsettled = None;
            task.file_missing = false;
        });
        let recheck = self.take_recheck(serial);
        if let Some(recheck) = recheck {
            self.found_whole(serial, recheck);
        } else if can_seed {
            self.begin_seeding(serial);
        }
    }

    /// A task of which only the description was wanted, which is no file of it, is complete.
    fn described(&mut self, now: Timestamp, serial: u64, size_bytes: u64) {
        self.edit(serial, |task| task.complete(now, size_bytes));
    }

    /// Only the kind of a failure decides whether it is retried.
    pub(super) fn failed(&mut self, now: Timestamp, serial: u64, failure: Failure) {
        if failure.kind.is_transient() && self.has_retry_left(serial) {
            let at = now.after(self.retry_wait(serial, &failure));
            self.retry_at(serial, failure, at);
            return;
        }
        self.edit(serial, |task| {
            task.is_forced = false;
            task.phase = Phase::Failed(Box::new(failure));
        });
    }

    /// Retries a failed task at the request of a plugin: as one of its automatic retries, and no sooner than such a one.
    /// These requests are counted by themselves too: bytes that arrive allow no more of them, and endless retries are not
    /// endless for a plugin, because it may ask after failures that nothing but its opinion makes transient.
    pub(super) fn request_retry(&mut self, now: Timestamp, id: TaskId, delay: Duration) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let Phase::Failed(failure) = &self.tasks[&serial].phase else {
            return Err(self.wrong_phase(serial, "retry"));
        };
        let most = self.settings.settings.max_auto_retries.unwrap_or(MAX_FINITE_RETRIES);
        if !self.has_retry_left(serial) || self.tasks[&serial].asked_retries >= most {
            return Err(CommandError::NoRetryLeft);
        }
        let failure = Failure::clone(failure);
        let wait = delay.min(LONGEST_SERVER_WAIT).max(self.retry_wait(serial, &failure));
        self.retry_at(serial, failure, now.after(wait));
        self.edit(serial, |task| task.asked_retries += 1);
        Ok(())
    }

    /// A task with its own retry policy has used it up within the run.
    fn has_retry_left(&self, serial: u64) -> bool {
        !self.tasks[&serial].asked.has_retry_policy() && self.may_retry(serial)
    }

    /// How long the next automatic retry waits.
    fn retry_wait(&self, serial: u64, failure: &Failure) -> Duration {
        let attempts = self.tasks[&serial].attempts;
        let step = Duration::from_secs(self.settings.settings.auto_retry_delay_secs.into());
        let wait = step.saturating_mul(attempts.saturating_add(1)).min(LONGEST_RETRY_WAIT);
        wait.max(failure.retry_after.unwrap_or_default().min(LONGEST_SERVER_WAIT))
    }

    fn retry_at(&mut self, serial: u64, failure: Failure, at: Timestamp) {
        self.edit(serial, |task| {
            task.attempts += 1;
            task.phase = Phase::Retrying(Box::new(Retry { failure, at }));
        });
    }

    pub(super) fn renamed(&mut self, id: TaskId, outcome: Result<(), CommandError>) -> Result<(), CommandError> {
        let serial = self.serial(id)?;
        let Some(Unsettled::Renaming(name)) = self.tasks[&serial].unsettled.as_deref().cloned() else {
            return Ok(());
        };
        self.edit_spec(serial, |task| {
            task.unsettled = None;
            if outcome.is_ok() {
                task.rename(name);
            }
        });
        outcome
    }

    pub(super) fn files_looked_for(&mut self, files: Vec<(TaskId, PathBuf, FileState)>) {
        let deletes = self.settings.settings.file_missing_action == FileMissingAction::Delete;
        let mut gone = Vec::new();
        for (id, path, found) in files {
            let Ok(serial) = self.serial(id) else { continue };
            let task = &self.tasks[&serial];
            let was_renamed = task.path.as_deref() != Some(path.as_path());
            if task.phase != Phase::Completed || task.is_settling() || was_renamed {
                continue;
            }
            let is_missing = found != FileState::Present;
            if deletes && found == FileState::Missing {
                gone.push(serial);
            } else if task.file_missing != is_missing {
                self.edit(serial, |task| task.file_missing = is_missing);
            }
        }
        self.delete_at_rest(&gone, FileFate::Keep);
    }
}

fn with_stage(phase: &Phase, progress: &Progress) -> Phase {
    let with = |run: &Run| Run {
        stage: progress.stage,
        ..*run
    };
    match phase {
        Phase::Running(run) => Phase::Running(with(run)),
        Phase::Stopping { run, then } => Phase::Stopping {
            run: with(run),
            then: *then,
        },
        other => other.clone(),
    }
}
