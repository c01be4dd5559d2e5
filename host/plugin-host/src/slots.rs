//! How many calls run at once. Whoever gets no slot in time is told so; nobody waits in silence.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{identity::Identity, keyed::Keyed, runtime::MAX_CALLS};

/// Calls of one plugin, so that a slow site leaves room for the others.
const PER_PLUGIN: usize = 8;

/// Calls that may wait.
const WAITING: usize = 64;

/// How long a call waits for its slot.
const WAIT: Duration = Duration::from_secs(3);

/// The slots of all plugins.
#[derive(Debug)]
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    /// Of plugins that have calls now.
    plugins: Keyed<Semaphore>,
    waiting: AtomicUsize,
}

/// A call's place.
#[derive(Debug)]
pub(crate) struct Slot {
    _plugin: OwnedSemaphorePermit,
    _all: OwnedSemaphorePermit,
    /// Keeps the plugin's semaphore while it has calls.
    _semaphore: Arc<Semaphore>,
}

/// There was no slot in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Slots {
    pub(crate) fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_CALLS as usize)),
            plugins: Keyed::default(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// A slot for a call of `plugin`.
    pub(crate) async fn take(&self, plugin: &Identity) -> Result<Slot, Full> {
        let _waiting = self.wait()?;
        let semaphore = self.plugins.of(plugin, || Semaphore::new(PER_PLUGIN));
        // The plugin's own slot first: calls that wait for a busy plugin do not hold a slot that others could use.
        let both = async {
            let of_plugin = Arc::clone(&semaphore).acquire_owned().await.map_err(|_| Full)?;
            let of_all = Arc::clone(&self.all).acquire_owned().await.map_err(|_| Full)?;
            Ok((of_plugin, of_all))
        };
        let (plugin, all) = tokio::time::timeout(WAIT, both).await.map_err(|_| Full)??;
        Ok(Slot {
            _plugin: plugin,
            _all: all,
            _semaphore: semaphore,
        })
    }

    /// Whether no call of `plugin` has a slot.
    #[cfg(test)]
    pub(crate) fn is_idle(&self, plugin: &Identity) -> bool {
        let semaphore = self.plugins.of(plugin, || Semaphore::new(PER_PLUGIN));
        semaphore.available_permits() == PER_PLUGIN
    }

    /// A place among those that wait.
    pub(crate) fn wait(&self) -> Result<Waiting<'_>, Full> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < WAITING {
            Ok(waiting)
        } else {
            Err(Full)
        }
    }
}

/// Counted while it lives.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    fn plugin(n: usize) -> Identity {
        format!("p{n}@test").parse().unwrap()
    }

    async fn take(slots: &Slots, n: usize) -> Result<Slot, Full> {
        slots.take(&plugin(n)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_plugin_leaves_room_for_the_others() {
        let slots = Slots::new();
        let busy = join_all((0..PER_PLUGIN).map(|_| take(&slots, 0))).await;
        assert!(busy.iter().all(Result::is_ok));
        let started = tokio::time::Instant::now();
        assert!(take(&slots, 0).await.is_err());
        assert_eq!(started.elapsed(), WAIT);
        assert!(take(&slots, 1).await.is_ok());
        drop(busy);
        assert!(take(&slots, 0).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_all_and_calls_that_wait_are_bounded() {
        let slots = Slots::new();
        let in_all = MAX_CALLS as usize;
        let plugins = in_all / PER_PLUGIN;
        let running = join_all((0..in_all).map(|n| take(&slots, n % plugins))).await;
        assert!(running.iter().all(Result::is_ok));
        let started = tokio::time::Instant::now();
        let late = join_all((0..WAITING).map(|_| take(&slots, 99)));
        let one_more = async {
            tokio::task::yield_now().await;
            let refused = take(&slots, 98).await;
            (refused.is_err(), started.elapsed())
        };
        let (late, one_more) = tokio::join!(late, one_more);
        assert!(late.iter().all(Result::is_err));
        assert_eq!(one_more, (true, Duration::ZERO), "refused at once");
        assert_eq!(slots.waiting.load(Ordering::Relaxed), 0);
    }
}
