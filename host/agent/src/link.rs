//! The way to the daemon: [`connect`] is implemented by the program, [`session`] is one connection, [`daemon`] keeps one
//! alive and is what handlers call.

pub(crate) mod connect;
pub(crate) mod daemon;
pub(crate) mod session;
