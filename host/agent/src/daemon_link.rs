//! The connection to the daemon: [`connect`] is implemented by the embedding program, [`session`] is one connection,
//! which begins with a [`handshake`] and follows events as [`replay`] defines, [`daemon`] reconnects and is the handle
//! that handlers use. [`questions`] counts the clients that answer questions of tasks.

pub(crate) mod connect;
pub(crate) mod daemon;
pub(crate) mod error;
mod handshake;
pub(crate) mod questions;
mod replay;
mod session;
