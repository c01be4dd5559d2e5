//! The types of aria2's RPC that do not depend on the encoding: methods, parameters, GIDs and faults (errors).

pub(crate) mod fault;
pub(crate) mod gid;
pub(crate) mod method;
pub(crate) mod params;
