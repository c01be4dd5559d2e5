//! Arithmetic of moments that cannot fail: beyond the last moment is the last moment.

use std::time::Duration;

use jiff::Timestamp;

/// The moment `wait` after `time`.
pub fn after(time: Timestamp, wait: Duration) -> Timestamp {
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(time.as_millisecond().saturating_add(wait)).unwrap_or(Timestamp::MAX)
}

/// How long from `earlier` to `later`; zero if it is not later.
pub fn since(later: Timestamp, earlier: Timestamp) -> Duration {
    let millis = later.as_millisecond().saturating_sub(earlier.as_millisecond());
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}
