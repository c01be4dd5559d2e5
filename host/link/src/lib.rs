//! The device link: two devices of one network pair with a code that people compare, and hand downloads over, without an
//! account and safe against everybody else on that network.
//!
//! *Owns* the protocol: keys, transcript and digits of the pairing, sealed bodies and tags of the data plane, the memory
//! of used nonces, the records of devices, the outbox, and finding devices with multicast DNS.
//!
//! *Never* listens, stores or creates a task by itself: the program implements [`Service`] (storage, tasks, events) and
//! passes requests on that it accepted.
//!
//! Start reading at [`Link`], then `pairing::responder` (the pairing as a pure state machine), `plane` (the checks of a
//! request) and `crypto`.
//!
//! # Layers
//! - `driver`: the link of one service
//! - `error`: refusals
//! - `discovery`, `outbox`, `peer`, `wake`: devices nearby, downloads that wait, requests to devices, the machine's sleep
//! - `device`: records
//! - `message`: plaintexts
//! - `pairing`: both sides of a pairing
//! - `plane`, `replay`: the checks of a request
//! - `crypto`
//! - `constants`

pub mod constants;
pub mod crypto;
mod device;
mod discovery;
mod driver;
mod error;
mod message;
mod outbox;
pub mod pairing;
mod peer;
pub mod plane;
mod replay;
mod wake;

pub use driver::{Change, Config, Delivery, Link, NotTaken, Service};
pub use error::{Kind, LinkError, PlaneError, Unavailable};
pub use message::{Info, Invalid, Task, Unpair};
pub use outbox::Full;
pub use peer::split_address;
