//! Files that another user may have to do with, and reading and writing at positions.

use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Opens a file for reading and writing as `options` say. A link in its place is an error, and nothing is waited for if
/// it is a pipe.
#[cfg(unix)]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(path)
}

/// Opens a file for reading and writing as `options` say. Whoever calls looks first whether a link is in its place.
#[cfg(not(unix))]
pub(crate) fn open_in_place(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.open(path)
}

/// Why another user could have made the file that `metadata` is about, or could write into it; `None` if only ourselves
/// and the administrator can.
#[cfg(unix)]
pub(crate) fn strangers_access(metadata: &std::fs::Metadata) -> Option<Stranger> {
    use std::os::unix::fs::MetadataExt as _;
    if !metadata.is_file() {
        Some(Stranger::NoFile)
    } else if metadata.nlink() != 1 {
        Some(Stranger::SeveralNames)
    } else if metadata.uid() != rustix::process::geteuid().as_raw() {
        Some(Stranger::Owns)
    } else if metadata.mode() & 0o022 != 0 {
        Some(Stranger::MayWrite)
    } else {
        None
    }
}

/// Nothing is known of owners here, so every file could be another user's.
#[cfg(not(unix))]
pub(crate) fn strangers_access(metadata: &std::fs::Metadata) -> Option<Stranger> {
    Some(if metadata.is_file() {
        Stranger::Owns
    } else {
        Stranger::NoFile
    })
}

/// How another user may have to do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stranger {
    /// It is a link, a directory, a pipe or a device.
    NoFile,
    /// It has several names, and another one may be in another user's hands.
    SeveralNames,
    /// It belongs to another user, or that cannot be known.
    Owns,
    /// Its permissions let others write.
    MayWrite,
}

/// Creates a file that only its owner can write, whatever the process lets others do; `AlreadyExists` if anything is
/// there.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}

/// Takes the permission to write from everybody but the owner.
#[cfg(unix)]
pub(crate) fn make_own(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let now = file.metadata()?.permissions().mode() & 0o777;
    file.set_permissions(std::fs::Permissions::from_mode(now & !0o022))
}

/// Nothing is known of who may write.
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

/// Permissions are something else here.
#[cfg(not(unix))]
pub(super) fn add_permissions(_file: &File, _metadata: &std::fs::Metadata, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// Writes all of `bytes` at `offset`, whatever the file's cursor.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Reads what is at `offset`, whatever the file's cursor.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, offset)
}

/// Writes all of `bytes` at `offset`.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
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
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, offset)
}

pub(super) fn link_then_unlink(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}
