//! The device link over HTTP and `/rpc`: what its owner does, and what other devices call.

mod answer;
mod call;
pub(crate) mod device;
pub(crate) mod owner;

pub(crate) use call::call;
