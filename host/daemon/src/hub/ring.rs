//! The newest events, kept once for all connections, until a bound of number and size.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use engine::Task;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// Events kept for readers that are behind. A reader of an agent is behind by milliseconds; ten thousand tasks made one
/// by one fit.
const MAX_EVENTS: usize = 16 * 1024;

/// Bytes kept for readers that are behind; about ten thousand changed tasks.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// What a task of a [`Streamed`] event counts for: it is held anyway while it is current.
const STREAMED_TASK_BYTES: usize = 64;

/// A frame that is too large to be held as text: its tasks are encoded while it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Streamed {
    /// The frame before the tasks.
    pub(crate) head: String,
    /// The tasks, an array's items.
    pub(crate) tasks: Arc<[Arc<Task>]>,
    /// The frame after the tasks.
    pub(crate) tail: String,
}

/// An event ready to be sent, or nearly so.
#[derive(Debug, Clone)]
pub(crate) enum Notification {
    /// The frame.
    Text(Utf8Bytes),
    /// The frame, still to be encoded.
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

/// A reader is so far behind that what it misses is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gap;

#[derive(Debug, Default)]
struct Held {
    events: VecDeque<(u64, Notification)>,
    bytes: usize,
    newest: u64,
}

/// The events. One writes, many read, each with a cursor of its own.
#[derive(Debug)]
pub(crate) struct Ring {
    /// Held for a few copies of pointers only; a lock is cheaper here than a channel that copies to every reader.
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

    /// Adds the event that `make` makes of its sequence number. The newest is kept whatever its size.
    pub(crate) fn push(&self, make: impl FnOnce(u64) -> Notification) {
        let sequence = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.newest += 1;
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

    /// Drops all events and skips a number, because events of the engine were lost: every reader finds a gap, so its
    /// connection closes and its client takes a new snapshot.
    pub(crate) fn break_off(&self) {
        let sequence = {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.events.clear();
            held.bytes = 0;
            held.newest += 1;
            held.newest
        };
        self.newest.send_replace(sequence);
    }

    /// The newest sequence number.
    pub(crate) fn newest(&self) -> u64 {
        *self.newest.borrow()
    }

    /// Follows the newest sequence number.
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

    #[test]
    fn a_break_is_a_gap_for_everyone() {
        let ring = Ring::new();
        ring.push(|_| text(1));
        ring.break_off();
        assert_eq!(sequences(&ring, 1), Err(Gap));
        assert_eq!(sequences(&ring, 2), Ok(vec![]));
        ring.push(|_| text(1));
        assert_eq!(sequences(&ring, 2), Ok(vec![3]));
    }
}
