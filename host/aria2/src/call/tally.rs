//! Limits the size of the results of one message, and reserves memory for large ones.

use super::outcome::Outcome;
use crate::{service::Room, vocabulary::fault::Fault};

/// Envelope of an answer, in bytes.
const RESULT_BYTES: usize = 64;

/// The size of a message's results so far, and the reservation for large ones.
pub(crate) struct Tally<'r> {
    /// None means unlimited, for callers within the process.
    room: Option<&'r mut dyn Room>,
    /// The limit without a reservation, and for unauthenticated senders.
    free: usize,
    most: usize,
    /// The limit once a call of the message carried a valid token.
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

    /// `factor` is the growth of results in the output format.
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

    /// A call carried a valid token: raises the limit.
    pub(crate) fn know_sender(&mut self) {
        self.most = self.most_if_known;
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.room.is_some()
    }

    /// Counts a result, or replaces it by a fault if it exceeds the limit.
    pub(crate) async fn count(&mut self, outcome: Outcome) -> Outcome {
        let length = match &outcome {
            Ok(result) => result.len(),
            Err(fault) => fault.message.len(),
        };
        let Some(room) = &mut self.room else { return outcome };
        // Results of methods that change something are short, and are always written: the client must learn of the
        // effect.
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
