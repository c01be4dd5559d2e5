//! The rates of a run's connections, and what their end means.

use std::{collections::BTreeMap, time::Instant};

use super::{Ended, Work};
use crate::{
    Failure, SafeUrl,
    failure::FailureKind,
    run::{
        Upkeep, WorkerId,
        upkeep::{SMOOTHING, as_f64},
    },
};

/// What is measured and saved while connections are open.
#[derive(Debug)]
pub struct Rates {
    /// Syncs, and the rate of all together.
    pub upkeep: Upkeep,
    /// Whether bytes came that were never there before.
    has_gained: bool,
    /// Per worker: its rate, and its received bytes at the last tick.
    of_workers: BTreeMap<WorkerId, (f64, u64)>,
}

impl Rates {
    /// Of a run as it is now.
    pub fn new(work: &Work) -> Self {
        Self {
            upkeep: Upkeep::new(work.received()),
            has_gained: false,
            of_workers: BTreeMap::new(),
        }
    }

    /// A worker has ended.
    pub fn ended(&mut self, work: &Work, worker: WorkerId) {
        self.of_workers.remove(&worker);
        self.has_gained |= work.record_progress();
    }

    /// Measures, reports and saves; as often as [`upkeep::ticker`](crate::run::upkeep::ticker) says, while so many
    /// `workers` fetch from `url`.
    pub fn tick(&mut self, work: &Work, workers: usize, url: &SafeUrl) -> Result<(), Failure> {
        let received = work.received();
        let seconds = self.upkeep.measure(received);
        self.measure_workers(work, workers, seconds);
        self.has_gained |= work.record_progress();
        work.disk.check_reserved()?;
        work.report_progress(self.upkeep.rate, &self.of_workers, url);
        if self.upkeep.take_record(Instant::now(), received) {
            work.disk.record_all(work.plan.borrow_mut().unrecorded())?;
        }
        let total = work.plan.borrow().total();
        self.upkeep.sync(received, || work.disk.start_sync(total))
    }

    fn measure_workers(&mut self, work: &Work, workers: usize, seconds: f64) {
        let received = work.active.borrow();
        for (id, total) in received.iter() {
            let (rate, before) = self.of_workers.entry(*id).or_insert((0.0, 0));
            let newest = as_f64(total - *before) / seconds;
            *rate = if *before == 0 {
                newest
            } else {
                *rate + SMOOTHING * (newest - *rate)
            };
            *before = *total;
            work.plan.borrow_mut().pace(*id, *rate);
        }
        let count = u32::try_from(workers.max(1)).unwrap_or(u32::MAX);
        work.set_rate((self.upkeep.rate / f64::from(count)).max(1.0));
    }

    /// How a login ends whose last connection has ended, of which `last_failure` is told.
    pub fn all_ended(&self, is_complete: bool, last_failure: Option<Failure>) -> Result<Ended, Failure> {
        match last_failure {
            _ if is_complete => Ok(Ended::Complete),
            Some(failure) => Err(failure),
            None if self.has_gained => Ok(Ended::Again),
            None => Err(Failure::new(
                FailureKind::Network,
                "the server stopped sending the file",
            )),
        }
    }
}

/// Whether a failure of a further login means that the server allows no more.
pub fn refuses_more(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Busy | FailureKind::Unauthorized | FailureKind::Connect | FailureKind::Forbidden
    )
}
