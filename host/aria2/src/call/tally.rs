//! How much the results of one message have, and room for them.

use super::outcome::Outcome;
use crate::{service::Room, vocabulary::fault::Fault};

/// What an answer has beside its result, in bytes.
const RESULT_BYTES: usize = 64;

/// What the results of a message have, and the room for it once it is much.
pub(crate) struct Tally<'r> {
    /// None has no bounds, for callers within the process.
    room: Option<&'r mut dyn Room>,
    /// What they may have without room, and so as long as the sender has not authenticated.
    free: usize,
    most: usize,
    /// The same once a call of the message has shown the key.
    most_if_known: usize,
    bytes: usize,
    has_room: bool,
    pub(crate) is_over: bool,
}

impl<'r> Tally<'r> {
    pub(crate) fn unbounded() -> Self {
        Self {
            room: None,
            free: usize::MAX,
            most: usize::MAX,
            most_if_known: usize::MAX,
            bytes: 0,
            has_room: false,
            is_over: false,
        }
    }

    /// Of a message whose results grow by `factor` when they are written.
    pub(crate) fn of(room: &'r mut dyn Room, factor: usize, is_known: bool) -> Self {
        let (free, most) = room.bounds();
        let most = most / factor;
        Self {
            room: Some(room),
            free,
            most: if is_known { most } else { free },
            most_if_known: most,
            ..Self::unbounded()
        }
    }

    /// A call of the message may be made: its sender is known.
    pub(crate) fn know_sender(&mut self) {
        self.most = self.most_if_known;
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.room.is_some()
    }

    /// Counts a result, or replaces it if it is too much.
    pub(crate) async fn count(&mut self, outcome: Outcome) -> Outcome {
        let length = match &outcome {
            Ok(result) => result.len(),
            Err(fault) => fault.message.len(),
        };
        let Some(room) = &mut self.room else { return outcome };
        // What changes something has a short result, which is written even if it is the last one.
        if length > self.free && self.bytes + length > self.most {
            self.is_over = true;
            return Err(self.too_long());
        }
        self.bytes += length + RESULT_BYTES;
        self.is_over |= self.bytes > self.most;
        if self.bytes > self.free && !self.has_room {
            self.has_room = room.reserve().await;
            self.is_over |= !self.has_room;
        }
        outcome
    }

    pub(crate) fn too_long(&self) -> Fault {
        Fault::new(format!(
            "The results of one message have at most {} KiB: call this in a message of its own, or for fewer keys or downloads.",
            self.most >> 10
        ))
    }
}
