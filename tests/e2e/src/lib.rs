//! Driving the real executable, as a user or a script does.
//!
//! *Owns* finding or building `svc` ([`binary`]) and running it under a deadline ([`Svc`]). The tests themselves are in
//! `tests/it`.
//!
//! *Never* calls a function of the product: what cannot be seen from outside the process is not tested here.
//!
//! Start reading at [`Svc`].

pub mod binary;
pub mod setting;
mod svc;

pub use svc::{Run, Running, Svc};
