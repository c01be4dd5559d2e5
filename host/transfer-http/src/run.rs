//! One run from start to end: open the source, transfer the bytes, verify them, rename the file.

mod active;
mod context;
mod mirrors;
mod opening;
mod pool;
mod proof;
mod ramp;
mod worker;

use std::sync::Arc;

use transfer::{Failure, Finished, Job, Outcome, failure::FailureKind, run::destination::failed};

use crate::{
    client::shared::Shared,
    run::{
        context::Run,
        opening::Opening,
        pool::{Begun, Ended, WorkerPool},
    },
};

/// After this many changes of the file at the server the run fails.
const MAX_CHANGES: u32 = 3;

/// How the cancellable part of a run ended.
enum Moved {
    /// Every byte is on disk and verified.
    Proved,
    /// There was nothing to download.
    Nothing(Outcome),
}

/// Runs `job` on this lane.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) -> Outcome {
    let stop = job.stop.clone();
    let run = match Run::new(shared, job) {
        Ok(run) => run,
        Err(failure) => return Outcome::Failed(failure),
    };
    let moved = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        moved = run.transfer() => Some(moved),
    };
    match moved {
        None => {
            run.save().await;
            Outcome::Stopped
        }
        Some(Ok(Moved::Nothing(outcome))) => outcome,
        Some(Ok(Moved::Proved)) => match run.finish().await {
            Ok(finished) => Outcome::Finished(finished),
            Err(failure) => run.fail(failure).await,
        },
        Some(Err(failure)) => run.fail(failure).await,
    }
}

impl Run {
    /// Downloads and verifies every byte. May be dropped at any await: [`Run::save`] records what was written.
    async fn transfer(&self) -> Result<Moved, Failure> {
        let mut changes = 0;
        self.transfer_through(&mut changes).await.map_err(|failure| {
            if changes < MAX_CHANGES || !failure.kind.is_transient() || failure.kind == FailureKind::Changed {
                return failure;
            }
            let message =
                format!("the file keeps changing at the server, and did not come in one piece either: {failure}");
            Failure::new(FailureKind::Changed, message)
        })
    }

    /// [`Run::transfer`], counting changes of the file at the server.
    async fn transfer_through(&self, changes: &mut u32) -> Result<Moved, Failure> {
        loop {
            let begun = match self.open_with_retries().await? {
                Opening::Outcome(outcome) => return Ok(Moved::Nothing(outcome)),
                Opening::Complete => None,
                Opening::Begun(begun) => Some(begun),
                Opening::Again => continue,
                Opening::Changed(why) => {
                    self.note_change(changes, &why).await?;
                    continue;
                }
            };
            if let Some(begun) = begun {
                match self.move_all(begun).await? {
                    Ended::Complete => {}
                    Ended::Changed(why) => {
                        self.note_change(changes, &why).await?;
                        continue;
                    }
                    Ended::StartOver(wait) => {
                        tokio::time::sleep(wait).await;
                        self.start_over()?;
                        continue;
                    }
                }
            }
            if self.prove().await? {
                return Ok(Moved::Proved);
            }
        }
    }

    async fn move_all(&self, begun: Box<Begun>) -> Result<Ended, Failure> {
        let ended = WorkerPool::new(self, *begun).run().await;
        self.release_all()?;
        ended
    }

    async fn note_change(&self, changes: &mut u32, why: &str) -> Result<(), Failure> {
        *changes += 1;
        if *changes > MAX_CHANGES {
            let message =
                format!("the file keeps changing at the server ({why}); it was started over {MAX_CHANGES} times");
            return Err(Failure::new(FailureKind::Changed, message));
        }
        self.notice(format!("the file changed at the server ({why}): starting over"))
            .await;
        if *changes == MAX_CHANGES {
            // A single response has a single version.
            self.server.ignores_ranges.set(true);
        }
        self.start_over()
    }

    /// Renames the verified file.
    async fn finish(&self) -> Result<Finished, Failure> {
        let part = self.disk.part();
        let size_bytes = self.plan.borrow().done_bytes();
        let uses_server_time = self.disk.destination.target.use_server_time;
        let last_modified = self.base_facts().last_modified.filter(|_| uses_server_time);
        let modified = last_modified.and_then(|date| httpdate::parse_http_date(&date).ok());
        let path = self.disk.destination.finish(part, size_bytes, modified).await?;
        Ok(Finished {
            path,
            size_bytes,
            received_bytes: self.flow.received.get(),
            is_own: true,
            can_seed: false,
        })
    }

    /// Ends the run as failed, saving what a later run can resume from.
    async fn fail(&self, failure: Failure) -> Outcome {
        let kept = self.save().await.then(|| self.plan.borrow().done_bytes());
        failed(failure, kept)
    }

    /// Syncs what a later run can resume from, or deletes the part file. Returns whether anything was saved.
    async fn save(&self) -> bool {
        let Some(part) = self.disk.claimed() else {
            return false;
        };
        let is_recorded = self.release_all().is_ok();
        let done = self.plan.borrow().done_bytes();
        self.disk.destination.keep(part, done).await && is_recorded
    }
}
