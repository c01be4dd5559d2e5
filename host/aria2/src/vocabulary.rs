//! What calls are made of: methods, parameters, GIDs, and what is said of a call that fails.

pub(crate) mod fault;
pub(crate) mod gid;
pub(crate) mod method;
pub(crate) mod params;
