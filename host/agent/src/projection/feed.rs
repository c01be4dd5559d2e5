//! A queue of changes for one subscriber within the process. The hub queues a change before the call that caused it is
//! answered, so a subscriber that drains its queue before reading sees its own writes.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

use super::tasks::Change;

/// Enough for ten thousand tasks that are created, started and completed while the subscriber is busy.
const MAX_CHANGES: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// Held briefly. Lock order: the hub's lock first, then this one.
    queue: Mutex<Queue>,
    is_behind: AtomicBool,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    /// The subscriber must read everything again; the value says whether changes were lost.
    stale: Option<IsGap>,
}

type IsGap = bool;

impl Feed {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, changes: &[Change]) {
        if changes.is_empty() {
            return;
        }
        let mut queue = self.queue();
        if changes.iter().any(|change| matches!(change, Change::All)) {
            queue.turn_stale(false);
        } else if queue.changes.len() + changes.len() > MAX_CHANGES {
            queue.turn_stale(true);
        } else if queue.stale.is_none() {
            queue.changes.extend_from_slice(changes);
        }
        self.is_behind.store(true, Ordering::Release);
        drop(queue);
        self.changed.notify_one();
    }

    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// Resolves once the queue is not empty. One subscriber only. Cancel-safe.
    pub(crate) async fn changed(&self) {
        while !self.is_behind() {
            self.changed.notified().await;
        }
    }

    /// Drains the queue; `None` if the subscriber must read everything again.
    pub(super) fn take(&self) -> Option<Vec<Change>> {
        let mut queue = self.queue();
        if queue.stale.is_some() {
            return None;
        }
        self.is_behind.store(false, Ordering::Release);
        Some(std::mem::take(&mut queue.changes))
    }

    /// Marks everything as read, while the caller holds the hub's lock. Returns whether changes were lost.
    pub(super) fn renewed(&self) -> IsGap {
        let mut queue = self.queue();
        self.is_behind.store(false, Ordering::Release);
        std::mem::take(&mut *queue).stale.unwrap_or(false)
    }
}

impl Queue {
    fn turn_stale(&mut self, is_gap: bool) {
        self.stale = Some(is_gap || self.stale == Some(true));
        self.changes = Vec::new();
    }
}
