//! The newest events, kept once for all connections and bounded in number and bytes. A connection reads with its own
//! cursor and gets a [`Gap`] if what follows it is gone.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::Task;
use tokio::{sync::watch, time::Instant};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// The agent lags by milliseconds; this holds the events of ten thousand tasks created one by one.
const MAX_EVENTS: usize = 16 * 1024;

/// About ten thousand changed tasks.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// Events are forgotten when there was no new one for this long: every reader has them by then, or is to start over. What
/// the start of five hundred torrents says is 2 MB.
const QUIET: Duration = Duration::from_secs(10);

/// Cost of a task of a [`Streamed`] event: the engine holds the task itself anyway while it is current.
const STREAMED_TASK_BYTES: usize = 64;

/// A frame that is too large to keep as text. It is `head`, the tasks as items of an array, `tail`; the tasks are
/// encoded while it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Streamed {
    pub(crate) head: String,
    pub(crate) tasks: Arc<[Arc<Task>]>,
    pub(crate) tail: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Notification {
    Text(Utf8Bytes),
    Streamed(Arc<Streamed>),
}

impl Notification {
    fn cost(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Streamed(streamed) => streamed.tasks.len() * STREAMED_TASK_BYTES,
        }
    }
}

/// The events after a reader's cursor are gone; it must start over from a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<(u64, Notification)>,
    bytes: usize,
    newest: u64,
    /// When the newest was appended.
    at: Option<Instant>,
}

/// One writer, many readers.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Locked only to copy a few pointers: cheaper than a channel that copies to every reader.
    held: Mutex<Held>,
    newest: watch::Sender<u64>,
}

impl Ring {
    pub(crate) fn new() -> Self {
        Self {
            held: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }

    /// Appends the event that `make` builds from its sequence number. The newest event is kept whatever its size.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> Notification) {
        let sequence = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.newest += 1;
            held.at = Some(Instant::now());
            let sequence = held.newest;
            let notification = make(sequence);
            held.bytes += notification.cost();
            held.events.push_back((sequence, notification));
            while held.events.len() > MAX_EVENTS || (held.bytes > MAX_BYTES && held.events.len() > 1) {
                let Some((_, gone)) = held.events.pop_front() else {
                    break;
                };
                held.bytes -= gone.cost();
            }
            sequence
        };
        self.newest.send_replace(sequence);
    }

    /// Gives every reader a gap, because an event could not be encoded.
    pub(crate) fn force_gap(&self) {
        let sequence = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.events.clear();
            held.bytes = 0;
            held.newest += 1;
            held.newest
        };
        self.newest.send_replace(sequence);
    }

    /// When the events are forgotten if no further one comes; `None` if there are none.
    pub(crate) fn forget_at(&self) -> Option<Instant> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let at = held.at.filter(|_| !held.events.is_empty());
        at.map(|at| at + QUIET)
    }

    /// Forgets all events if none came for a while. A reader that has not read them gets a gap.
    pub(crate) fn forget_old(&self) {
        if self.forget_at().is_some_and(|at| at <= Instant::now()) {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.events = VecDeque::new();
            held.bytes = 0;
        }
    }

    pub(crate) fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Subscribes to the newest sequence number.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Up to `most` events after the cursor, in order.
    pub(crate) fn after(&self, cursor: u64, most: usize) -> Result<Vec<(u64, Notification)>, Gap> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if cursor >= held.newest {
            return Ok(Vec::new());
        }
        let first = held.events.front().map_or(held.newest + 1, |(sequence, _)| *sequence);
        if cursor + 1 < first {
            return Err(Gap);
        }
        let skip = usize::try_from(cursor + 1 - first).unwrap_or(usize::MAX);
        Ok(held.events.iter().skip(skip).take(most).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Notification {
        Notification::Text("x".repeat(bytes).into())
    }

    fn sequences(ring: &Ring, cursor: u64) -> Result<Vec<u64>, Gap> {
        ring.after(cursor, 3)
            .map(|events| events.into_iter().map(|(sequence, _)| sequence).collect())
    }

    #[test]
    fn a_reader_gets_what_comes_after_its_cursor() {
        let ring = Ring::new();
        assert_eq!(sequences(&ring, 0), Ok(vec![]));
        (0..5).for_each(|_| ring.push(|_| text(1)));
        assert_eq!(sequences(&ring, 0), Ok(vec![1, 2, 3]));
        assert_eq!(sequences(&ring, 3), Ok(vec![4, 5]));
        assert_eq!(sequences(&ring, 5), Ok(vec![]));
        assert_eq!(ring.newest(), 5);
    }

    #[test]
    fn a_reader_that_is_too_far_behind_learns_of_its_gap() {
        let ring = Ring::new();
        (0..=MAX_EVENTS).for_each(|_| ring.push(|_| text(1)));
        assert_eq!(sequences(&ring, 0), Err(Gap));
        assert_eq!(sequences(&ring, 1), Ok(vec![2, 3, 4]));
    }

    #[test]
    fn the_bytes_are_bounded_and_the_newest_event_is_kept_whatever_its_size() {
        let ring = Ring::new();
        ring.push(|_| text(10));
        ring.push(|_| text(MAX_BYTES + 1));
        assert_eq!(sequences(&ring, 0), Err(Gap));
        assert_eq!(sequences(&ring, 1), Ok(vec![2]));
        ring.push(|_| text(1));
        assert_eq!(sequences(&ring, 1), Err(Gap));
        assert_eq!(sequences(&ring, 2), Ok(vec![3]));
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_forgotten_when_no_further_one_comes() {
        let ring = Ring::new();
        assert_eq!(ring.forget_at(), None);
        ring.push(|_| text(1));
        tokio::time::advance(QUIET / 2).await;
        ring.push(|_| text(1));
        tokio::time::advance(QUIET / 2).await;
        ring.forget_old();
        assert_eq!(sequences(&ring, 0), Ok(vec![1, 2]), "the newest is not old");
        tokio::time::sleep_until(ring.forget_at().unwrap()).await;
        ring.forget_old();
        assert_eq!(ring.forget_at(), None);
        assert_eq!(sequences(&ring, 1), Err(Gap));
        assert_eq!(sequences(&ring, 2), Ok(vec![]), "who has read them misses nothing");
        ring.push(|_| text(1));
        assert_eq!(sequences(&ring, 2), Ok(vec![3]));
    }

    #[test]
    fn a_break_is_a_gap_for_everyone() {
        let ring = Ring::new();
        ring.push(|_| text(1));
        ring.force_gap();
        assert_eq!(sequences(&ring, 1), Err(Gap));
        assert_eq!(sequences(&ring, 2), Ok(vec![]));
        ring.push(|_| text(1));
        assert_eq!(sequences(&ring, 2), Ok(vec![3]));
    }
}
