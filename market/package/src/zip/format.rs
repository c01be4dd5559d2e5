//! Limits of packages and constants of the ZIP format, for the reader and the writer.

/// The largest archive in bytes, which is what the HTTP interface accepts as a body.
pub const MAX_ARCHIVE_BYTES: usize = 4 * 1024 * 1024;

/// The most entries, including folders.
pub(super) const MAX_ENTRIES: usize = 200;

/// The most bytes of all files together, unpacked.
pub(super) const MAX_TOTAL_BYTES: u64 = 24 * 1024 * 1024;

/// The most bytes of one file, unpacked.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The longest path in bytes, so that it fits below any data directory on any system.
pub(super) const MAX_PATH_BYTES: usize = 180;

/// The deepest path in components.
pub(super) const MAX_DEPTH: usize = 8;

/// Signatures of the records, and the lengths of their fixed parts in bytes.
pub(super) const END: &[u8; 4] = b"PK\x05\x06";
pub(super) const END_BYTES: usize = 22;
pub(super) const CENTRAL: &[u8; 4] = b"PK\x01\x02";
pub(super) const CENTRAL_BYTES: usize = 46;
pub(super) const LOCAL: &[u8; 4] = b"PK\x03\x04";
pub(super) const LOCAL_BYTES: usize = 30;

/// Flags of entries that are refused: encrypted, strongly encrypted, with an encrypted header, or a patch.
pub(super) const FORBIDDEN_FLAGS: u16 = 0x0001 | 0x0040 | 0x2000 | 0x0020;

/// Compression methods.
pub(super) const STORED: u16 = 0;
pub(super) const DEFLATED: u16 = 8;

/// The mask of the file type in Unix modes, and its values for regular files and folders.
pub(super) const KIND_MASK: u32 = 0o170_000;
pub(super) const REGULAR: u32 = 0o100_000;
pub(super) const FOLDER: u32 = 0o040_000;

/// The highest allowed ratio of a file's size to its compressed size…
pub(super) const MAX_RATIO: u64 = 100;

/// …for files above this size; small texts can have a higher one.
pub(super) const RATIO_FROM_BYTES: u64 = 64 * 1024;

/// Whether a file compresses better than honest files do. The reader refuses such a file, and the writer does not
/// compress it.
pub(super) fn is_bomb(bytes: u64, packed_bytes: u64) -> bool {
    bytes > RATIO_FROM_BYTES && bytes > packed_bytes * MAX_RATIO
}
