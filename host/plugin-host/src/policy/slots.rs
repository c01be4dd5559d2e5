//! Limits concurrent calls. A call that gets no slot in time fails instead of waiting silently.
//!
//! Every plugin has a few reserved slots, and all share the rest. So one plugin can use many slots while others are
//! idle, but can never block the first calls of another.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use market::Identity;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::policy::{hooks::HOOK_CALLS, keyed::Keyed};

/// Concurrent calls of one plugin if there is room: a list of links requests many at once.
pub const PLUGIN_CALLS: usize = 50;

/// Slots reserved for each plugin.
const OWN_CALLS: usize = 8;

/// Plugins whose reserved slots can all be in use at once.
const BUSY_PLUGINS: usize = 4;

/// Calls that work on finished files, beside all other calls: they take minutes, and a disk or a processor.
const POST_CALLS: usize = 2;

/// Concurrent calls in total, without those of hooks and those that work on finished files.
const ALL_SLOTS: usize = OWN_CALLS * BUSY_PLUGINS + (PLUGIN_CALLS - OWN_CALLS);

/// Concurrent calls in total. A runtime has room for as many, plus one trial instance while loading. Mostly address
/// space: 320 GiB of the 512 that the smallest machines have.
pub const MAX_CALLS: usize = ALL_SLOTS + HOOK_CALLS + POST_CALLS;

/// Calls that may wait for a slot.
const MAX_WAITING: usize = 64;

/// How long a call waits for its slot.
const WAIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The slots of all plugins.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Bounds the reserved slots in use.
    own: Arc<Semaphore>,
    /// The slots that all plugins share.
    shared: Arc<Semaphore>,
    /// The reserved slots of plugins with calls.
    plugins: Keyed<Semaphore>,
    /// Those of work on finished files.
    post: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// The slot of a call.
#[derive(Debug)]
pub(crate) struct Slot {
    _permits: Permits,
    /// Keeps the plugin's semaphore while it has calls.
    _plugin: Arc<Semaphore>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "held and given back")]
enum Permits {
    Own(OwnedSemaphorePermit, OwnedSemaphorePermit),
    Shared(OwnedSemaphorePermit),
}

/// No slot was free in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Slots {
    pub(crate) fn new() -> Self {
        Self {
            own: Arc::new(Semaphore::new(OWN_CALLS * BUSY_PLUGINS)),
            shared: Arc::new(Semaphore::new(PLUGIN_CALLS - OWN_CALLS)),
            plugins: Keyed::default(),
            post: Arc::new(Semaphore::new(POST_CALLS)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// A slot for a call of `plugin`: one of its own, or a shared one, whichever is free first. Waiting calls are
    /// served in order of arrival.
    pub(crate) async fn take(&self, plugin: &Identity) -> Result<Slot, Full> {
        let _waiting = self.wait()?;
        let plugin = self.plugins.of(plugin, || Semaphore::new(OWN_CALLS));
        // The plugin's slot first: calls that wait for a busy plugin must not hold a slot that others could use.
        let own = async {
            let of_plugin = Arc::clone(&plugin).acquire_owned().await.map_err(|_| Full)?;
            let of_all = Arc::clone(&self.own).acquire_owned().await.map_err(|_| Full)?;
            Ok(Permits::Own(of_plugin, of_all))
        };
        let shared = async {
            let shared = Arc::clone(&self.shared).acquire_owned().await.map_err(|_| Full)?;
            Ok(Permits::Shared(shared))
        };
        let permits = tokio::select! {
            biased;
            permits = own => permits?,
            permits = shared => permits?,
            () = tokio::time::sleep(WAIT_TIMEOUT) => return Err(Full),
        };
        Ok(Slot {
            _permits: permits,
            _plugin: plugin,
        })
    }

    /// A place for work on finished files. It waits as long as that takes: who asks has a limit of its own.
    pub(crate) async fn take_post(&self) -> OwnedSemaphorePermit {
        let place = Arc::clone(&self.post).acquire_owned().await;
        place.expect("it is never closed")
    }

    /// Whether no call of `plugin` has a slot.
    #[cfg(test)]
    pub(crate) fn is_idle(&self, plugin: &Identity) -> bool {
        let own = self.plugins.of(plugin, || Semaphore::new(OWN_CALLS));
        own.available_permits() == OWN_CALLS
    }

    /// Registers a waiting call.
    pub(crate) fn wait(&self) -> Result<Waiting<'_>, Full> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) < MAX_WAITING {
            Ok(waiting)
        } else {
            Err(Full)
        }
    }
}

/// A waiting call; unregistered on drop.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{future::join_all, poll};

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
        let mut busy = join_all((0..PLUGIN_CALLS).map(|_| take(&slots, 0))).await;
        assert!(busy.iter().all(Result::is_ok));
        let started = tokio::time::Instant::now();
        assert!(take(&slots, 0).await.is_err(), "one more");
        assert_eq!(started.elapsed(), WAIT_TIMEOUT);
        let others = join_all((0..OWN_CALLS * (BUSY_PLUGINS - 1)).map(|n| take(&slots, 1 + n / OWN_CALLS))).await;
        assert!(others.iter().all(Result::is_ok));
        assert_eq!(started.elapsed(), WAIT_TIMEOUT, "at once");
        busy.pop();
        assert!(take(&slots, 0).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn work_on_files_waits_for_its_turn_and_takes_no_slot_of_others() {
        let slots = Slots::new();
        let working = [slots.take_post().await, slots.take_post().await];
        let mut third = Box::pin(slots.take_post());
        assert!(poll!(&mut third).is_pending());
        assert!(take(&slots, 0).await.is_ok());
        tokio::time::sleep(WAIT_TIMEOUT * 100).await;
        assert!(poll!(&mut third).is_pending());
        drop(working);
        assert!(poll!(&mut third).is_ready());
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_longer_is_served_first_whichever_slot_is_given_back() {
        let slots = Slots::new();
        for given_back in [0, PLUGIN_CALLS - 1] {
            let mut busy = join_all((0..PLUGIN_CALLS).map(|_| take(&slots, 0))).await;
            let mut first = Box::pin(take(&slots, 0));
            let mut second = Box::pin(take(&slots, 0));
            assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
            drop(busy.swap_remove(given_back));
            let _served = first.await.unwrap();
            assert!(poll!(&mut second).is_pending());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_in_all_and_calls_that_wait_are_bounded() {
        let slots = Slots::new();
        let greedy = join_all((0..PLUGIN_CALLS).map(|_| take(&slots, 0))).await;
        let others = join_all((0..ALL_SLOTS - PLUGIN_CALLS).map(|n| take(&slots, 1 + n / OWN_CALLS))).await;
        assert!(greedy.iter().chain(&others).all(Result::is_ok));
        let started = tokio::time::Instant::now();
        let late = join_all((0..MAX_WAITING).map(|_| take(&slots, 99)));
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
