//! One budget of retries for all layers of a run, so that nested retries never multiply.

use std::time::{Duration, SystemTime};

use crate::failure::{Failure, FailureKind};

/// How often a run retries, and how long it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Failed attempts in a row, without progress between them, before the run gives up; `None` never gives up.
    pub attempts: Option<u32>,
    /// Wait after the first failure; doubles with each further one.
    pub base: Duration,
    /// Upper bound of the exponential back-off.
    pub cap: Duration,
    /// After this many answers "not found" before the first byte, the run fails; earlier ones are retried. 0 fails at the
    /// first, and does not count.
    pub not_found: u32,
}

impl Default for RetryPolicy {
    /// Five attempts (aria2's `max-tries`), from one second up to a minute.
    fn default() -> Self {
        Self {
            attempts: Some(5),
            base: Duration::from_secs(1),
            cap: Duration::from_mins(1),
            not_found: 0,
        }
    }
}

/// The longest `Retry-After` that a run waits for. Beyond it the failure is reported instead.
pub const LONGEST_SERVER_WAIT: Duration = Duration::from_mins(15);

/// The budget itself: counts failures in a row and gives the wait before the next attempt.
#[derive(Debug)]
pub struct RetryBudget {
    policy: RetryPolicy,
    failures: u32,
    not_found: u32,
}

impl RetryBudget {
    /// A full budget.
    pub fn new(policy: RetryPolicy) -> Self {
        Self {
            policy,
            failures: 0,
            not_found: 0,
        }
    }

    /// Whether an attempt after `failure` may help.
    pub fn may_help(&self, failure: &Failure) -> bool {
        failure.kind.is_transient() || failure.kind == FailureKind::NotFound && self.policy.not_found > 0
    }

    /// Counts `failure` of a run that has no bytes yet. Fails if it was not found as often as the policy allows.
    pub fn count_not_found(&mut self, failure: Failure) -> Result<Failure, Failure> {
        if failure.kind != FailureKind::NotFound || self.policy.not_found == 0 {
            return Ok(failure);
        }
        self.not_found = self.not_found.saturating_add(1);
        if self.not_found < self.policy.not_found {
            return Ok(failure);
        }
        let message = format!("{failure}; it was not found {} times", self.not_found);
        Err(Failure::new(FailureKind::StillNotFound, message))
    }

    /// Takes one retry for `failure`. `None` means give up: the failure is permanent, the budget is used up, or the
    /// server asks for a longer wait than [`LONGEST_SERVER_WAIT`]. `jitter` in 0..=1 spreads clients that failed
    /// together: the wait is between half and the whole of the computed one.
    pub fn take(&mut self, failure: &Failure, jitter: f64) -> Option<Duration> {
        if !self.may_help(failure) {
            return None;
        }
        self.failures = self.failures.saturating_add(1);
        if self.policy.attempts.is_some_and(|attempts| self.failures >= attempts) {
            return None;
        }
        if let Some(wait) = failure.retry_after {
            return (wait <= LONGEST_SERVER_WAIT).then(|| wait.max(self.policy.base.min(Duration::from_secs(1))));
        }
        let doubled = self.policy.base.saturating_mul(1 << (self.failures - 1).min(20));
        Some(doubled.min(self.policy.cap).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0))
    }

    /// The run got new bytes: earlier failures no longer count.
    pub fn progressed(&mut self) {
        self.failures = 0;
    }
}

/// How long a server asks to wait with `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Failure {
        Failure::new(FailureKind::Network, "reset")
    }

    #[test]
    fn waits_double_up_to_the_cap_and_then_the_budget_is_used_up() {
        let policy = RetryPolicy {
            attempts: Some(5),
            base: Duration::from_secs(1),
            cap: Duration::from_secs(3),
            not_found: 0,
        };
        let mut budget = RetryBudget::new(policy);
        let waits: Vec<_> = (0..5)
            .map(|_| budget.take(&network(), 1.0).map(|wait| wait.as_secs()))
            .collect();
        assert_eq!(waits, [Some(1), Some(2), Some(3), Some(3), None]);
    }

    #[test]
    fn progress_refills_the_budget() {
        let mut budget = RetryBudget::new(RetryPolicy {
            attempts: Some(2),
            ..RetryPolicy::default()
        });
        for _ in 0..10 {
            assert!(budget.take(&network(), 0.5).is_some());
            budget.progressed();
        }
    }

    #[test]
    fn what_will_not_heal_is_not_retried() {
        let mut budget = RetryBudget::new(RetryPolicy {
            attempts: None,
            ..RetryPolicy::default()
        });
        assert_eq!(budget.take(&Failure::new(FailureKind::NotFound, "404"), 0.0), None);
    }

    #[test]
    fn what_is_not_found_is_retried_as_often_as_allowed() {
        let not_found = || Failure::new(FailureKind::NotFound, "404");
        let mut budget = RetryBudget::new(RetryPolicy {
            attempts: Some(3),
            not_found: 2,
            ..RetryPolicy::default()
        });
        assert_eq!(budget.count_not_found(network()), Ok(network()));
        assert_eq!(budget.count_not_found(not_found()), Ok(not_found()));
        assert!(budget.take(&not_found(), 0.0).is_some());
        let last = budget.count_not_found(not_found()).unwrap_err();
        assert_eq!(last.kind, FailureKind::StillNotFound);
        assert_eq!(budget.take(&last, 0.0), None);
        // Attempts are counted as for any other failure.
        assert!(budget.take(&not_found(), 0.0).is_some());
        assert_eq!(budget.take(&not_found(), 0.0), None);
    }

    #[test]
    fn the_server_sets_the_wait_within_reason() {
        let mut budget = RetryBudget::new(RetryPolicy {
            attempts: None,
            ..RetryPolicy::default()
        });
        let busy = |secs| Failure::new(FailureKind::Busy, "429").with_retry_after(Some(Duration::from_secs(secs)));
        assert_eq!(budget.take(&busy(7), 0.0), Some(Duration::from_secs(7)));
        assert_eq!(budget.take(&busy(3600), 0.0), None);
    }
}
