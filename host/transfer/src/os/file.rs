//! Opening files safely where other users may write, and positional reads and writes.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Opens a file for reading and writing as `options` say. A symbolic link in its place is an error, and a pipe does not
/// block.
#[cfg(unix)]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens a file for reading and writing as `options` say. The caller checks first that it is not a symbolic link.
#[cfg(not(unix))]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

/// Why another user could have made the file that `metadata` is about, or could write into it; `None` if only ourselves
/// and the administrator can.
#[cfg(unix)]
pub(crate) fn exposure(metadata: &std::fs::Metadata) -> Option<Exposure> {
    use std::os::unix::fs::MetadataExt as _;
    if !metadata.is_file() {
        Some(Exposure::NoFile)
    } else if metadata.nlink() != 1 {
        Some(Exposure::SeveralNames)
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some(Exposure::Owns)
    } else if metadata.mode() & 0o022 != 0 {
        Some(Exposure::MayWrite)
    } else {
        None
    }
}

/// Owners are unknown on this system, so every file could be another user's.
#[cfg(not(unix))]
pub(crate) fn exposure(metadata: &std::fs::Metadata) -> Option<Exposure> {
    Some(if metadata.is_file() {
        Exposure::Owns
    } else {
        Exposure::NoFile
    })
}

/// Why a file may be under another user's control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// It is a symbolic link, a directory, a pipe or a device.
    NoFile,
    /// It has several hard links; another user may control one of them.
    SeveralNames,
    /// It belongs to another user, or its owner is unknown.
    Owns,
    /// Its permissions let others write.
    MayWrite,
}

/// Creates a file that only its owner can write, whatever the umask; `AlreadyExists` if anything is there.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}

/// Removes the write permission of everyone but the owner.
#[cfg(unix)]
pub(crate) fn make_own(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = file.metadata()?.permissions().mode() & 0o777;
    file.set_permissions(std::fs::Permissions::from_mode(now & !0o022))
}

/// Write permissions are unknown on this system.
#[cfg(not(unix))]
pub(crate) fn make_own(_file: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Adds the permissions in `mode` to those of a file with this `metadata`.
#[cfg(unix)]
pub(super) fn add_permissions(file: &File, metadata: &std::fs::Metadata, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = metadata.permissions().mode() & 0o777;
    if now | mode == now {
        return Ok(());
    }
    file.set_permissions(std::fs::Permissions::from_mode(now | mode))
}

/// This system has no such permissions.
#[cfg(not(unix))]
pub(super) fn add_permissions(_file: &File, _metadata: &std::fs::Metadata, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Writes all of `bytes` at `offset`, independent of the file's cursor.
#[cfg(unix)]
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Reads what is at `offset`, independent of the file's cursor.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

/// Writes all of `bytes` at `offset`.
#[cfg(windows)]
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}

/// Reads what is at `offset`.
#[cfg(windows)]
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

pub(super) fn link_then_unlink(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}
