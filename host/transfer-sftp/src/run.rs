//! One run from start to end: open the source, transfer the bytes, verify them, rename the file.

mod context;
mod opening;
mod pool;
mod worker;

use std::sync::Arc;

use transfer::{
    ByteRange, Failure, Finished, Job, Outcome, Stage,
    failure::FailureKind,
    run::{
        SAMPLE_BYTES,
        destination::failed,
        hashing::{hash, mismatch},
    },
};

use crate::{
    run::{context::Run, opening::Opening, pool::Pool},
    shared::Shared,
};

/// After this many changes of the file at the server the run fails.
const MAX_CHANGES: u32 = 3;

/// How one login's part of a run ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Every byte is valid, and the file is the same as in the beginning.
    Complete,
    /// The file changed at the server.
    Changed(String),
    /// What is there cannot be continued; everything is fetched again.
    StartOver(&'static str),
    /// The rest needs another login.
    Again,
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
        Some(Ok(Some(outcome))) => outcome,
        Some(Ok(None)) => match run.finish().await {
            Ok(finished) => Outcome::Finished(finished),
            Err(failure) => run.fail(failure).await,
        },
        Some(Err(failure)) => run.fail(failure).await,
    }
}

impl Run {
    /// Downloads and verifies every byte; an outcome is returned if there is nothing to download. May be dropped at any
    /// await: [`Run::save`] records what was written.
    async fn transfer(&self) -> Result<Option<Outcome>, Failure> {
        let mut changes = 0;
        let mut untried = self.urls();
        loop {
            let failure = match self.attempt().await {
                Ok(Opening::Outcome(outcome)) => return Ok(Some(outcome)),
                Ok(Opening::Ended(Ended::Complete)) => {
                    self.prove().await?;
                    return Ok(None);
                }
                Ok(Opening::Ended(Ended::Changed(why))) => {
                    self.note_change(&mut changes, &why).await?;
                    continue;
                }
                Ok(Opening::Ended(Ended::StartOver(why))) => {
                    self.notice(format!("{why}: starting over")).await;
                    self.start_over()?;
                    continue;
                }
                Ok(Opening::Ended(Ended::Again)) => continue,
                Err(failure) => failure,
            };
            if failure.kind.is_disk() || failure.kind == FailureKind::InvalidSource {
                return Err(failure);
            }
            let failure = if self.received() == 0 {
                self.retries.count_not_found(failure)?
            } else {
                failure
            };
            untried -= 1;
            if self.use_next_url() && untried > 0 {
                continue;
            }
            untried = self.urls();
            self.retries.wait(failure).await?;
        }
    }

    /// One login: opens the source and moves bytes until all are there or something fails.
    async fn attempt(&self) -> Result<Opening, Failure> {
        let begun = match self.open().await? {
            Ok(begun) => begun,
            Err(opening) => return Ok(opening),
        };
        let ended = Pool::new(self, begun).run().await;
        self.release_all()?;
        ended.map(Opening::Ended)
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
        self.start_over()
    }

    /// Verifies the complete bytes.
    async fn prove(&self) -> Result<(), Failure> {
        self.report_stage(Stage::Verifying);
        self.disk.wait_reserved().await?;
        let size = self.plan.borrow().done_bytes();
        if let Some(promised) = self.source.promised_size.filter(|promised| *promised != size) {
            self.disk.part().discard();
            let message = format!("the file has {size} bytes where {promised} were promised");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        let Some(wanted) = &self.source.checksum else {
            return Ok(());
        };
        let part = self.disk.part();
        let found = hash(Arc::clone(&part), wanted.clone()).await?;
        if found == *wanted {
            return Ok(());
        }
        part.discard();
        Err(mismatch(wanted, &found))
    }

    /// Marks the last bytes of a complete file as missing, because this run has not seen that the server has the same: the
    /// next transfer compares what is before them and fetches them again.
    pub(crate) fn doubt_end(&self) -> Result<(), Failure> {
        let Some(total) = self.plan.borrow().total().filter(|total| *total > 0) else {
            return Ok(());
        };
        let last = ByteRange::new(total.saturating_sub(SAMPLE_BYTES), total);
        self.plan.borrow_mut().distrust(&[last].into_iter().collect());
        self.disk.part().distrust(last)
    }

    /// Renames the verified file.
    async fn finish(&self) -> Result<Finished, Failure> {
        let part = self.disk.part();
        let size_bytes = self.plan.borrow().done_bytes();
        let uses_server_time = self.disk.destination.target.use_server_time;
        let modified = self.facts.get().changed_at().filter(|_| uses_server_time);
        let path = self.disk.destination.finish(part, size_bytes, modified).await?;
        Ok(Finished {
            path,
            size_bytes,
            received_bytes: self.received(),
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
