//! The state of a client of `/rpc`, whatever its transport: the ids of its calls, and its position in the events.
//!
//! Nothing here reads or writes a socket. A client sends the text of [`Calls::encode`], gives every event to
//! [`Cursor::take`], and asks for a new snapshot when that says [`Step::Gap`].

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use serde::Serialize;

use crate::{
    MAX_REQUEST_BYTES,
    frame::envelope::{Id, encode_request},
    frame::error::{ErrorCode, RpcError},
    frame::method::Method,
};

/// Numbers the calls of a connection. Calls may be made from several threads.
#[derive(Debug, Default)]
pub struct Calls {
    last_id: AtomicI64,
}

/// Why a call cannot be sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EncodeError {
    /// Its params cannot be encoded.
    #[error("{}", .0.message)]
    Params(RpcError),
    /// It has [`MAX_REQUEST_BYTES`] or more, at which a service closes the connection.
    #[error("a call is smaller than {} MiB", MAX_REQUEST_BYTES >> 20)]
    TooLarge,
}

impl Calls {
    /// The id and the text of a call. The reply to it carries the same id.
    pub fn encode<T: Serialize>(&self, method: Method, params: Option<&T>) -> Result<(Id, String), EncodeError> {
        let id = Id::Number(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        let text = encode_request(&id, method.name(), params).map_err(EncodeError::Params)?;
        if text.len() >= MAX_REQUEST_BYTES {
            return Err(EncodeError::TooLarge);
        }
        Ok((id, text))
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The service refused it.
    #[error(transparent)]
    Refused(#[from] RpcError),
    /// There is no session with the service, for this reason.
    #[error("{0}")]
    NoDaemon(Arc<str>),
    /// The connection ended before the reply.
    #[error("the connection to the daemon broke")]
    Unavailable,
    /// There was no reply in time.
    #[error("the daemon did not answer in time")]
    TimedOut,
    /// The reply is not the record that belongs to the call.
    #[error("the daemon's answer could not be read")]
    Unreadable,
}

impl From<EncodeError> for CallError {
    fn from(error: EncodeError) -> Self {
        let message = error.to_string();
        Self::Refused(match error {
            EncodeError::Params(error) => error,
            EncodeError::TooLarge => RpcError::application(ErrorCode::InvalidArgument, message),
        })
    }
}

impl From<CallError> for RpcError {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Refused(error) => error,
            CallError::NoDaemon(_) | CallError::Unavailable => Self::application(ErrorCode::Unavailable, message),
            CallError::TimedOut => Self::application(ErrorCode::Timeout, message),
            CallError::Unreadable => Self::internal(message),
        }
    }
}

/// How far a client has followed the events of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch, and the sequence of the last event; none before the first snapshot and after a gap.
    reached: Option<(String, u64)>,
}

/// How a client must treat an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The one after the last: it applies.
    Next,
    /// The snapshot contains it already.
    Old,
    /// At least one is missing, or the service has begun another epoch: only a new snapshot helps.
    Gap,
}

impl Cursor {
    /// A cursor after a snapshot.
    pub fn at(epoch: String, sequence: u64) -> Self {
        Self {
            reached: Some((epoch, sequence)),
        }
    }

    /// Takes the event with this sequence. After a gap, every event is one until there is a new snapshot.
    pub fn take(&mut self, epoch: &str, sequence: u64) -> Step {
        match &mut self.reached {
            Some((same, last)) if same == epoch && sequence <= *last => Step::Old,
            Some((same, last)) if same == epoch && sequence == *last + 1 => {
                *last = sequence;
                Step::Next
            }
            _ => {
                self.reached = None;
                Step::Gap
            }
        }
    }

    /// Whether an event up to this sequence is missing. A reply is sent after the events of its call, so one with a
    /// higher sequence indicates a lost event.
    pub fn is_behind(&self, sequence: u64) -> bool {
        self.reached.as_ref().is_none_or(|(_, last)| sequence > *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_follow_the_snapshot_without_a_gap() {
        let mut cursor = Cursor::at("one".into(), 7);
        assert_eq!(
            [6, 7, 8, 9].map(|sequence| cursor.take("one", sequence)),
            [Step::Old, Step::Old, Step::Next, Step::Next]
        );
        assert!(cursor.is_behind(10) && !cursor.is_behind(9));
        assert_eq!(cursor.take("one", 11), Step::Gap);
        assert_eq!(cursor.take("one", 12), Step::Gap);
        let mut cursor = Cursor::at("one".into(), 7);
        assert_eq!(cursor.take("two", 8), Step::Gap);
        assert_eq!(Cursor::default().take("one", 1), Step::Gap);
    }

    #[test]
    fn calls_have_ids_of_their_own_and_an_upper_size() {
        let calls = Calls::default();
        let ids = [1, 2].map(|_| calls.encode::<()>(Method::SystemPing, None).unwrap().0);
        assert_eq!(ids, [Id::Number(1), Id::Number(2)]);
        let large = "x".repeat(MAX_REQUEST_BYTES);
        assert_eq!(
            calls.encode(Method::TaskCreate, Some(&large)),
            Err(EncodeError::TooLarge)
        );
    }
}
