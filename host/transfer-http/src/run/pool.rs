//! All connections of a run: how many there are, what follows when one fails, and when state is saved.

use std::{
    collections::BTreeMap,
    pin::Pin,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::sleep;
use transfer::{
    Failure,
    failure::FailureKind,
    run::{
        Pace, Upkeep, WorkerId,
        upkeep::{self, SMOOTHING, as_f64},
    },
};

use crate::{
    client::{body::Body, decode::Decoder},
    run::{
        context::Run,
        ramp::{Ramp, Sample},
        worker::{Worker, WorkerError},
    },
};

/// A connection that delivered at least this much before it broke is reopened at once.
const REOPEN_AT_ONCE_BYTES: u64 = 16 * 1024;

/// The first response, from opening the source.
pub(crate) struct Begun {
    pub(crate) worker: WorkerId,
    pub(crate) mirror: usize,
    pub(crate) body: Body,
    pub(crate) decoder: Option<Decoder>,
    /// Whether other connections may fetch ranges in parallel.
    pub(crate) is_splittable: bool,
}

#[derive(Debug)]
pub(crate) enum Ended {
    /// Every byte is valid.
    Complete,
    /// The file changed at the source.
    Changed(String),
    /// The transfer cannot continue; after the wait everything is fetched again.
    StartOver(Duration),
}

type WorkerFuture<'a> = Pin<Box<dyn Future<Output = (WorkerId, usize, Result<(), WorkerError>)> + 'a>>;

pub(crate) struct WorkerPool<'a> {
    run: &'a Run,
    workers: FuturesUnordered<WorkerFuture<'a>>,
    /// Per worker: its rate, and its received bytes at the last tick.
    rates: BTreeMap<WorkerId, (f64, u64)>,
    ramp: Ramp,
    is_splittable: bool,
    started: Instant,
    received_before: u64,
    upkeep: Upkeep,
}

impl<'a> WorkerPool<'a> {
    pub(crate) fn new(run: &'a Run, begun: Begun) -> Self {
        let received = run.flow.received.get();
        let segments = if begun.is_splittable {
            run.connections.segments
        } else {
            1
        };
        let mut pool = Self {
            run,
            workers: FuturesUnordered::new(),
            rates: BTreeMap::new(),
            ramp: Ramp::new(segments, run.ceiling()),
            is_splittable: begun.is_splittable,
            started: Instant::now(),
            received_before: received,
            upkeep: Upkeep::new(received),
        };
        pool.begin(begun);
        pool
    }

    fn begin(&mut self, begun: Begun) {
        let Begun {
            worker: id,
            mirror,
            body,
            decoder,
            ..
        } = begun;
        let run = self.run;
        run.add_worker(id, mirror);
        self.watch(id, mirror, async move {
            let worker = Worker { run, id, mirror };
            match decoder {
                None => worker.work(Some(body)).await,
                Some(decoder) => worker.pump_decoded(body, decoder).await,
            }
        });
    }

    /// Adds a worker, and ends it if it is too slow.
    fn watch(&mut self, id: WorkerId, mirror: usize, work: impl Future<Output = Result<(), WorkerError>> + 'a) {
        let run = self.run;
        self.workers.push(Box::pin(async move {
            let worked = tokio::select! {
                biased;
                worked = work => worked,
                failure = run.too_slow(id) => Err(run.release(id).err().unwrap_or(failure).into()),
            };
            (id, mirror, worked)
        }));
    }

    /// Runs until the file is complete or cannot be completed this way.
    pub(crate) async fn run(mut self) -> Result<Ended, Failure> {
        let ended = self.work().await;
        self.upkeep.settle().await;
        ended
    }

    async fn work(&mut self) -> Result<Ended, Failure> {
        let mut ticker = upkeep::ticker();
        loop {
            if self.run.plan.borrow().is_complete() {
                return Ok(Ended::Complete);
            }
            self.fill();
            if self.workers.is_empty() {
                return self.all_idle();
            }
            tokio::select! {
                // Most files come in the first poll, and need no timer then.
                biased;
                Some((id, mirror, worked)) = self.workers.next() => {
                    self.rates.remove(&id);
                    self.run.remove_worker(id, mirror);
                    let Err(error) = worked else { continue };
                    if let Some(ended) = self.on_error(mirror, error).await? {
                        return Ok(ended);
                    }
                }
                _ = ticker.tick() => self.on_tick()?,
                synced = self.upkeep.synced() => synced?,
            }
        }
    }

    /// No worker is left: the server does not send ranges, so the file must be fetched as a whole.
    fn all_idle(&self) -> Result<Ended, Failure> {
        self.run.record_progress();
        let failure = Failure::new(
            FailureKind::RangeMismatch,
            "the server stopped sending the parts it was asked for",
        );
        let wait = self.run.retries.take(&failure);
        wait.map(Ended::StartOver).ok_or(failure)
    }

    /// Opens connections up to the number that the ramp wants.
    fn fill(&mut self) {
        while self.is_splittable && self.workers.len() < usize::from(self.ramp.wanted()) {
            let Some(mirror) = self.run.choose_mirror(self.ramp.wanted()) else {
                return;
            };
            if !self.run.plan.borrow().has_work(self.pace()) {
                return;
            }
            self.spawn_worker(mirror, Duration::ZERO);
        }
    }

