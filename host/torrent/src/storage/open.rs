//! Opening files below a directory without following symbolic links: another program could have put one where a torrent
//! names a directory.

use std::{fs::File, io, path::Path};

#[cfg(unix)]
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

/// Opens the file at `relative` below `directory` for reading and writing. With `creates`, it and its directories are
/// created if they are missing.
#[cfg(unix)]
pub(super) fn open_below(directory: &Path, relative: &str, creates: bool) -> io::Result<File> {
    let (parent, name) = walk(directory, relative, creates)?;
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let flags = if creates { flags | OFlags::CREATE } else { flags };
    let file = match openat(&parent, name, flags, Mode::from_raw_mode(0o666)) {
        // A finished file that may only be read can still be uploaded.
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS) if !creates => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            openat(&parent, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    let file = File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no ordinary file"));
    }
    Ok(file)
}

/// Creates the directories of the file at `relative`.
#[cfg(unix)]
pub(super) fn make_parents(directory: &Path, relative: &str) -> io::Result<()> {
    walk(directory, relative, true).map(drop)
}

/// The directory of the file at `relative`, and its name there.
#[cfg(unix)]
fn walk<'a>(directory: &Path, relative: &'a str, creates: bool) -> io::Result<(std::os::fd::OwnedFd, &'a str)> {
    if creates {
        std::fs::create_dir_all(directory)?;
    }
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let mut parent = openat(CWD, directory, flags, Mode::empty())?;
    let mut names = relative.split('/').peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return Ok((parent, name));
        }
        if creates {
            match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
        parent = openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Err(io::ErrorKind::InvalidInput.into())
}

#[cfg(not(unix))]
pub(super) fn open_below(directory: &Path, relative: &str, creates: bool) -> io::Result<File> {
    if leads_through_link(directory, relative) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads through a link"));
    }
    if creates {
        make_parents(directory, relative)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(creates).truncate(false);
    options.open(directory.join(relative))
}

#[cfg(not(unix))]
pub(super) fn make_parents(directory: &Path, relative: &str) -> io::Result<()> {
    let path = directory.join(relative);
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

/// Whether a directory on the way to the file is a symbolic link.
pub(super) fn leads_through_link(directory: &Path, relative: &str) -> bool {
    let mut path = directory.to_owned();
    let names: Vec<_> = relative.split('/').collect();
    names[..names.len() - 1].iter().any(|name| {
        path.push(name);
        std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink())
    })
}
