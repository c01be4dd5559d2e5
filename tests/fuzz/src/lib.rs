//! Hostile input for everything that reads what somebody else wrote.
//!
//! *Owns* the targets ([`TARGETS`]): each takes any bytes, brings them in where the product takes them in, and fails if
//! what comes back could not be. What was found is in `corpus`, and the test of this crate replays it.
//!
//! *Never* reaches past this machine, whatever URLs the bytes hold.
//!
//! Start reading at [`TARGETS`]; `README.md` says how to search.

mod house;
mod target;

pub use target::{TARGETS, Target};
