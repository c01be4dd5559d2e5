//! Stop requests: Ctrl-C, or SIGTERM from service managers and shells.

use std::io;

/// The stream of stop requests.
#[derive(Debug)]
pub struct StopRequests {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl StopRequests {
    /// Installs the handlers; from here on these signals no longer end the process.
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
    /// Installs the handlers.
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
