//! What differs between operating systems, in one place. Other systems than Linux use the portable fallback; functions
//! without one return `Unsupported`.

mod file;
#[cfg(target_os = "linux")]
mod linux;
mod pipe;
#[cfg(not(target_os = "linux"))]
mod portable;

use std::{fs::File, io, path::Path};

#[cfg(target_os = "linux")]
use linux as imp;
#[cfg(not(target_os = "linux"))]
use portable as imp;

pub(crate) use file::{Exposure, create_own, exposure, make_own, open_in_place};
pub use file::{read_at, write_all_at};
pub use pipe::{CarryError, KernelPipe};

/// Identifies this boot of the machine: data in the page cache is valid while it stays the same. Where it is unknown,
/// only synced data counts after a restart.
pub fn boot_id() -> Option<String> {
    imp::boot_id()
}

/// Resident memory of this process, if the system tells it.
pub fn resident_bytes() -> Option<u64> {
    imp::resident_bytes()
}

/// Free bytes for a file in `directory`.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    imp::free_bytes(directory)
}

/// Bytes of the disk that `file` already occupies.
pub(crate) fn allocated_bytes(file: &File) -> io::Result<u64> {
    imp::allocated_bytes(file)
}

/// Reserves `size` bytes for `file` without writing them; where that is not supported, makes a sparse file.
pub(crate) fn reserve(file: &File, size: u64) -> io::Result<()> {
    imp::reserve(file, size)
}

/// Whether `file` lies on a file system that is kept in memory, so that there is nothing to sync.
pub(crate) fn is_in_memory(file: &File) -> bool {
    imp::is_in_memory(file)
}

/// Renames `from` to `to`; `AlreadyExists` if `to` is taken, atomically.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    imp::rename_new(from, to)
}

/// Identifies the file system of `path`.
pub(crate) fn device(path: &Path) -> Option<u64> {
    imp::device(path)
}

/// The inode number: identifies the file on its file system, whatever its name.
pub(crate) fn inode(metadata: &std::fs::Metadata) -> u64 {
    imp::inode(metadata)
}

/// The process that holds a lock on `file`, if the system can tell.
pub(crate) fn lock_holder(file: &File) -> Option<u32> {
    imp::lock_holder(file)
}

/// Whether files in `directory` have owners of their own. Network and removable file systems often report the same
/// owner for all.
pub(crate) fn keeps_owners(directory: &Path) -> bool {
    imp::keeps_owners(directory)
}

/// The permissions of an ordinary new file of this process (umask), if known. Read once: no code here changes them, and
/// reading takes longer than writing a small file.
fn usual_mode() -> Option<u32> {
    static MODE: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    *MODE.get_or_init(imp::usual_mode)
}

/// Gives a file that was made by [`create_own`] and has this `metadata` the permissions of an ordinary new file.
pub(crate) fn make_usual(file: &File, metadata: &std::fs::Metadata) -> io::Result<()> {
    usual_mode().map_or(Ok(()), |mode| file::add_permissions(file, metadata, mode))
}
