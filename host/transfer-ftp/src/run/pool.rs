//! All connections of a run: how many there are, what follows when one fails, and when state is saved.

use std::pin::Pin;

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use transfer::{
    Failure,
    run::{
        WorkerId,
        logins::{Ended, Rates, refuses_more},
        upkeep,
    },
};

use crate::run::{
    context::{Restart, Run},
    opening::Begun,
    worker::{Worker, WorkerError},
};

type WorkerFuture<'a> = Pin<Box<dyn Future<Output = (WorkerId, Result<(), WorkerError>)> + 'a>>;

pub(crate) struct Pool<'a> {
    run: &'a Run,
    workers: FuturesUnordered<WorkerFuture<'a>>,
    rates: Rates,
    /// Connections that are worth opening; fewer once one was refused.
    wanted: usize,
    /// The worker that proves REST.
    prover: Option<WorkerId>,
    last_failure: Option<Failure>,
}

impl<'a> Pool<'a> {
    pub(crate) fn new(run: &'a Run, begun: Begun) -> Self {
        let mut pool = Self {
            run,
            workers: FuturesUnordered::new(),
            rates: Rates::new(&run.work),
            wanted: usize::from(run.wanted()),
            prover: None,
            last_failure: None,
        };
        let id = begun.worker;
        pool.watch(id, async move { Worker { run, id }.go_on(begun).await });
        pool
    }

    /// Adds a worker, and ends it if it is too slow.
    fn watch(&mut self, id: WorkerId, work: impl Future<Output = Result<(), WorkerError>> + 'a) {
        let run = self.run;
        run.work.active.borrow_mut().insert(id, 0);
        self.workers.push(Box::pin(async move {
            let worked = tokio::select! {
                biased;
                worked = work => worked,
                failure = run.work.too_slow(id, &run.server().access.host) => Err(failure.into()),
            };
            let released = run.work.release(id);
            run.work.active.borrow_mut().remove(&id);
            (id, worked.and_then(|()| Ok(released?)))
        }));
    }

    /// Runs until the file is complete or cannot be completed by this login.
    pub(crate) async fn run(mut self) -> Result<Ended, Failure> {
        let ended = self.work().await;
        if self.run.restart() == Restart::Proving {
            self.run.set_restart(Restart::Unproved);
        }
        self.rates.upkeep.settle().await;
        ended
    }

    async fn work(&mut self) -> Result<Ended, Failure> {
        let mut ticker = upkeep::ticker();
        loop {
            self.fill();
            if self.workers.is_empty() {
                let is_complete = self.run.work.plan.borrow().is_complete();
                return self.rates.all_ended(is_complete, self.last_failure.take());
            }
            tokio::select! {
                biased;
                Some((id, worked)) = self.workers.next() => {
                    self.rates.ended(&self.run.work, id);
                    if let Some(ended) = self.on_end(id, worked)? {
                        return Ok(ended);
                    }
                }
                _ = ticker.tick() => {
                    let url = &self.run.server().access.url;
                    self.rates.tick(&self.run.work, self.workers.len(), url)?;
                }
                synced = self.rates.upkeep.synced() => synced?,
            }
        }
    }

    /// Opens connections: one that proves REST, and then as many as are wanted.
    fn fill(&mut self) {
        let run = self.run;
        if self.workers.is_empty() || self.wanted < 2 {
            return;
        }
        match run.restart() {
            Restart::Unproved => {
                run.set_restart(Restart::Proving);
                let id = run.work.new_worker();
                self.prover = Some(id);
                self.watch(id, async move { Worker { run, id }.prove().await });
            }
            Restart::Proved => {
                while self.workers.len() < self.wanted && run.work.plan.borrow().has_work(run.work.pace()) {
                    let id = run.work.new_worker();
                    self.watch(id, async move { Worker { run, id }.work().await });
                    if self.workers.len() >= self.wanted {
                        break;
                    }
                }
            }
            Restart::Proving | Restart::Ignored => {}
        }
    }

    /// Decides what the end of a connection means for the run.
    fn on_end(&mut self, id: WorkerId, worked: Result<(), WorkerError>) -> Result<Option<Ended>, Failure> {
        let was_proving = self.prover == Some(id) && self.run.restart() == Restart::Proving;
        let error = match worked {
            Ok(()) => return Ok(None),
            Err(error) => error,
        };
        match error {
            WorkerError::Changed(why) => return Ok(Some(Ended::Changed(why))),
            WorkerError::IgnoresRestart if was_proving => {
                // Nothing of it was written, and the first transfer goes on.
                self.run.set_restart(Restart::Ignored);
                self.wanted = 1;
            }
            WorkerError::IgnoresRestart => {
                self.run.set_restart(Restart::Ignored);
                let why = "the server did not begin at the byte that it was asked for";
                return Ok(Some(Ended::StartOver(why)));
            }
            WorkerError::Failed(failure) if failure.kind.is_disk() => return Err(failure),
            WorkerError::Failed(failure) => {
                // The others go on with what they have; a login more was refused, or the connection broke.
                let others = self.workers.len();
                self.wanted = others;
                if others > 0 && refuses_more(failure.kind) {
                    self.run.learn_cap(u16::try_from(others).unwrap_or(u16::MAX));
                }
                if was_proving {
                    self.run.set_restart(Restart::Unproved);
                }
                tracing::debug!(%failure, others, "a connection ended");
                self.last_failure = Some(failure);
            }
        }
        Ok(None)
    }
}
