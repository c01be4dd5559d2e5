//! An open directory. What is done in it is done in that one, by names of one component and never through a link, whatever
//! takes its place at its path meanwhile: others may rename, replace and link what is in the directory above.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Component, Path, PathBuf},
};

use private_files::FileError;
use rustix::{
    fs::{
        AtFlags, CWD, Dir as Entries, FileType, Mode, OFlags, RenameFlags, Stat, fstat, mkdirat, openat, renameat,
        renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use serde::{Deserialize, Serialize};

/// What a directory is opened with.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir {
    fd: OwnedFd,
    /// Where it was found, for messages and results.
    path: PathBuf,
}

impl AsFd for Dir {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Dir> for OwnedFd {
    fn from(directory: Dir) -> Self {
        directory.fd
    }
}

impl Dir {
    /// Opens the directory at a path, which may be a link: a directory for downloads, as the user has named it.
    pub(crate) fn open(path: &Path) -> Result<Self, FileError> {
        let fd = openat(CWD, path, DIRECTORY, Mode::empty());
        Self::found(path.to_owned(), fd)
    }

    /// Opens the directory at a path. Below `root` it is reached through no link: others may have put one there. `root` itself
    /// and what is elsewhere is where the user says.
    pub(crate) fn open_below(root: &Path, path: &Path) -> Result<Self, FileError> {
        match path.strip_prefix(root) {
            Ok(below) => Self::open(root)?.enter_all(below),
            Err(_) => Self::open(path),
        }
    }

    /// As [`open_below`](Self::open_below), and makes the directories that are missing.
    pub(crate) fn make_below(root: &Path, path: &Path) -> Result<Self, FileError> {
        let (named, below) = match path.strip_prefix(root) {
            Ok(below) => (root, below),
            Err(_) => (path, Path::new("")),
        };
        fs::create_dir_all(named).map_err(FileError::at("make", named))?;
        Self::open(named)?.walk(below, Self::enter_or_make)
    }

    /// Opens the directory that is itself at a path.
    pub(crate) fn open_itself(path: &Path) -> Result<Self, FileError> {
        let fd = openat(CWD, path, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        Self::found(path.to_owned(), fd)
    }

    /// Opens a directory in this one.
    pub(crate) fn enter(&self, name: impl AsRef<OsStr>) -> Result<Self, FileError> {
        let name = name.as_ref();
        let fd = openat(&self.fd, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        Self::found(self.path.join(name), fd)
    }

    /// Opens a directory in this one, which is made if nothing has its name.
    fn enter_or_make(&self, name: &OsStr) -> Result<Self, FileError> {
        // The file creation mask of the process applies.
        match mkdirat(&self.fd, name, Mode::RWXU | Mode::RWXG | Mode::RWXO) {
            Ok(()) => self.sync()?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(self.error("make", name, error)),
        }
        self.enter(name)
    }

    /// Opens what a relative path leads to, each directory of it in the one before.
    pub(crate) fn enter_all(&self, path: &Path) -> Result<Self, FileError> {
        self.walk(path, |at, name| at.enter(name))
    }

    fn walk(&self, path: &Path, enter: impl Fn(&Self, &OsStr) -> Result<Self, FileError>) -> Result<Self, FileError> {
        path.components().try_fold(self.again()?, |at, next| match next {
            Component::Normal(name) => enter(&at, name),
            _ => Err(at.error("open", path, io::ErrorKind::InvalidInput)),
        })
    }

    /// Makes a directory for its owner only, and opens it. What is opened is empty, whatever took its place in between.
    pub(crate) fn make(&self, name: &str) -> Result<Self, FileError> {
        let made = mkdirat(&self.fd, name, Mode::RWXU);
        made.map_err(|error| self.error("make", name, error))?;
        let directory = self.enter(name)?;
        if directory.names()?.is_empty() {
            Ok(directory)
        } else {
            Err(self.error("make", name, io::ErrorKind::AlreadyExists))
        }
    }

    /// The same directory, opened once more.
    pub(crate) fn again(&self) -> Result<Self, FileError> {
        let fd = self.fd.try_clone();
        Ok(Self {
            fd: fd.map_err(FileError::at("open", &self.path))?,
            path: self.path.clone(),
        })
    }

    fn found(path: PathBuf, fd: rustix::io::Result<OwnedFd>) -> Result<Self, FileError> {
        match fd {
            Ok(fd) => Ok(Self { fd, path }),
            Err(error) => Err(FileError::at("open", path)(error.into())),
        }
    }

    /// Where it was found.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads to this directory itself, for programs that this process starts in it. Where the system has no such
    /// path, it is the one where the directory was found.
    pub(crate) fn reached(&self) -> PathBuf {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd as _;
            PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
        }
        #[cfg(not(target_os = "linux"))]
        self.path.clone()
    }

    /// An error of an action on what has this name.
    pub(crate) fn error(&self, act: &'static str, name: impl AsRef<Path>, error: impl Into<io::Error>) -> FileError {
        FileError::at(act, self.path.join(name))(error.into())
    }

    fn own_error(&self, act: &'static str, error: Errno) -> FileError {
        FileError::at(act, &self.path)(error.into())
    }

    /// What has this name; `None` if nothing has.
    pub(crate) fn find(&self, name: impl AsRef<OsStr>) -> Option<Stat> {
        statat(&self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// What tells that which has this name from everything else.
    pub(crate) fn identity(&self, name: impl AsRef<OsStr>) -> Result<Identity, FileError> {
        let name = name.as_ref();
        let found = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = found.map_err(|error| self.error("read", name, error))?;
        #[expect(clippy::allow_attributes, reason = "it depends on the system")]
        #[allow(clippy::unnecessary_cast, reason = "the types are others on other systems")]
        Ok(Identity {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
        })
    }

    /// The directory itself.
    pub(crate) fn metadata(&self) -> Result<Stat, FileError> {
        fstat(&self.fd).map_err(|error| self.own_error("read", error))
    }

    /// The names of all that is in it.
    pub(crate) fn names(&self) -> Result<Vec<OsString>, FileError> {
        let entries = Entries::read_from(&self.fd).map_err(|error| self.own_error("read", error))?;
        let names = entries.map(|entry| {
            let entry = entry.map_err(|error| self.own_error("read", error))?;
            Ok(OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
        });
        names
            .filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == ".."))
            .collect()
    }

    /// Opens a regular file.
    pub(crate) fn open_regular(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        open_regular(self, name.as_ref())
    }

    /// Creates a file, or opens the one that is there if `flags` do not exclude that.
    pub(crate) fn create(&self, name: &str, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | flags;
        // The file creation mask of the process applies.
        let file = openat(&self.fd, name, flags, Mode::from_raw_mode(mode as rustix::fs::RawMode))?;
        Ok(File::from(file))
    }

    /// Writes a new file, synced.
    pub(crate) fn write_new(&self, name: &str, mode: u32, bytes: &[u8]) -> Result<(), FileError> {
        let file = self.create(name, OFlags::EXCL, mode);
        let mut file = file.map_err(|error| self.error("make", name, error))?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| {
            // The error is the one that says what is wrong.
            let _is_left = self.remove_file(name);
            self.error("write", name, error)
        })
    }

    /// Renames something to a name in `other` that nothing has.
    pub(crate) fn rename(&self, name: impl AsRef<Path>, other: &Self, to: impl AsRef<Path>) -> io::Result<()> {
        rename_new(self, name.as_ref(), other, to.as_ref())
    }

    /// As [`rename`](Self::rename), if what has the name is `expected`. Anything else keeps it, and is `NotFound`.
    pub(crate) fn rename_same(
        &self,
        name: impl AsRef<OsStr>,
        expected: Identity,
        other: &Self,
        to: impl AsRef<OsStr>,
    ) -> Result<(), FileError> {
        let (name, to) = (name.as_ref(), to.as_ref());
        // It is compared in `other`, where no other process exchanges it between the rename and the check.
        let renamed = self.rename(name, other, to);
        renamed.map_err(|error| self.error("rename", name, error))?;
        if other.identity(to)? == expected {
            return Ok(());
        }
        let back = other.rename(to, self, name);
        back.map_err(|error| other.error("rename", to, error))?;
        Err(self.error("rename", name, io::ErrorKind::NotFound))
    }

    /// Replaces a file of this name by another one.
    pub(crate) fn replace(&self, from: &str, name: &str) -> Result<(), FileError> {
        renameat(&self.fd, from, &self.fd, name).map_err(|error| self.error("replace", name, error))
    }

    /// Removes a file, or a directory with all that is in it. What is missing is no error.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), FileError> {
        let name = name.as_ref();
        let Some(found) = self.find(name) else {
            return Ok(());
        };
        if is_directory(&found) {
            let directory = self.enter(name)?;
            let mut names = directory.names()?.into_iter();
            names.try_for_each(|name| directory.remove(name))?;
            return self.remove_empty(name);
        }
        self.remove_file(name)
    }

    /// Removes what is no directory. What is missing is no error.
    pub(crate) fn remove_file(&self, name: impl AsRef<OsStr>) -> Result<(), FileError> {
        self.unlink(name.as_ref(), AtFlags::empty())
    }

    /// Removes a directory in which nothing is.
    pub(crate) fn remove_empty(&self, name: impl AsRef<OsStr>) -> Result<(), FileError> {
        self.unlink(name.as_ref(), AtFlags::REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, flags: AtFlags) -> Result<(), FileError> {
        match unlinkat(&self.fd, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("remove", name, error)),
        }
    }

    /// Makes its names durable.
    pub(crate) fn sync(&self) -> Result<(), FileError> {
        rustix::fs::fsync(&self.fd).map_err(|error| self.own_error("sync", error))
    }
}

pub(crate) fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode).is_dir()
}

