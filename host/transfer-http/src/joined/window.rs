//! Which segments are fetched now, and the bytes of later ones that cannot be written yet. Pure.
//!
//! The first incomplete segment, the *head*, is written directly to the file. Later ones are fetched meanwhile and kept
//! in memory; without room their sockets are not read. So the head always makes progress, and the file has the order of
//! the list, whatever the order of arrival.

use std::{collections::VecDeque, mem};

/// Segments started or complete after the head, per concurrent fetch. More than one, so that small segments behind a
/// slow head do not leave connections idle.
const AHEAD: usize = 4;

/// The segments from the head on.
#[derive(Debug)]
pub(crate) struct Window {
    head: usize,
    count: usize,
    slots: VecDeque<Slot>,
    /// The most bytes that are buffered.
    memory: usize,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// Received bytes of a segment after the head.
    kept: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Fetching,
    Whole,
    /// It failed after the head and is fetched again as the head: only then the failure counts.
    Parked(Permanence),
}

/// Whether a failure is permanent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permanence {
    /// It is transient.
    No,
    /// It is permanent, and later segments would likely fail alike: none is started.
    Yes,
}

impl Window {
    /// The segments from `head` on to `count`; up to `memory` bytes are buffered.
    pub(crate) fn new(head: usize, count: usize, memory: usize) -> Self {
        Self {
            head,
            count,
            slots: VecDeque::new(),
            memory,
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.head == self.count
    }

    /// Whether `segment` is the head, whose bytes are written directly to the file.
    pub(crate) fn is_head(&self, segment: usize) -> bool {
        self.head == segment
    }

    /// Starts the next segment, if there is one and fewer than `limit` are being fetched.
    pub(crate) fn begin(&mut self, limit: usize) -> Option<usize> {
        if let Some(Slot {
            state: state @ State::Parked(_),
            ..
        }) = self.slots.front_mut()
        {
            *state = State::Fetching;
            return Some(self.head);
        }
        let next = self.head + self.slots.len();
        let fetching = self.slots.iter().filter(|slot| slot.state == State::Fetching).count();
        let is_end = self
            .slots
            .iter()
            .any(|slot| slot.state == State::Parked(Permanence::Yes));
        let has_room = self.slots.is_empty() || (self.slots.len() < AHEAD * limit && self.kept() < self.memory);
        if next == self.count || fetching >= limit || is_end || !has_room {
            return None;
        }
        self.slots.push_back(Slot::default());
        Some(next)
    }

    /// How many bytes of `segment` may be received.
    pub(crate) fn room(&self, segment: usize) -> usize {
        if self.is_head(segment) {
            usize::MAX
        } else {
            self.memory.saturating_sub(self.kept())
        }
    }

    /// Buffers bytes of a segment after the head.
    pub(crate) fn keep(&mut self, segment: usize, bytes: &[u8]) {
        self.slot(segment).kept.extend_from_slice(bytes);
    }

    /// Discards the bytes of `segment`, which is fetched again.
    pub(crate) fn restart(&mut self, segment: usize) {
        self.slot(segment).kept = Vec::new();
    }

    /// Records a failure of `segment`, which is after the head.
    pub(crate) fn park(&mut self, segment: usize, lasting: Permanence) {
        *self.slot(segment) = Slot {
            state: State::Parked(lasting),
            kept: Vec::new(),
        };
    }

    /// Marks `segment` complete.
    pub(crate) fn whole(&mut self, segment: usize) {
        self.slot(segment).state = State::Whole;
    }

    /// Advances the head if it is complete. Returns its index, and the buffered bytes of the new head.
    pub(crate) fn advance(&mut self) -> Option<(usize, Vec<u8>)> {
        self.slots.pop_front_if(|slot| slot.state == State::Whole)?;
        self.head += 1;
        let kept = self.slots.front_mut().map(|slot| mem::take(&mut slot.kept));
        Some((self.head - 1, kept.unwrap_or_default()))
    }

    fn kept(&self) -> usize {
        self.slots.iter().map(|slot| slot.kept.len()).sum()
    }

    fn slot(&mut self, segment: usize) -> &mut Slot {
        &mut self.slots[segment - self.head]
    }
}

#[cfg(test)]
mod tests;
