//! Selects the service of a command and connects to it.
//!
//! Read [`target`] (which service, which key), [`client`] (calls and events), [`attend`] (long-running commands).

mod address;
pub(crate) mod attend;
mod client;
mod dial;
#[expect(missing_docs, reason = "each error says in its message what its fields are")]
mod error;
pub(crate) mod file;
mod follow;
pub(crate) mod http;
mod target;

pub use address::Address;
pub use attend::Observer;
pub use client::Client;
pub use error::RemoteError;
pub use target::{ServiceArgs, Target};
