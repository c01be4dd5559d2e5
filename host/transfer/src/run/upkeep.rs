//! Periodic work beside the transfer: measures the rate and syncs the part file.

use std::time::{Duration, Instant};

use crate::{Failure, SPEED_WINDOW, failure::FailureKind};
use tokio::{
    task::JoinHandle,
    time::{Interval, MissedTickBehavior, interval_at},
};

/// Interval of rate measurements and progress reports.
const TICK: Duration = Duration::from_millis(100);

/// Weight of the newest tick in a smoothed rate: half of a change shows after 200 ms.
pub const SMOOTHING: f64 = 0.3;

/// Bytes after which the part file is synced, so that a power failure loses no more.
const SYNC_BYTES: u64 = 256 * 1024 * 1024;

/// Time after which the part file is synced if anything was received.
const SYNC_TIME: Duration = Duration::from_secs(10);

/// Time after which received bytes are recorded: of a slow line, a kill loses what arrived in it. Recording is one small
/// append for each connection, so its cost does not depend on the speed.
pub const RECORD_TIME: Duration = Duration::from_secs(2);

/// A connection to `host` was slower than the task allows.
pub fn too_slow(host: Option<&str>, bytes_per_second: u64, limit: u64) -> Failure {
    let (host, seconds) = (host.unwrap_or_default(), SPEED_WINDOW.as_secs());
    let message =
        format!("{host} sent {bytes_per_second} bytes a second over {seconds} s; the lowest speed is {limit}");
    Failure::new(FailureKind::TooSlow, message)
}

/// Ticks every [`TICK`], first after one: a small file is complete by then, and a timer that is due at once costs up to
/// a millisecond.
pub fn ticker() -> Interval {
    let mut ticker = interval_at(tokio::time::Instant::now() + TICK, TICK);
    ticker.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticker
}

/// The upkeep of one run.
#[derive(Debug)]
pub struct Upkeep {
    /// Bytes per second, smoothed.
    pub rate: f64,
    measured: (Instant, u64),
    synced: (Instant, u64),
    recorded: (Instant, u64),
    syncing: Option<JoinHandle<Result<(), Failure>>>,
}

impl Upkeep {
    /// Starts after `received` bytes.
    pub fn new(received: u64) -> Self {
        let now = Instant::now();
        Self {
            rate: 0.0,
            measured: (now, received),
            synced: (now, received),
            recorded: (now, received),
            syncing: None,
        }
    }

    /// Measures the rate. Returns the seconds since the last measurement.
    pub fn measure(&mut self, received: u64) -> f64 {
        let now = Instant::now();
        let seconds = now.duration_since(self.measured.0).as_secs_f64().max(0.001);
        let newest = as_f64(received - self.measured.1) / seconds;
        self.rate = if self.rate == 0.0 {
            newest
        } else {
            self.rate + SMOOTHING * (newest - self.rate)
        };
        self.measured = (now, received);
        seconds
    }

    /// Whether the bytes received so far are to be recorded at `now`; then they count as recorded.
    pub fn take_record(&mut self, now: Instant, received: u64) -> bool {
        let is_due = received > self.recorded.1 && now.duration_since(self.recorded.0) >= RECORD_TIME;
        if is_due {
            self.recorded = (now, received);
        }
        is_due
    }

    /// Starts a sync if one is due.
    pub fn sync(
        &mut self,
        received: u64,
        start: impl FnOnce() -> Result<Option<JoinHandle<Result<(), Failure>>>, Failure>,
    ) -> Result<(), Failure> {
        let now = Instant::now();
        let is_due = received - self.synced.1 >= SYNC_BYTES
            || (received > self.synced.1 && now.duration_since(self.synced.0) >= SYNC_TIME);
        if is_due && self.syncing.is_none() {
            self.synced = (now, received);
            self.syncing = start()?;
        }
        Ok(())
    }

    /// Waits for the end of the current sync; for ever if there is none. Cancel-safe.
    pub async fn synced(&mut self) -> Result<(), Failure> {
        let Some(syncing) = &mut self.syncing else {
            return std::future::pending().await;
        };
        let synced = syncing.await;
        self.syncing = None;
        synced.map_err(|_| Failure::new(FailureKind::Internal, "syncing the part file panicked"))?
    }

    /// Waits for the current sync. Its error is ignored: the final sync reports it again.
    pub async fn settle(&mut self) {
        if let Some(syncing) = self.syncing.take() {
            let _told_later = syncing.await;
        }
    }
}

/// A count as a rate needs it.
#[expect(clippy::cast_precision_loss, reason = "an estimate of a rate")]
pub fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrived_is_recorded_after_a_while_and_only_if_something_did() {
        let mut upkeep = Upkeep::new(5);
        let start = upkeep.recorded.0;
        let mut at = |seconds, received| upkeep.take_record(start + Duration::from_secs(seconds), received);
        assert!(!at(1, 6));
        assert!(at(2, 6));
        assert!(!at(100, 6));
        assert!(at(100, 7));
        assert!(!at(101, 8));
        assert!(at(102, 8));
    }
}
