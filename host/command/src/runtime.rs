//! Tokio runtimes of commands.

use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Worker threads of a service: the transport moves bytes on its own threads, and requests need no more.
const MAX_THREADS: usize = 4;

/// How long threads are waited for at the end. A disk that does not answer blocks them for ever.
const BLOCKED: Duration = Duration::from_secs(1);

/// For a command with one connection.
pub fn current_thread() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")
}

/// For a process with many clients.
pub fn multi_thread() -> anyhow::Result<Runtime> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads.min(MAX_THREADS))
        .enable_all()
        .build();
    runtime.context("cannot start the threads")
}

/// Does the work of a process with many clients. What must be done before the process ends is awaited in `work`.
pub fn run<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = multi_thread()?;
    let ended = runtime.block_on(work);
    runtime.shutdown_timeout(BLOCKED);
    Ok(ended)
}