pub(crate) fn is_file(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode).is_file()
}

/// Opens a regular file in a directory, not through a link.
pub(crate) fn open_regular(directory: impl AsFd, path: impl AsRef<Path>) -> io::Result<File> {
    // Without blocking, should it be a pipe by now.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, path.as_ref(), flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

/// Renames a file or directory; `AlreadyExists` if `to` is taken.
pub(crate) fn rename_new(from: impl AsFd, name: &Path, into: impl AsFd, to: &Path) -> io::Result<()> {
    match renameat_with(&from, name, &into, to, RenameFlags::NOREPLACE) {
        // A file system that cannot exclude it in one step. What can be replaced is a file or empty directory that is made
        // between the two.
        Err(Errno::INVAL | Errno::NOSYS) => match statat(&into, to, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => Ok(renameat(from, name, into, to)?),
        },
        result => Ok(result?),
    }
}

/// A file or directory, whatever its name and content are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

/// A file as it was when it was used: another file, or one that was written to since, differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Original {
    /// Where it is.
    pub path: PathBuf,
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Original {
    /// `file`, which was opened at `path`.
    pub(crate) fn of(path: PathBuf, file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        Ok(Self {
            path,
            device: found.dev(),
            inode: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    /// The regular file that is itself at `path` now.
    pub(crate) fn at(path: PathBuf) -> io::Result<Self> {
        let file = open_regular(CWD, &path)?;
        Self::of(path, &file)
    }

    /// The regular file that has this name in a directory now.
    pub(crate) fn of_name(directory: &Dir, name: &OsStr) -> io::Result<Self> {
        Self::of(directory.path().join(name), &directory.open_regular(name)?)
    }

    /// Whether `file` is still it.
    pub(crate) fn is(&self, file: &File) -> io::Result<bool> {
        Ok(*self == Self::of(self.path.clone(), file)?)
    }

    /// Removes the file if it is still as it was; false if another one is there, which is left. A missing one is no error.
    pub(crate) fn remove(&self) -> Result<bool, FileError> {
        let (Some(parent), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(false);
        };
        let directory = Dir::open(parent)?;
        if directory.find(name).is_none() {
            return Ok(true);
        }
        let is_same = directory.open_regular(name).and_then(|file| self.is(&file));
        // A link, or what cannot be read, is not what was unpacked.
        if is_same.unwrap_or(false) {
            directory.remove_file(name)?;
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_there_before_is_renamed_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::open(root.path()).unwrap();
        let into = dir.make("into").unwrap();
        dir.write_new("a", 0o600, b"ours").unwrap();
        let ours = dir.identity("a").unwrap();
        dir.rename("a", &dir, "elsewhere").unwrap();
        dir.write_new("a", 0o600, b"theirs").unwrap();
        let refused = dir.rename_same("a", ours, &into, "a").unwrap_err();
        assert_eq!(refused.source.kind(), io::ErrorKind::NotFound);
        assert!(dir.find("a").is_some() && into.names().unwrap().is_empty());
        dir.rename_same("elsewhere", ours, &into, "a").unwrap();
        assert_eq!(into.identity("a").unwrap(), ours);
    }
}
