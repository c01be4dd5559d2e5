//! What performs the effects of [`crate::heart`]: connections, disk work, and the session that routes to torrents.
//!
//! A torrent runs on one lane: its task, its connections and its state share a thread, so that a block goes from the socket
//! into the buffer of its piece without a lock or a channel. Hashing and writing whole pieces is done by blocking threads.

mod buffers;
mod candidates;
mod checking;
mod connection;
mod core;
mod environment;
mod introduction;
mod limits;
mod permits;
pub(crate) mod session;
mod stream;
mod torrent;
mod webseed;
