//! What origins and proxies really put on the wire, seen by a client that knows nothing but sockets.
//! Programs of swarms are seen by each other.

mod client;
mod honest;
mod hostile;
mod proxy;
mod swarm;
