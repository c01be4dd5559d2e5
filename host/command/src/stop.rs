//! Being told to stop: Ctrl-C, or the signal that service managers and shells send.

use std::io;

/// The requests to stop, as they come.
#[derive(Debug)]
pub struct StopRequests {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopRequests {
    /// Starts listening; from here on the process no longer ends by itself.
    pub fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Resolves with the next request. Cancel-safe.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
impl StopRequests {
    /// Starts listening.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Resolves with the next request. Cancel-safe.
    pub async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
