//! Methods, parameters, GIDs, and faults.

pub(crate) mod fault;
pub(crate) mod gid;
pub(crate) mod method;
pub(crate) mod params;
