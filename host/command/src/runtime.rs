//! The threads that commands run on.

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Threads of a service: bytes move on the transport's own, and requests never need more than this.
const MAX_THREADS: usize = 4;

/// For a command that waits for one connection.
pub fn current_thread() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")
}

/// For a process that answers many clients.
pub fn multi_thread() -> anyhow::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.min(MAX_THREADS))
        .enable_all()
        .build();
    runtime.context("cannot start the threads")
}
