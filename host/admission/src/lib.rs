//! Limits on what a connection may cost a listener before its client has authenticated, and while its client does not
//! read.
//!
//! *Owns* the count of open connections ([`Seats`]), the choice of the one that is closed when there are too many, and
//! the byte stream that enforces both limits ([`Guarded`]), and the limit on the memory of parsed JSON ([`json`]).
//!
//! *Never* decides whether a client is authenticated: the listener calls [`Seat::authenticate`] once it is.
//!
//! # Layers
//!
//! - `guarded`: the byte stream
//! - `seats`: the count
//! - `json`: what parsing a JSON text would cost

mod guarded;
pub mod json;
mod seats;

pub use guarded::{Guarded, STALL_TIME};
pub use seats::{Limits, Seat, Seats};
