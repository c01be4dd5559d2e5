//! Limits of speed.

/// Bytes per second in each direction; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Speeds {
    /// What is received.
    pub download: u64,
    /// What is sent to peers.
    pub upload: u64,
}
