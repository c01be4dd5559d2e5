//! A run whose file is joined from segments: several are fetched at once, and written strictly in order.
//!
//! Unlike in a download of one resource, the position of a segment in the file is unknown until all earlier ones are
//! complete. So the journal holds marks instead of ranges: the number of valid bytes, and which segments they are.

mod cipher;
mod fetch;
mod identity;
mod joining;
mod keys;
mod speed;
mod window;

use std::{pin::Pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::{task::spawn_blocking, time::sleep};
use transfer::{
    ByteRange, Claimed, ConnectionPlan, Failure, FileName, Finished, Job, Origin, Outcome, PartFile, Progress,
    RunEvent, Segment, Stage,
    failure::FailureKind,
    part_file::Begun,
    run::{
        Upkeep,
        background::blocking,
        destination::failed,
        hashing::{hash, mismatch},
        upkeep,
    },
};

use crate::{
    client::shared::Shared,
    joined::{joining::Joining, window::Permanence},
};

/// Default number of concurrent segments: they are small, so latency dominates.
const AUTOMATIC: u16 = 8;

type Fetching<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = (usize, Result<(), Failure>)> + 'a>>>;

/// Runs `job`, whose source has segments, on this lane.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) -> Outcome {
    let stop = job.stop.clone();
    let joining = match Joining::new(shared, job) {
        Ok(joining) => joining,
        Err(failure) => return Outcome::Failed(failure),
    };
    let moved = tokio::select! {
        biased;
        () = stop.cancelled() => None,
        moved = joining.transfer() => Some(moved),
    };
    let finished = match moved {
        None => {
            joining.save().await;
            return Outcome::Stopped;
        }
        Some(Ok(Some(existing))) => return existing,
        Some(Ok(None)) => joining.finish().await,
        Some(Err(failure)) => Err(failure),
    };
    match finished {
        Ok(finished) => Outcome::Finished(finished),
        Err(failure) => {
            let kept = joining.save().await.then(|| joining.boundary.get());
            failed(failure, kept)
        }
    }
}

impl Joining {
    /// Downloads and verifies every byte; returns an outcome if there is nothing to do. May be dropped at any await:
    /// complete segments are on record.
    async fn transfer(&self) -> Result<Option<Outcome>, Failure> {
        let total = self.total();
        let claimed = if let Some(begun) = self.destination.find_begun(total).await? {
            begun
        } else {
            let name = self.destination.expected_name();
            let name = name.unwrap_or_else(|| FileName::sanitise(""));
            self.destination.claim(&name, total).await?
        };
        match claimed {
            Claimed::Exists(existing) => return Ok(Some(Outcome::Skipped { existing })),
            Claimed::New(part) => self.begin(part)?,
            Claimed::Begun(part, begun) => self.resume(part, &begun).await?,
        }
        self.join().await?;
        self.prove().await?;
        Ok(None)
    }

    fn begin(&self, part: PartFile) -> Result<(), Failure> {
        part.begin_journal(&self.origin())?;
        self.adopt(part);
        Ok(())
    }

    /// Continues the part file of an earlier run, if its content is the first segments of this list.
    async fn resume(&self, part: PartFile, begun: &Begun) -> Result<(), Failure> {
        let known = begun.mark.and_then(|mark| {
            let last = self.names.iter().position(|name| *name == mark.segments)?;
            Some((mark, last + 1))
        });
        let Some((mark, count)) = known else {
            if !begun.done.is_empty() {
                let notice = "the list of segments is another one than before: starting over";
                self.reporter.event(RunEvent::Notice(notice.to_owned())).await;
            }
            part.start_over()?;
            return self.begin(part);
        };
        self.begin_at(count);
        for cell in [&self.position, &self.boundary, &self.high_water] {
            cell.set(mark.end);
        }
        let part = self.adopt(part);
        let origin = self.origin();
        // Everything trusted from now on must be on disk, with a journal of this boot.
        blocking("taking up a part file", move || {
            part.sync()?;
            part.rewrite_joined_journal(&origin, mark)
        })
        .await
    }

    /// Fetches and writes all missing segments.
    async fn join(&self) -> Result<(), Failure> {
        let mut upkeep = Upkeep::new(self.received.get());
        let joined = self.join_with(&mut upkeep).await;
        upkeep.settle().await;
        joined
    }

    async fn join_with(&self, upkeep: &mut Upkeep) -> Result<(), Failure> {
        let mut fetching = Fetching::new();
        let mut most = self.ceiling();
        let mut ticker = upkeep::ticker();
        while !self.window.borrow().is_complete() {
            while let Some(index) = { self.window.borrow_mut().begin(most) } {
                fetching.push(Box::pin(self.attempt(index, Duration::ZERO)));
            }
            tokio::select! {
                Some((index, fetched)) = fetching.next() => if let Err(failure) = fetched {
                    if refuses_more(failure.kind) && !fetching.is_empty() {
                        most = self.learn_cap(index, fetching.len());
                    }
                    if let Some(wait) = self.on_failure(index, failure, !fetching.is_empty()).await? {
                        fetching.push(Box::pin(self.attempt(index, wait)));
                    }
                },
                _ = ticker.tick() => self.on_tick(upkeep, fetching.len())?,
                synced = upkeep.synced() => synced?,
            }
        }
        Ok(())
    }

