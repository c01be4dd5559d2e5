//! The daemon as its clients meet it: over a real socket, or a byte stream in memory.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

mod calls;
mod events;
mod files;
mod handshake;
mod market;
mod post;
mod torrents;
mod typescript;
mod webhooks;
mod world;
