//! Everything but Linux.

use std::{fs::File, io, path::Path};

use crate::os::file::link_then_unlink;

pub(super) fn boot_id() -> Option<String> {
    None
}

pub(super) fn free_bytes(_directory: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}

pub(super) fn allocated_bytes(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

pub(super) fn is_in_memory(_file: &File) -> bool {
    false
}

pub(super) fn reserve(file: &File, size: u64) -> io::Result<()> {
    file.set_len(size)
}

pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    link_then_unlink(from, to)
}

pub(super) fn device(_path: &Path) -> Option<u64> {
    None
}

pub(super) fn inode(_file: &std::fs::Metadata) -> u64 {
    0
}

pub(super) fn keeps_owners(_directory: &Path) -> bool {
    cfg!(unix)
}

pub(super) fn resident_bytes() -> Option<u64> {
    None
}

pub(super) fn usual_mode() -> Option<u32> {
    None
}

pub(super) fn lock_holder(_file: &File) -> Option<u32> {
    None
}