    fn spawn_worker(&mut self, mirror: usize, after: Duration) {
        let run = self.run;
        let id = run.active.new_worker();
        run.add_worker(id, mirror);
        self.watch(id, mirror, async move {
            if !after.is_zero() {
                sleep(after).await;
            }
            Worker { run, id, mirror }.work(None).await
        });
    }

    fn pace(&self) -> Pace {
        self.run.flow.pace.get()
    }

    /// Decides what a failed connection means for the run.
    async fn on_error(&mut self, mirror: usize, error: WorkerError) -> Result<Option<Ended>, Failure> {
        let is_base = mirror == self.run.mirrors.borrow().base();
        let failure = match error {
            WorkerError::Changed(why) if is_base => return Ok(Some(Ended::Changed(why))),
            WorkerError::Changed(why) => {
                let why = Failure::new(FailureKind::Changed, why);
                self.run.give_up_mirror(mirror, why, true).await?;
                return Ok(None);
            }
            WorkerError::IgnoresRanges if is_base => {
                self.run.server.ignores_ranges.set(true);
                self.is_splittable = false;
                return Ok(None);
            }
            WorkerError::IgnoresRanges => {
                let why = Failure::new(FailureKind::RangeMismatch, "it does not send parts");
                self.run.give_up_mirror(mirror, why, false).await?;
                return Ok(None);
            }
            WorkerError::Failed(failure) if failure.kind.is_disk() => return Err(failure),
            WorkerError::Failed(failure) => failure,
        };
        let gained = self.run.record_progress();
        if self.run.plan.borrow().is_complete() {
            return Ok(None);
        }
        if !self.is_splittable {
            // Other connections may still fetch their ranges, but this one's range cannot be fetched separately.
            let granted = self.run.retries.grant(failure).await;
            if let Err(failure) = &granted {
                self.run.mirror_failed(mirror, failure).await;
            }
            return Ok(Some(Ended::StartOver(granted?)));
        }
        let others = u16::try_from(self.workers.len()).unwrap_or(u16::MAX);
        if others > 0 && refuses_more(failure.kind) && (is_base || failure.kind == FailureKind::Busy) {
            self.run.learn_cap(mirror, &failure);
            self.ramp.refused(others);
            return Ok(None);
        }
        if failure.kind == FailureKind::RangeMismatch && !self.run.server.ignores_ranges.replace(true) {
            // Without reliable ranges, the file can still be fetched as a whole.
            return Ok(Some(Ended::StartOver(Duration::ZERO)));
        }
        if self.run.has_other_mirror(mirror)
            && (self.run.mirrors.borrow_mut().failed(mirror) || !failure.kind.is_transient())
        {
            self.run.give_up_mirror(mirror, failure, false).await?;
            return Ok(None);
        }
        let wait = match self.run.retries.take(&failure) {
            Some(_) if gained >= REOPEN_AT_ONCE_BYTES && failure.retry_after.is_none() => Some(Duration::ZERO),
            wait => wait,
        };
        match wait {
            Some(wait) => {
                if !wait.is_zero() {
                    self.run.retries.announce(failure, wait).await;
                }
                let next = self.run.choose_mirror(self.ramp.wanted()).unwrap_or(mirror);
                self.spawn_worker(next, wait);
                Ok(None)
            }
            None if others > 0 => {
                self.ramp.refused(others);
                Ok(None)
            }
            None => {
                self.run.mirror_failed(mirror, &failure).await;
                Err(failure)
            }
        }
    }

    fn on_tick(&mut self) -> Result<(), Failure> {
        let run = self.run;
        let received = run.flow.received.get();
        let seconds = self.upkeep.measure(received);
        self.measure_workers(seconds);
        run.record_progress();
        run.disk.check_reserved()?;
        if self.is_splittable {
            let missing = run.missing();
            let at = self.started.elapsed();
            let sample = Sample {
                at,
                received: received - self.received_before,
                missing,
                delay: run.flow.delay.get(),
            };
            self.ramp.look(sample);
            run.active
                .retire_surplus(self.rates.keys().copied(), usize::from(self.ramp.tolerated()));
        }
        run.report_progress(self.upkeep.rate, &self.rates);
        if self.upkeep.take_record(Instant::now(), received) {
            run.disk.record_all(run.plan.borrow_mut().unrecorded())?;
        }
        self.upkeep
            .sync(received, || run.disk.start_sync(run.plan.borrow().total()))
    }

    fn measure_workers(&mut self, seconds: f64) {
        let received = self.run.active.received.borrow();
        for (id, total) in received.iter() {
            let (rate, before) = self.rates.entry(*id).or_insert((0.0, 0));
            let newest = as_f64(total - *before) / seconds;
            *rate = if *before == 0 {
                newest
            } else {
                *rate + SMOOTHING * (newest - *rate)
            };
            *before = *total;
            self.run.plan.borrow_mut().pace(*id, *rate);
        }
        let count = u32::try_from(self.workers.len().max(1)).unwrap_or(u32::MAX);
        let pace = Pace {
            rate: (self.upkeep.rate / f64::from(count)).max(1.0),
            delay: self.run.flow.delay.get().as_secs_f64(),
        };
        self.run.flow.pace.set(pace);
    }
}

/// Whether a failure of one connection beside others means that the server allows no more, or sends additional ones
/// something else than ranges. Keeping the open ones is better than retrying.
fn refuses_more(kind: FailureKind) -> bool {
    kind.is_link_refused()
        || matches!(
            kind,
            FailureKind::Busy | FailureKind::Connect | FailureKind::RangeMismatch | FailureKind::NotTheFile
        )
}
