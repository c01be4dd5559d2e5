//! How a call went.

use bytes::Bytes;
use serde::Serialize;

use crate::vocabulary::fault::Fault;

/// The result as JSON, or why there is none.
pub(crate) type Outcome = Result<Bytes, Fault>;

/// The result of a call that is the only one of its message.
pub(crate) enum Answered<List> {
    /// It is where it was to be written.
    Written,
    Whole(Bytes),
    /// A list that is too long to be held as text.
    List(List),
}

/// A result.
pub(crate) fn json(result: &impl Serialize) -> Outcome {
    let text = serde_json::to_vec(result).map_err(|error| Fault::new(error.to_string()))?;
    Ok(text.into())
}

/// The result of what has none.
pub(crate) fn ok() -> Bytes {
    Bytes::from_static(b"\"OK\"")
}
