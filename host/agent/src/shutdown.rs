//! The steps in which an agent ends, as tokens, and the owner of everything that it spawned.

use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Clones share the same tokens and tasks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shutdown {
    /// Owns everything that was spawned, upgraded connections among it.
    pub(crate) tracker: TaskTracker,
    /// Cancelled to stop accepting: no new connections, and clients get a close frame.
    pub(crate) drain: CancellationToken,
    /// Cancelled to end the session with the daemon, after the last call that needs it.
    pub(crate) release_daemon: CancellationToken,
    /// Cancelled to drop connections that did not drain in time.
    pub(crate) force_close: CancellationToken,
}

impl Shutdown {
    /// Spawns work that has nothing to finish when connections drain.
    pub(crate) fn spawn_until_drain(&self, work: impl Future<Output = ()> + Send + 'static) {
        let drain = self.drain.clone();
        self.tracker.spawn(drain.run_until_cancelled_owned(work));
    }

    /// Spawns the work of a connection, which ends by itself.
    pub(crate) fn spawn_connection(&self, work: impl Future<Output = ()> + Send + 'static) {
        let force_close = self.force_close.clone();
        self.tracker.spawn(force_close.run_until_cancelled_owned(work));
    }
}
