//! Changes for one subscriber within the process, kept until it takes them. The hub queues a change before the call that made
//! it is answered, so that a subscriber which looks first reads its own writes.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::Notify;

use super::tasks::Change;

/// Changes that wait for a subscriber: ten thousand tasks that are made, start and complete while it is busy fit.
const MAX_CHANGES: usize = 64 * 1024;

/// What a subscriber has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// Looked at for a moment. Locked after the hub, never before it.
    queue: Mutex<Queue>,
    is_behind: AtomicBool,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    /// Everything has to be read anew, and whether changes were lost on the way.
    stale: Option<IsGap>,
}

type IsGap = bool;

impl Feed {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings changes in.
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

    /// Whether there is something to take.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::Acquire)
    }

    /// Resolves once there is something to take. For one subscriber. Cancel-safe.
    pub(crate) async fn changed(&self) {
        while !self.is_behind() {
            self.changed.notified().await;
        }
    }

    /// What there is, unless everything has to be read anew.
    pub(super) fn take(&self) -> Option<Vec<Change>> {
        let mut queue = self.queue();
        if queue.stale.is_some() {
            return None;
        }
        self.is_behind.store(false, Ordering::Release);
        Some(std::mem::take(&mut queue.changes))
    }

    /// Everything is being read, as of now: while the hub does not change. Whether changes before were lost.
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
