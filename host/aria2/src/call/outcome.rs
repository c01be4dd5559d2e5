//! Results of calls.

use bytes::Bytes;
use serde::Serialize;

use crate::vocabulary::fault::Fault;

/// The result as JSON, or the fault.
pub(crate) type Outcome = Result<Bytes, Fault>;

/// The result of the only call of a message.
pub(crate) enum Answered<List> {
    /// The result was written to the output buffer.
    Written,
    Text(Bytes),
    /// A list that is streamed because its text is too long.
    List(List),
}

pub(crate) fn json(result: &impl Serialize) -> Outcome {
    let text = serde_json::to_vec(result).map_err(|error| Fault::new(error.to_string()))?;
    Ok(text.into())
}

/// The result of methods without one.
pub(crate) fn ok() -> Bytes {
    Bytes::from_static(b"\"OK\"")
}
