//! Folders by file descriptor: names are resolved relative to it, without following links.

use std::{
    fs::File,
    io::{self, Write as _},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    time::SystemTime,
};

use rustix::{
    fs::{self, AtFlags, Dir, Mode, OFlags},
    io::Errno,
};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub(crate) struct FolderHandle(OwnedFd);

impl FolderHandle {
    /// Opens the folder at `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(path, FOLDER, Mode::empty())?))
    }

    /// Opens the file at `path` in it for reading.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // NONBLOCK: opening a pipe does not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(fs::openat(&self.below(folder, false)?.0, name, flags, Mode::empty())?.into())
    }

    /// The folder at `path` in it; `makes_it` creates a missing one.
    pub(crate) fn below(&self, path: &Path, makes_it: bool) -> io::Result<Self> {
        let mut handle = Self(self.0.try_clone()?);
        for name in names(path) {
            let name = name?;
            if makes_it {
                match fs::mkdirat(&handle.0, &name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let opened = fs::openat(&handle.0, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            handle = Self(opened.map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => {
                    let reason = format!("{} is not a folder, or a link to one", name.display());
                    io::Error::new(io::ErrorKind::NotADirectory, reason)
                }
                error => error.into(),
            })?);
        }
        Ok(handle)
    }

    /// Writes a file atomically, replacing whatever has its name, including a link.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!(".{name}.new");
        self.remove(&new)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let mut file = File::from(fs::openat(&self.0, &new, flags, mode)?);
        file.write_all(bytes)?;
        Ok(fs::renameat(&self.0, &new, &self.0, name)?)
    }

    /// Removes a file or a link; a missing one is no error.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Its regular files with their modification times.
    pub(crate) fn files(&self) -> io::Result<Vec<(SystemTime, String)>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // Skips links and files deleted meanwhile.
            let Ok(metadata) = self.file(Path::new(name)).and_then(|file| file.metadata()) else {
                continue;
            };
            if metadata.is_file() {
                files.push((metadata.modified()?, name.to_owned()));
            }
        }
        Ok(files)
    }
}

/// The components of a path; fails unless it leads only downwards.
fn names(path: &Path) -> impl Iterator<Item = io::Result<PathBuf>> {
    path.components().map(|component| match component {
        Component::Normal(name) => Ok(name.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not lead down")),
    })
}
