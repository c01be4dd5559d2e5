//! The way to the daemon: [`connect`] is implemented by the program, [`session`] is one connection that begins with a
//! [`handshake`] and follows events as [`replay`] says, [`daemon`] keeps one alive and is what handlers call.

pub(crate) mod connect;
pub(crate) mod daemon;
pub(crate) mod error;
mod handshake;
mod replay;
mod session;
