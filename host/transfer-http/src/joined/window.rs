//! Which segments are fetched now, and what is kept of them until their turn to be written comes. Pure.
//!
//! The first segment that is not whole, the *head*, goes straight to the file. Those behind it are fetched meanwhile and
//! kept in memory, as far as there is room: what has none waits, and with it the server. So the head always gets on,
//! and the order of the file is the order of the list, whatever order the bytes come in.

use std::{collections::VecDeque, mem};

/// Segments begun or whole ahead of the head, for each that may be fetched at once. More than one, so that small
/// segments behind a slow head do not leave connections idle.
const AHEAD: usize = 4;

/// The segments from the head on.
#[derive(Debug)]
pub(crate) struct Window {
    head: usize,
    count: usize,
    slots: VecDeque<Slot>,
    /// The most bytes that are kept.
    memory: usize,
}

#[derive(Debug, Default)]
struct Slot {
    state: State,
    /// What has come of a segment behind the head.
    kept: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Fetching,
    Whole,
    /// It failed behind the head and is fetched again when it is the head: only then the failure counts.
    Parked(Lasting),
}

/// Whether a failure is one that trying again does not mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// It may pass.
    No,
    /// It stays, and those behind would likely fail the same way: none is begun.
    Yes,
}

impl Window {
    /// The segments from `head` on to `count`; up to `memory` bytes are kept.
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

    /// Whether `segment` is the head, whose bytes go straight to the file.
    pub(crate) fn is_head(&self, segment: usize) -> bool {
        self.head == segment
    }

    /// Begins the next segment, if there is one to fetch while no more than `limit` are fetched at once.
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
        let is_end = self.slots.iter().any(|slot| slot.state == State::Parked(Lasting::Yes));
        let has_room = self.slots.is_empty() || (self.slots.len() < AHEAD * limit && self.kept() < self.memory);
        if next == self.count || fetching >= limit || is_end || !has_room {
            return None;
        }
        self.slots.push_back(Slot::default());
        Some(next)
    }

    /// How many bytes of `segment` may come.
    pub(crate) fn room(&self, segment: usize) -> usize {
        if self.is_head(segment) {
            usize::MAX
        } else {
            self.memory.saturating_sub(self.kept())
        }
    }

    /// Keeps bytes of a segment behind the head.
    pub(crate) fn keep(&mut self, segment: usize, bytes: &[u8]) {
        self.slot(segment).kept.extend_from_slice(bytes);
    }

    /// Forgets what came of `segment`, which is fetched again.
    pub(crate) fn restart(&mut self, segment: usize) {
        self.slot(segment).kept = Vec::new();
    }

    /// `segment`, behind the head, failed.
    pub(crate) fn park(&mut self, segment: usize, lasting: Lasting) {
        *self.slot(segment) = Slot {
            state: State::Parked(lasting),
            kept: Vec::new(),
        };
    }

    /// All of `segment` has come.
    pub(crate) fn whole(&mut self, segment: usize) {
        self.slot(segment).state = State::Whole;
    }

    /// Goes on behind the head if that is whole. Gives its number, and what has come of the new head.
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
