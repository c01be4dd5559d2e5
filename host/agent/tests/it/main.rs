//! The agent before a real daemon, from outside: what HTTP and WebSocket clients get.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of the test functions that clippy knows"
)]

mod gate;
mod openapi;
mod rest;
mod rpc;
mod setup;
mod world;
