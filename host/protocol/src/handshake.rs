//! Authentication and version negotiation of a connection.

pub mod capability;
pub mod endpoint;
pub mod proof;
pub(crate) mod session;
