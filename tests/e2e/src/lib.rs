//! Driving the real executable, as a user or a script does.
//!
//! *Owns* finding or building `svc` ([`binary`]), running it under a deadline ([`Svc`]), and a service with directories of
//! its own and its clients ([`Home`], [`Service`], [`http`], [`Rpc`], [`python`]), and [`Nginx`]. The tests themselves are in `tests/it`.
//!
//! *Never* calls a function of the product: what cannot be seen from outside the process is not tested here.
//!
//! Start reading at [`Svc`] for one command, at [`Home`] for the service.

pub mod binary;
pub mod http;
mod hung_disk;
mod nginx;
pub mod other_user;
mod power;
pub mod python;
mod rpc;
pub mod service;
pub mod setting;
mod svc;

pub use hung_disk::HungDisk;
pub use nginx::Nginx;
pub use power::PowerDisk;
pub use rpc::{Rpc, RpcError};
pub use service::{Home, Service};
pub use svc::{Run, Running, Svc, may_mount};
