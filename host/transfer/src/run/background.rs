//! Runs work that may block for long (syncing, hashing, reserving space) off the lane, whose sockets would wait
//! meanwhile.

use tokio::task::spawn_blocking;

use crate::{Failure, failure::FailureKind};

/// Runs `work` on a thread that may block; `what` names it in the failure if it panics.
pub async fn blocking<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    spawn_blocking(work).await.map_err(|_| internal(what))?
}

/// The failure for work that panicked.
pub fn internal(what: &str) -> Failure {
    Failure::new(FailureKind::Internal, format!("{what} stopped through a defect"))
}
