//! Renaming without replacing anything.

use std::{fs, io, path::Path};

use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};

/// Renames a file or directory; `AlreadyExists` if `to` is taken.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // A file system that cannot exclude it in one step.
        Err(Errno::INVAL | Errno::NOSYS) => checked_rename(from, to),
        result => Ok(result?),
    }
}

/// What can be replaced is a file or empty directory that is made between the two steps.
fn checked_rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}
