//! How the ends of a connection recognise each other and agree on a version.

pub mod capability;
pub mod endpoint;
pub mod proof;
pub(crate) mod session;
