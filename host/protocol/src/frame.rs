//! Single frames: the JSON-RPC envelope, methods and errors.

pub mod close;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod method;
pub(crate) mod mismatch;
