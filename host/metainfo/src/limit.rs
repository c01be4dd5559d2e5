//! What a torrent may cost.

/// The longest info dictionary in bytes; also the most that a peer may announce (BEP 9). One for 10 TiB in pieces of
/// 16 MiB has 13 MiB of hashes.
pub const MAX_INFO_BYTES: usize = 16 << 20;

/// The most pieces. Libtorrent's limit; their hashes are 40 MiB, so that [`MAX_INFO_BYTES`] is reached before.
pub const MAX_PIECES: u64 = 1 << 21;

/// The longest piece in bytes. Libtorrent's limit: 32,767 blocks of 16 KiB, just below 512 MiB.
pub const MAX_PIECE_LENGTH: u32 = 32_767 * 16 * 1024;

/// The most files, padding included. Collections of a hundred thousand files exist; each costs some hundred bytes here.
pub const MAX_FILES: usize = 100_000;

/// The longest path in bytes, as the torrent spells it: what Linux opens (`PATH_MAX`).
pub(crate) const MAX_PATH_BYTES: usize = 4096;

/// The most components of a path, the file's name included.
pub(crate) const MAX_COMPONENTS: usize = 100;

/// The largest file that is parsed: an info dictionary, and what it may have beside it. Interfaces have lower limits.
pub const MAX_METAINFO_BYTES: usize = MAX_INFO_BYTES + (1 << 20);

/// Trackers that are kept, of all tiers together. Torrents list dozens.
pub const MAX_TRACKERS: usize = 200;

/// Webseeds that are kept.
pub const MAX_WEBSEEDS: usize = 100;

/// The longest link in bytes. Links with a hundred trackers have some 8 KiB.
pub const MAX_MAGNET_BYTES: usize = 64 * 1024;
