//! Limits on what clients may cost a listener: connections and attempts before they have authenticated, time while they
//! do not read, and memory for large bodies.
//!
//! *Owns* the count of open connections ([`ConnectionSlots`]), the choice of the one that is closed when there are too
//! many, the byte stream that enforces both limits ([`Guarded`]), the rate limit of wrong keys ([`throttle`]), the memory
//! budget of large bodies ([`budget`]), and the limit on the memory of parsed JSON ([`json`]).
//!
//! *Never* decides whether a client is authenticated: the listener calls [`ConnectionSlot::authenticate`] once it is, and
//! compares keys itself.
//!
//! # Layers
//!
//! - `guarded`: the byte stream
//! - `slots`: the count
//! - `throttle`: wrong keys, by source
//! - `budget`: memory for large bodies
//! - `json`: what parsing a JSON text would cost

pub mod budget;
mod guarded;
pub mod json;
mod slots;
pub mod throttle;

pub use guarded::{Guarded, STALL_TIME};
pub use slots::{ConnectionSlot, ConnectionSlots, Limits};
