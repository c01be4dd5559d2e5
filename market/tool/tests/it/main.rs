//! A source from its first key to its last attacker: made with the tool's commands, served over HTTP, and read with the
//! client's code.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attack;
mod day;
mod liar;
mod moment;
mod place;
mod stock;
