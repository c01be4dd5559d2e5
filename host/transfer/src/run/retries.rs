//! The retries of one run: one budget for all, and each is announced before its wait.

use std::{cell::RefCell, time::Duration};

use crate::{Failure, Reporter, RetryBudget, RetryPolicy, RunEvent};
use tokio::time::sleep;

/// The retries of one run. It stays on one lane, so a plain cell suffices.
#[derive(Debug)]
pub struct Retries {
    budget: RefCell<RetryBudget>,
    reporter: Reporter,
}

impl Retries {
    /// With a full budget.
    pub fn new(policy: RetryPolicy, reporter: Reporter) -> Self {
        Self {
            budget: RefCell::new(RetryBudget::new(policy)),
            reporter,
        }
    }

    /// Takes one retry for `failure` and returns the wait before it. `None` if the run must fail.
    pub fn take(&self, failure: &Failure) -> Option<Duration> {
        self.budget.borrow_mut().take(failure, jitter())
    }

    /// Whether an attempt after `failure` may help.
    pub fn may_help(&self, failure: &Failure) -> bool {
        self.budget.borrow().may_help(failure)
    }

    /// Counts `failure` of a run that has no bytes yet. Fails if it was not found too often.
    pub fn count_not_found(&self, failure: Failure) -> Result<Failure, Failure> {
        self.budget.borrow_mut().count_not_found(failure)
    }

    /// Takes one retry and announces it; the caller waits. Returns the failure if none is left.
    pub async fn grant(&self, failure: Failure) -> Result<Duration, Failure> {
        match self.take(&failure) {
            Some(wait) => {
                self.announce(failure, wait).await;
                Ok(wait)
            }
            None => Err(failure),
        }
    }

    /// Takes one retry, announces it and waits until it is due. Returns the failure if none is left.
    pub async fn wait(&self, failure: Failure) -> Result<(), Failure> {
        let wait = self.grant(failure).await?;
        sleep(wait).await;
        Ok(())
    }

    /// Reports a failed attempt and the wait before the next.
    pub async fn announce(&self, failure: Failure, wait: Duration) {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.reporter.event(RunEvent::Retrying { failure, wait_ms }).await;
    }

    /// New bytes arrived: earlier failures no longer count.
    pub fn progressed(&self) {
        self.budget.borrow_mut().progressed();
    }
}

/// A number in 0..=1 that spreads clients that failed together.
fn jitter() -> f64 {
    let mut byte = [0];
    // Without randomness all clients wait equally long, which is harmless.
    let _none = getrandom::fill(&mut byte);
    f64::from(byte[0]) / 255.0
}