    async fn attempt(&self, index: usize, after: Duration) -> (usize, Result<(), Failure>) {
        if !after.is_zero() {
            sleep(after).await;
        }
        (index, self.fetch(index).await)
    }

    /// Decides on a failed segment: the wait before it is fetched again. A failure behind the head has no consequence
    /// yet, and a slow connection none while others may be faster.
    async fn on_failure(&self, index: usize, failure: Failure, has_others: bool) -> Result<Option<Duration>, Failure> {
        if failure.kind.is_disk() {
            return Err(failure);
        }
        if !self.window.borrow().is_head(index) {
            let lasting = if failure.kind.is_transient() {
                Permanence::No
            } else {
                Permanence::Yes
            };
            tracing::debug!(index, %failure, "a segment failed before its turn");
            self.window.borrow_mut().park(index, lasting);
            return Ok(None);
        }
        if failure.kind == FailureKind::TooSlow && (self.has_fast.take() || has_others) {
            return Ok(Some(Duration::ZERO));
        }
        self.retries.grant(failure).await.map(Some)
    }

    fn on_tick(&self, upkeep: &mut Upkeep, connections: usize) -> Result<(), Failure> {
        let received = self.received.get();
        upkeep.measure(received);
        self.report_progress(Stage::Moving, upkeep, connections);
        upkeep.sync(received, || {
            let part = Arc::clone(self.part());
            if let Some(total) = self.total() {
                part.check_space(total)?;
            }
            Ok(Some(spawn_blocking(move || part.sync())))
        })
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is neither negative nor huge"
    )]
    fn report_progress(&self, stage: Stage, upkeep: &Upkeep, connections: usize) {
        self.reporter.progress(Progress {
            stage,
            total_bytes: self.total(),
            done_bytes: self.position.get(),
            received_bytes: self.received.get(),
            bytes_per_second: upkeep.rate.max(0.0) as u64,
            connections: u16::try_from(connections).unwrap_or(u16::MAX),
            ..Progress::default()
        });
    }

    async fn prove(&self) -> Result<(), Failure> {
        let size = self.position.get();
        self.report_progress(Stage::Verifying, &Upkeep::new(self.received.get()), 0);
        if let Some(promised) = self.source.promised_size.filter(|promised| *promised != size) {
            self.part().discard();
            let message = format!("the segments have {size} bytes together where {promised} were promised");
            return Err(Failure::new(FailureKind::NotTheFile, message));
        }
        let Some(wanted) = &self.source.checksum else {
            return Ok(());
        };
        let found = hash(Arc::clone(self.part()), wanted.clone()).await?;
        if found == *wanted {
            return Ok(());
        }
        self.part().discard();
        Err(mismatch(wanted, &found))
    }

    async fn finish(&self) -> Result<Finished, Failure> {
        let size_bytes = self.position.get();
        let path = self
            .destination
            .finish(Arc::clone(self.part()), size_bytes, None)
            .await?;
        Ok(Finished {
            path,
            size_bytes,
            received_bytes: self.received.get(),
            is_own: true,
            can_seed: false,
        })
    }

    /// Saves what a later run can resume from. Returns whether anything was saved.
    async fn save(&self) -> bool {
        match self.part.get() {
            Some(part) => self.destination.keep(Arc::clone(part), self.boundary.get()).await,
            None => false,
        }
    }

    fn origin(&self) -> Origin {
        Origin {
            source: self.destination.source_id.clone(),
            total_bytes: self.total(),
            etag: None,
            last_modified: None,
            lent_bytes: None,
        }
    }

    /// The size of the file: the expected one, else known if every segment has a length.
    fn total(&self) -> Option<u64> {
        let length = |segment: &Segment| {
            let part = segment.part.filter(|_| segment.cipher.is_none());
            part.map(ByteRange::len)
        };
        self.source
            .promised_size
            .or_else(|| self.source.segments.iter().map(length).sum())
    }

    /// The most segments fetched at once, by configuration and by the known limit of the first segment's host.
    fn ceiling(&self) -> usize {
        let ConnectionPlan { segments, per_host, .. } = self.connections;
        let wanted = if segments == 0 { AUTOMATIC } else { segments };
        let cap = self.shared.caps.get(self.host(0)).unwrap_or(u16::MAX);
        usize::from(wanted.min(per_host).min(cap).max(1))
    }

    /// Records that the host of a segment allows no more connections than the `others`.
    fn learn_cap(&self, index: usize, others: usize) -> usize {
        let bears = u16::try_from(others).unwrap_or(u16::MAX);
        self.shared.caps.learn(self.host(index), bears);
        others
    }

    fn host(&self, index: usize) -> &str {
        self.source.segments[index].url.as_url().host_str().unwrap_or_default()
    }
}

/// Whether a failure of one connection beside others means that the server allows no more.
fn refuses_more(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Busy | FailureKind::Connect)
}
