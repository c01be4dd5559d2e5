//! What the reader and the writer of archives share: the limits of packages and the numbers of the format.

/// The largest archive: what the interface accepts as a body.
pub const MAX_ARCHIVE_BYTES: usize = 4 * 1024 * 1024;

/// Most entries, folders included.
pub(super) const MAX_ENTRIES: usize = 200;

/// Bytes of all files together.
pub(super) const MAX_TOTAL_BYTES: u64 = 24 * 1024 * 1024;

/// Bytes of one file.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The longest path in bytes, so that it fits below any data directory on any system.
pub(super) const MAX_PATH_BYTES: usize = 180;

/// The deepest path in components.
pub(super) const MAX_DEPTH: usize = 8;

/// Signatures, and lengths of the parts without what varies.
pub(super) const END: &[u8; 4] = b"PK\x05\x06";
pub(super) const END_BYTES: usize = 22;
pub(super) const CENTRAL: &[u8; 4] = b"PK\x01\x02";
pub(super) const CENTRAL_BYTES: usize = 46;
pub(super) const LOCAL: &[u8; 4] = b"PK\x03\x04";
pub(super) const LOCAL_BYTES: usize = 30;

/// Bits of the flags: encrypted in one of two ways, or a patch.
pub(super) const FORBIDDEN_FLAGS: u16 = 0x0001 | 0x0040 | 0x2000 | 0x0020;

/// Methods.
pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;

/// The part of Unix modes that says what a file is, and the value of regular files and folders.
pub(super) const KIND_MASK: u32 = 0o170_000;
pub(super) const REGULAR: u32 = 0o100_000;
pub(super) const FOLDER: u32 = 0o040_000;

/// How much larger a file may be than what it is packed into…
pub(super) const MAX_RATIO: u64 = 100;

/// …if it is larger than this; small texts do pack that well.
pub(super) const RATIO_FROM_BYTES: u64 = 64 * 1024;

/// Whether a file packs better than an honest one does. The reader refuses such a file and the writer stores it as it is.
pub(super) fn is_bomb(bytes: u64, packed_bytes: u64) -> bool {
    bytes > RATIO_FROM_BYTES && bytes > packed_bytes * MAX_RATIO
}
