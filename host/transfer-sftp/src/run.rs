//! One run: what this protocol does at each login. The rest, from the first login to the renamed file, is
//! [`logins`](transfer::run::logins).

mod context;
mod opening;
mod pool;
mod worker;

use std::{sync::Arc, time::SystemTime};

use transfer::{
    Failure, Job, Outcome, SafeUrl,
    run::logins::{Attempts, Opening, Work, drive},
};

use crate::{
    run::{context::Run, pool::Pool},
    shared::Shared,
};

/// Runs `job` on this lane.
pub(crate) async fn run(shared: Arc<Shared>, job: Job) -> Outcome {
    let stop = job.stop.clone();
    match Run::new(shared, job) {
        Ok(run) => drive(&run, stop).await,
        Err(failure) => Outcome::Failed(failure),
    }
}

impl Attempts for Run {
    fn work(&self) -> &Work {
        &self.work
    }

    fn url(&self) -> &SafeUrl {
        &self.server().access.url
    }

    fn urls(&self) -> usize {
        self.urls()
    }

    fn use_next_url(&self) -> bool {
        self.use_next_url()
    }

    fn start_over(&self) -> Result<(), Failure> {
        self.start_over()
    }

    fn changed_at(&self) -> Option<SystemTime> {
        self.facts.get().changed_at()
    }

    async fn attempt(&self) -> Result<Opening, Failure> {
        let begun = match self.open().await? {
            Ok(begun) => begun,
            Err(opening) => return Ok(opening),
        };
        let ended = Pool::new(self, begun).run().await;
        self.work.release_all()?;
        ended.map(Opening::Ended)
    }
}
