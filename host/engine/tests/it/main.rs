//! The running engine: its rows on disk and a scripted transport at its edge.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod durability;
mod logins;
mod runs;
mod scale;
mod world;
