//! The agent in front of a real daemon, as HTTP and WebSocket clients see it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, outside of the test functions that clippy knows"
)]

mod aria2;
mod client;
mod document;
mod gate;
mod limits;
mod link;
mod lock;
mod logins;
mod mcp;
mod metrics;
mod middleman;
mod open;
mod openapi;
mod outage;
mod own;
mod page;
mod plugins;
mod rest;
mod rpc;
mod scripted;
mod session;
mod setup;
mod switches;
mod takeover;
mod torrents;
mod world;
