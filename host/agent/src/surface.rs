//! The interfaces that clients use. They do not depend on each other; what they share is in [`state`], [`socket`] and
//! [`committed`], and what answers of all have in common is in the crate `rest`, which has the management API.

pub(crate) mod aria2;
pub(crate) mod committed;
pub(crate) mod link;
pub(crate) mod mcp;
pub(crate) mod metrics;
pub(crate) mod open;
pub(crate) mod rest;
pub(crate) mod routes;
pub(crate) mod rpc;
pub(crate) mod session;
pub(crate) mod socket;
pub(crate) mod state;
pub(crate) mod takeover;
