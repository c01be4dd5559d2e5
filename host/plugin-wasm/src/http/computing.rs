//! The computing time that the host spends on the requests of a call, for its plugin.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Counts the time at once, so that it counts also if the request is given up. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Computing(Arc<Mutex<Spent>>);

#[derive(Debug, Default)]
struct Spent {
    /// Not charged to the plugin yet.
    spent: Duration,
    /// How much of it the plugin has left, if it has not endless time.
    left: Option<Duration>,
}

impl Computing {
    /// Does some work, which must not wait.
    pub(crate) fn work<T>(&self, work: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let done = work();
        self.spent().spent += since.elapsed();
        done
    }

    /// Allows so much time from here on.
    pub(crate) fn allow(&self, left: Duration) {
        self.spent().left = Some(left);
    }

    /// Whether more time was spent than is allowed.
    pub(crate) fn is_used_up(&self) -> bool {
        let spent = self.spent();
        spent.left.is_some_and(|left| spent.spent > left)
    }

    /// Takes the time to charge to the plugin.
    pub(crate) fn take(&self) -> Duration {
        std::mem::take(&mut self.spent().spent)
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
