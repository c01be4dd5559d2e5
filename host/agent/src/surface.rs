//! The interfaces that clients use. They do not depend on each other; what they share is in [`state`], [`http`] and [`committed`].

pub(crate) mod aria2;
pub(crate) mod committed;
pub(crate) mod http;
pub(crate) mod mcp;
pub(crate) mod rest;
pub(crate) mod routes;
pub(crate) mod rpc;
pub(crate) mod state;
pub(crate) mod takeover;
