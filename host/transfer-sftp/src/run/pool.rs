//! All connections of a run: how many there are, what follows when one fails, and when state is saved.

use std::{collections::BTreeMap, pin::Pin};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use transfer::{
    Failure,
    failure::FailureKind,
    run::{
        Upkeep, WorkerId,
        upkeep::{self, SMOOTHING, as_f64},
    },
};

use crate::run::{
    Ended,
    context::Run,
    opening::Begun,
    worker::{Worker, WorkerError},
};

type WorkerFuture<'a> = Pin<Box<dyn Future<Output = (WorkerId, Result<(), WorkerError>)> + 'a>>;

pub(crate) struct Pool<'a> {
    run: &'a Run,
    workers: FuturesUnordered<WorkerFuture<'a>>,
    /// Per worker: its rate, and its received bytes at the last tick.
    rates: BTreeMap<WorkerId, (f64, u64)>,
    /// Connections that are worth opening; fewer once one was refused.
    wanted: usize,
    has_gained: bool,
    last_failure: Option<Failure>,
    upkeep: Upkeep,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(run: &'a Run, begun: Begun) -> Self {
        let mut pool = Self {
            run,
            workers: FuturesUnordered::new(),
            rates: BTreeMap::new(),
            wanted: usize::from(run.wanted()),
            has_gained: false,
            last_failure: None,
            upkeep: Upkeep::new(run.received()),
        };
        let id = begun.worker;
        pool.watch(id, async move { Worker { run, id }.go_on(begun).await });
        pool
    }

    /// Adds a worker, and ends it if it is too slow.
    fn watch(&mut self, id: WorkerId, work: impl Future<Output = Result<(), WorkerError>> + 'a) {
        let run = self.run;
        run.active.borrow_mut().insert(id, 0);
        self.workers.push(Box::pin(async move {
            let worked = tokio::select! {
                biased;
                worked = work => worked,
                failure = run.too_slow(id) => Err(failure.into()),
            };
            let released = run.release(id);
            run.active.borrow_mut().remove(&id);
            (id, worked.and_then(|()| Ok(released?)))
        }));
    }

    /// Runs until the file is complete or cannot be completed by this login.
    pub(crate) async fn run(mut self) -> Result<Ended, Failure> {
        let ended = self.work().await;
        self.upkeep.settle().await;
        ended
    }

    async fn work(&mut self) -> Result<Ended, Failure> {
        let mut ticker = upkeep::ticker();
        loop {
            self.fill();
            if self.workers.is_empty() {
                return self.all_ended();
            }
            tokio::select! {
                biased;
                Some((id, worked)) = self.workers.next() => {
                    self.rates.remove(&id);
                    if let Some(ended) = self.on_end(worked)? {
                        return Ok(ended);
                    }
                }
                _ = ticker.tick() => self.on_tick()?,
                synced = self.upkeep.synced() => synced?,
            }
        }
    }

    /// Opens as many connections as are wanted, once the first one has brought something.
    fn fill(&mut self) {
        let run = self.run;
        if self.workers.is_empty() || run.received() == 0 {
            return;
        }
        while self.workers.len() < self.wanted && run.plan.borrow().has_work(run.pace()) {
            let id = run.new_worker();
            self.watch(id, async move { Worker { run, id }.work().await });
        }
    }

    /// Decides what the end of a connection means for the run.
    fn on_end(&mut self, worked: Result<(), WorkerError>) -> Result<Option<Ended>, Failure> {
        self.has_gained |= self.run.record_progress();
        let error = match worked {
            Ok(()) => return Ok(None),
            Err(error) => error,
        };
        match error {
            WorkerError::Changed(why) => return Ok(Some(Ended::Changed(why))),
            WorkerError::Failed(failure) if failure.kind.is_disk() => return Err(failure),
            WorkerError::Failed(failure) => {
                // The others go on with what they have; a login more was refused, or the connection broke.
                let others = self.workers.len();
                self.wanted = others;
                if others > 0 && refuses_more(failure.kind) {
                    self.run.learn_cap(u16::try_from(others).unwrap_or(u16::MAX));
                }
                tracing::debug!(%failure, others, "a connection ended");
                self.last_failure = Some(failure);
            }
        }
        Ok(None)
    }

    /// No connection is left.
    fn all_ended(&mut self) -> Result<Ended, Failure> {
        if self.run.is_confirmed.get() && self.run.plan.borrow().is_complete() {
            return Ok(Ended::Complete);
        }
        match self.last_failure.take() {
            Some(failure) => Err(failure),
            None if self.has_gained => Ok(Ended::Again),
            None => Err(Failure::new(
                FailureKind::Network,
                "the server stopped sending the file",
            )),
        }
    }

    fn on_tick(&mut self) -> Result<(), Failure> {
        let run = self.run;
        let received = run.received();
        let seconds = self.upkeep.measure(received);
        self.measure_workers(seconds);
        self.has_gained |= run.record_progress();
        run.disk.check_reserved()?;
        run.report_progress(self.upkeep.rate, &self.rates);
        self.upkeep.sync(received, || run.start_sync())
    }

    fn measure_workers(&mut self, seconds: f64) {
        let received = self.run.active.borrow();
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
        self.run.set_rate((self.upkeep.rate / f64::from(count)).max(1.0));
    }
}

/// Whether a failure of a further login means that the server allows no more.
fn refuses_more(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Busy | FailureKind::Unauthorized | FailureKind::Connect | FailureKind::Forbidden
    )
}
