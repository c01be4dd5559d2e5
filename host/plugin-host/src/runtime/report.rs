//! The resource usage of a call, for the journal and for authors.

use std::{fmt, time::Duration};

use crate::policy::host::Denial;

/// Identifies a call; unique while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The resource usage of a call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// From start to end.
    pub wall: Duration,
    /// To create its instance.
    pub instantiate: Duration,
    /// How long guest code ran.
    pub cpu: Duration,
    pub peak_memory_bytes: usize,
    pub requests: u32,
    /// Bytes of all responses.
    pub received_bytes: u64,
    /// Denied requests.
    pub denied: Vec<Denial>,
    /// Log lines that were dropped because there were too many.
    pub lost_log_lines: u32,
}
