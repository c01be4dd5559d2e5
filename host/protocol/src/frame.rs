//! One frame each way: the JSON-RPC envelope, what can be called, and why a call is refused.

pub mod close;
pub(crate) mod envelope;
pub(crate) mod error;
pub(crate) mod method;
pub(crate) mod misfit;
