//! Rate limits: token buckets that many connections share fairly and that change while in use.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Mutex as FairMutex, Notify},
    time::Instant,
};

/// Capacity of a bucket. Bounds the burst after a pause, and with it the error over ten seconds to 1 %.
const BURST: Duration = Duration::from_millis(100);

/// Upper bound of one grant. Short grants share the limit evenly; each costs a wake-up.
const GRANT: Duration = Duration::from_millis(50);

/// The most bytes in one grant however high the limit; a read buffer's worth.
const MAX_GRANT_BYTES: u64 = 256 * 1024;

/// A limit in bytes per second, shared by clones. Zero is no limit.
#[derive(Debug, Clone, Default)]
pub struct RateLimiter(Arc<Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    /// Bytes per second; 0 is no limit.
    rate: AtomicU64,
    level: Mutex<Level>,
    /// A fair lock: waiters are granted in order of arrival, which makes sharing fair.
    turn: FairMutex<()>,
    changed: Notify,
}

/// The content of a bucket. Negative after a grant that exceeded it.
#[derive(Debug, Default)]
struct Level {
    bytes: f64,
    at: Option<Instant>,
}

impl RateLimiter {
    /// A limiter at `bytes_per_second`; 0 is no limit.
    pub fn new(bytes_per_second: u64) -> Self {
        let limiter = Self::default();
        limiter.0.rate.store(bytes_per_second, Ordering::Relaxed);
        limiter
    }

    /// Changes the limit; current waiters are served at the new rate.
    pub fn set(&self, bytes_per_second: u64) {
        if self.0.rate.swap(bytes_per_second, Ordering::Relaxed) != bytes_per_second {
            let mut level = self.level();
            level.bytes = level.bytes.min(0.0);
            drop(level);
            self.0.changed.notify_waiters();
        }
    }

    /// The limit in bytes per second; 0 is none.
    pub fn get(&self) -> u64 {
        self.0.rate.load(Ordering::Relaxed)
    }

    fn level(&self) -> std::sync::MutexGuard<'_, Level> {
        self.0.level.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in line until bytes are available; `want` is how many the caller could use.
    async fn acquire(&self, want: u64) -> u64 {
        if self.get() == 0 {
            return want;
        }
        let _turn = self.0.turn.lock().await;
        loop {
            let changed = self.0.changed.notified();
            let rate = self.get();
            if rate == 0 {
                return want;
            }
            let taken = self.level().take(want.min(grant_bytes(rate)), rate, Instant::now());
            match taken {
                Ok(granted) => return granted,
                Err(wait) => {
                    let _woken = tokio::time::timeout(wait, changed).await;
                }
            }
        }
    }

    fn refund(&self, unused: u64) {
        if unused > 0 && self.get() != 0 {
            self.level().bytes += as_f64(unused);
        }
    }
}

impl Level {
    /// Takes `want` bytes, or returns the time until they are available.
    fn take(&mut self, want: u64, rate: u64, now: Instant) -> Result<u64, Duration> {
        let elapsed = self.at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        let rate = as_f64(rate);
        let capacity = (rate * BURST.as_secs_f64()).max(as_f64(want));
        self.bytes = (self.bytes + rate * elapsed.as_secs_f64()).min(capacity);
        let missing = as_f64(want) - self.bytes;
        if missing > 0.5 {
            return Err(Duration::from_secs_f64(missing / rate).max(Duration::from_millis(1)));
        }
        self.bytes -= as_f64(want);
        Ok(want)
    }
}

fn grant_bytes(rate: u64) -> u64 {
    let share = u128::from(rate) * GRANT.as_millis() / 1000;
    u64::try_from(share)
        .unwrap_or(u64::MAX)
        .clamp(1024.min(rate.max(1)), MAX_GRANT_BYTES)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "byte counts of one grant or one second are far below 2^52"
)]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// The limits that hold for a run. All connections of a run use clones of one value: it admits them to the limiters one
/// at a time, so that each run gets one share, however many connections it has.
#[derive(Debug, Clone)]
pub struct RateLimits(Arc<Chain>);

#[derive(Debug)]
struct Chain {
    turn: FairMutex<()>,
    limiters: Box<[RateLimiter]>,
}

impl RateLimits {
    /// The limits of a run, innermost first (task, queue, global).
    pub fn new(limiters: impl IntoIterator<Item = RateLimiter>) -> Self {
        Self(Arc::new(Chain {
            turn: FairMutex::new(()),
            limiters: limiters.into_iter().collect(),
        }))
    }

    /// No limit.
    pub fn unlimited() -> Self {
        Self::new([])
    }

    /// Whether any limit holds now. If not, nothing needs to be acquired.
    pub fn are_set(&self) -> bool {
        self.0.limiters.iter().any(|limiter| limiter.get() != 0)
    }

    /// Waits until all limits let something through, and says how many bytes: at least 1 (for `want` > 0), at most
    /// `want`. Dropping the future while it waits may lose one grant of an inner limiter, never exceed a limit.
    pub async fn acquire(&self, want: u64) -> u64 {
        if want == 0 || !self.are_set() {
            return want;
        }
        let _turn = self.0.turn.lock().await;
        let mut granted = want;
        for (index, limiter) in self.0.limiters.iter().enumerate() {
            let got = limiter.acquire(granted).await;
            for inner in &self.0.limiters[..index] {
                inner.refund(granted - got);
            }
            granted = got;
        }
        granted
    }

    /// Returns the unused part of a grant.
    pub fn refund(&self, unused: u64) {
        for limiter in &self.0.limiters {
            limiter.refund(unused);
        }
    }
}

#[cfg(test)]
mod tests;
