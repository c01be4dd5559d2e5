//! What a call took, for the journal and for authors.

use std::{fmt, time::Duration};

use crate::policy::host::Denial;

/// Names a call while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a call took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// From start to end.
    pub wall: Duration,
    /// Until its instance was there.
    pub instantiate: Duration,
    /// How long guest code ran.
    pub cpu: Duration,
    pub peak_memory_bytes: usize,
    pub requests: u32,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// What it wanted to reach and may not.
    pub denied: Vec<Denial>,
    /// Lines that were too many to be kept.
    pub lost_log_lines: u32,
}
