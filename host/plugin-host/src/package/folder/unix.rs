//! Folders by their handles: what a name means is looked up in a folder that stays the same, and links are not followed.

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

/// A folder that is open.
#[derive(Debug)]
pub(crate) struct Place(OwnedFd);

impl Place {
    /// The folder at `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::open(path, FOLDER, Mode::empty())?))
    }

    /// The file that `path` is in it, opened for reading.
    pub(super) fn file(&self, path: &Path) -> io::Result<File> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // Opening a pipe does not wait for who writes to it.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(fs::openat(&self.below(folder, false)?.0, name, flags, Mode::empty())?.into())
    }

    /// The folder that `path` is in it; `makes_it`, if there is none.
    pub(crate) fn below(&self, path: &Path, makes_it: bool) -> io::Result<Self> {
        let mut place = Self(self.0.try_clone()?);
        for name in names(path) {
            let name = name?;
            if makes_it {
                match fs::mkdirat(&place.0, &name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let opened = fs::openat(&place.0, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            place = Self(opened.map_err(|error| match error {
                Errno::NOTDIR | Errno::LOOP => {
                    let reason = format!("{} is not a folder, or a link to one", name.display());
                    io::Error::new(io::ErrorKind::NotADirectory, reason)
                }
                error => error.into(),
            })?);
        }
        Ok(place)
    }

    /// Writes a file so that it is there whole or not at all. What is there under its name goes, also a link.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = format!(".{name}.new");
        self.remove(&new)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let mut file = File::from(fs::openat(&self.0, &new, flags, mode)?);
        file.write_all(bytes)?;
        Ok(fs::renameat(&self.0, &new, &self.0, name)?)
    }

    /// Removes a file or a link; one that is not there is removed already.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Its regular files, and when they were changed.
    pub(crate) fn files(&self) -> io::Result<Vec<(SystemTime, String)>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // A link does not open, nor what went away meanwhile.
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

/// The names of a path that leads only down.
fn names(path: &Path) -> impl Iterator<Item = io::Result<PathBuf>> {
    path.components().map(|component| match component {
        Component::Normal(name) => Ok(name.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "it does not lead down")),
    })
}
