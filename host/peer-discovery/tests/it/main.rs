//! Sessions against trackers and nodes on the loopback.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod foreign;
mod hostile;
mod house;
mod shared;
mod trackers;
