//! What origins and proxies really put on the wire, seen by a client that knows nothing but sockets.

mod client;
mod honest;
mod hostile;
mod proxy;
