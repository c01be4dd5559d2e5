//! The steps of an agent's shutdown, as cancellation tokens, and the tracker of its spawned tasks.

use protocol::close;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Tracks every spawned task, including upgraded connections.
    pub(crate) tracker: TaskTracker,
    /// Cancelled before `drain` if the service begins again, so that its clients reconnect.
    pub(crate) restart: CancellationToken,
    /// Cancelled to stop accepting: no new connections, and clients get a close frame.
    pub(crate) drain: CancellationToken,
    /// Cancelled to end the session with the daemon, after the last call that needs it.
    pub(crate) release_daemon: CancellationToken,
    /// Cancelled to drop connections that did not drain in time.
    pub(crate) force_close: CancellationToken,
}

impl Shutdown {
    /// The close reason of connections that are open at `drain`.
    pub(crate) fn close_reason(&self) -> &'static str {
        if self.restart.is_cancelled() {
            close::SERVICE_RESTART_REASON
        } else {
            close::SERVICE_QUIT_REASON
        }
    }

    /// Spawns work that may be dropped at `drain`.
    pub(crate) fn spawn_until_drain(&self, work: impl Future<Output = ()> + Send + 'static) {
        let drain = self.drain.clone();
        self.tracker.spawn(drain.run_until_cancelled_owned(work));
    }

    /// Spawns a connection, which observes the tokens itself.
    pub(crate) fn spawn_connection(&self, work: impl Future<Output = ()> + Send + 'static) {
        let force_close = self.force_close.clone();
        self.tracker.spawn(force_close.run_until_cancelled_owned(work));
    }
}
