//! A run from start to end: attempts until every byte is there, their checks, and the file's name.

use std::{sync::Arc, time::SystemTime};

use tokio_util::sync::CancellationToken;

use super::Work;
use crate::{
    ByteRange, Failure, Finished, Outcome, SafeUrl, Stage,
    failure::FailureKind,
    run::{
        SAMPLE_BYTES,
        destination::failed,
        hashing::{hash, mismatch},
    },
};

/// After this many changes of the file at the server the run fails.
const MAX_CHANGES: u32 = 3;

/// How one login's part of a run ended.
#[derive(Debug)]
pub enum Ended {
    /// Every byte is valid, and the protocol has seen that it is all.
    Complete,
    /// The file changed at the server.
    Changed(String),
    /// What is there cannot be continued; everything is fetched again.
    StartOver(&'static str),
    /// The rest needs another login.
    Again,
}

/// How an attempt ended.
#[derive(Debug)]
pub enum Opening {
    /// The run ends without a transfer.
    Outcome(Outcome),
    /// This login ended.
    Ended(Ended),
}

/// What a protocol adds to a run.
pub trait Attempts {
    /// What its connections share.
    fn work(&self) -> &Work;

    /// The URL of this attempt.
    fn url(&self) -> &SafeUrl;

    /// How many URLs the file has.
    fn urls(&self) -> usize;

    /// Goes on with the next URL, if there is another.
    fn use_next_url(&self) -> bool;

    /// Discards every byte and all facts of the file.
    fn start_over(&self) -> Result<(), Failure>;

    /// When the server says that the file was changed.
    fn changed_at(&self) -> Option<SystemTime>;

    /// One login: opens the source and moves bytes until all are there or something fails. May be dropped at any await.
    fn attempt(&self) -> impl Future<Output = Result<Opening, Failure>>;
}

/// Executes a run on this lane, until `stop` is cancelled.
pub async fn drive(run: &impl Attempts, stop: CancellationToken) -> Outcome {
    let work = run.work();
    let moved = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        moved = transfer(run) => Some(moved),
    };
    match moved {
        None => {
            work.save().await;
            Outcome::Stopped
        }
        Some(Ok(Some(outcome))) => outcome,
        Some(Ok(None)) => match work.finish(run.changed_at()).await {
            Ok(finished) => Outcome::Finished(finished),
            Err(failure) => work.fail(failure).await,
        },
        Some(Err(failure)) => work.fail(failure).await,
    }
}

/// Downloads and verifies every byte; an outcome is returned if there is nothing to download. May be dropped at any
/// await: [`Work::save`] records what was written.
async fn transfer(run: &impl Attempts) -> Result<Option<Outcome>, Failure> {
    let mut changes = 0;
    let work = run.work();
    let mut untried = run.urls();
    loop {
        let failure = match run.attempt().await {
            Ok(Opening::Outcome(outcome)) => return Ok(Some(outcome)),
            Ok(Opening::Ended(Ended::Complete)) => {
                work.prove().await?;
                return Ok(None);
            }
            Ok(Opening::Ended(Ended::Changed(why))) => {
                note_change(run, &mut changes, &why).await?;
                continue;
            }
            Ok(Opening::Ended(Ended::StartOver(why))) => {
                work.notice(format!("{why}: starting over")).await;
                run.start_over()?;
                continue;
            }
            Ok(Opening::Ended(Ended::Again)) => continue,
            Err(failure) => failure,
        };
        if failure.kind.is_disk() || failure.kind == FailureKind::InvalidSource {
            return Err(failure);
        }
        let failure = if work.received() == 0 {
            work.retries.count_not_found(failure)?
        } else {
            failure
        };
        work.sources.failed(run.url(), &failure).await;
        untried -= 1;
        if run.use_next_url() && untried > 0 {
            continue;
        }
        untried = run.urls();
        work.retries.wait(failure).await?;
    }
}

async fn note_change(run: &impl Attempts, changes: &mut u32, why: &str) -> Result<(), Failure> {
    *changes += 1;
    if *changes > MAX_CHANGES {
        let message = format!("the file keeps changing at the server ({why}); it was started over {MAX_CHANGES} times");
        return Err(Failure::new(FailureKind::Changed, message));
    }
    let notice = format!("the file changed at the server ({why}): starting over");
    run.work().notice(notice).await;
    run.start_over()
}

impl Work {
    /// Fails if the file is not as large as was promised.
    pub fn check_promised(&self, size: u64) -> Result<(), Failure> {
        let Some(promised) = self.source.promised_size.filter(|promised| *promised != size) else {
            return Ok(());
        };
        let message = format!("the file has {size} bytes where {promised} were promised");
        Err(Failure::new(FailureKind::NotTheFile, message))
    }

    /// Verifies the complete bytes.
    async fn prove(&self) -> Result<(), Failure> {
        self.report_stage(Stage::Verifying);
        self.disk.wait_reserved().await?;
        let size = self.plan.borrow().done_bytes();
        self.check_promised(size).inspect_err(|_| self.disk.part().discard())?;
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

    /// Marks the last bytes of a complete file as missing, because this run has not seen that the server sent all: the next
    /// transfer compares what is before them and fetches them again.
    pub fn doubt_end(&self) -> Result<(), Failure> {
        let Some(total) = self.plan.borrow().total().filter(|total| *total > 0) else {
            return Ok(());
        };
        let last = ByteRange::new(total.saturating_sub(SAMPLE_BYTES), total);
        self.plan.borrow_mut().distrust(&[last].into_iter().collect());
        self.disk.part().distrust(last)
    }

    /// Renames the verified file.
    async fn finish(&self, changed_at: Option<SystemTime>) -> Result<Finished, Failure> {
        let part = self.disk.part();
        let size_bytes = self.plan.borrow().done_bytes();
        let uses_server_time = self.disk.destination.target.use_server_time;
        let modified = changed_at.filter(|_| uses_server_time);
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
