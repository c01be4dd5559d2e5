//! Webhooks: tells HTTP endpoints of the user what becomes of tasks and queues.
//!
//! *Owns* endpoints ([`Endpoints`]: their checks, and which parts of them are secret), bodies ([`template`]), signatures
//! ([`sign`]), the queue of deliveries with its retries and log ([`state::Deliveries::apply`]), and the requests.
//!
//! *Never* knows the engine, stores anything, or delays anybody: events are handed to it, and it drops what is too much.
//!
//! # Layers
//!
//! - `handle`: what callers use
//! - `driver`: the loop around the state
//! - `send`: one attempt over HTTP
//! - `state`: queue, retries and log
//! - `endpoint`: endpoints as they are configured
//! - `template`: bodies
//! - `redact`: texts without secrets
//! - `header`, `sign`: header fields, signatures
//! - `event`: the events that endpoints receive
//!
//! All layers from `state` on are pure. Start reading at [`Hooks`] (what can be asked), then [`state`] (what happens), then
//! [`endpoint`] (what is allowed).

mod driver;
pub mod endpoint;
pub mod event;
mod handle;
mod header;
mod redact;
mod send;
pub mod sign;
pub mod state;
pub mod template;

pub use driver::Change;
pub use endpoint::{Endpoint, Endpoints, InvalidEndpoints};
pub use event::{EventKind, Occurrence};
pub use handle::{Closed, Config, Hooks, TestError};
pub use send::ProxyFor;
