//! Bounds of what a session and its torrents use.

use std::time::Duration;

/// How long connecting to a peer may take.
pub(super) const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long both sides may take for their handshakes.
pub(super) const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Bytes of pieces that a session keeps in memory until they are complete. Beyond that, blocks are written as they arrive,
/// and their pieces are read again to be hashed: from the page cache, so that more memory than this makes nothing faster.
pub(super) const MAX_BUFFERED_BYTES: usize = 8 * 1024 * 1024;

/// The largest piece that is kept in memory.
pub(super) const MAX_BUFFERED_PIECE: u32 = 4 * 1024 * 1024;

/// Bytes that wait to be sent to a peer, beyond blocks; one that does not read them is closed.
pub(super) const MAX_OUTBOX_BYTES: usize = 1024 * 1024;

/// Bytes of blocks that are read from the disk for one peer in advance.
pub(super) const UPLOAD_BATCH_BYTES: usize = 128 * 1024;

/// Bytes that a connection reads before the others of its lane have a turn.
pub(super) const TURN_BYTES: usize = 512 * 1024;

/// Addresses of peers that a torrent remembers.
pub(super) const MAX_CANDIDATES: usize = 2000;

/// Commands that wait for a torrent.
pub(super) const MAX_COMMANDS: usize = 256;

/// Events that wait for the embedder; beyond that the oldest are dropped, and the state has to be read instead.
pub(super) const MAX_EVENTS: usize = 1024;
