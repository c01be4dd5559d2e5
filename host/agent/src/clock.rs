//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Unix seconds, as records that are stored or sent have them.
pub(crate) fn unix_seconds() -> i64 {
    i64::try_from(unix_ms() / 1000).unwrap_or(i64::MAX)
}
