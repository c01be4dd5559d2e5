//! The cryptography of pairing and data plane, byte for byte. Pure: random values are parameters.

pub(crate) mod bytes;
pub mod identity;
pub mod seal;
pub mod transcript;

pub use bytes::NoRandom;
pub(crate) use bytes::{random, read_base64, write_base64};
