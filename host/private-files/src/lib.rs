//! Files and directories that only their owner may read, and locks that the operating system releases when a process
//! ends.
//!
//! *Owns* how such a file is created (private from its first moment, not restricted afterwards), how it is replaced
//! atomically, and the error that names the action and the path.
//!
//! *Never* knows what is in them.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// A failed action on a file or folder. Crates carry it in their own errors with `#[error(transparent)]` and `#[from]`,
/// so that a message names the action and the path in the same words everywhere.
#[derive(Debug, thiserror::Error)]
#[error("cannot {act} {}", path.display())]
pub struct FileError {
    /// The action, worded to follow "cannot".
    pub act: &'static str,
    /// The path.
    pub path: PathBuf,
    /// Why not.
    #[source]
    pub source: io::Error,
}

impl FileError {
    /// Converts an [`io::Error`] of an action on `path`; for `map_err`.
    pub fn at(act: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self {
            act,
            path: path.as_ref().to_owned(),
            source,
        }
    }
}

/// Options that create a file for its owner only. An existing one keeps its permissions.
pub fn options() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "permissions are something else there"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory for its owner only, with its parents. An existing one stays as it is.
pub fn make_directory(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(FileError::at("make", path))
}

/// Replaces a file atomically by writing a temporary one and renaming it: after a crash, either the old or the new one
/// is complete. Synced when this returns. Two processes must not do this with the same path at once.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let staged = staged(path);
    remove(&staged)?;
    let mut file = options()
        .write(true)
        .create_new(true)
        .open(&staged)
        .map_err(FileError::at("make", &staged))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(FileError::at("write", &staged))?;
    fs::rename(&staged, path).map_err(FileError::at("replace", path))?;
    path.parent().map_or(Ok(()), sync_directory)
}

/// The temporary file of [`replace`].
fn staged(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Reads a file; `None` if it is missing.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    unless_missing(fs::read(path)).map_err(FileError::at("read", path))
}

/// Deletes a file; a missing one is no error.
pub fn remove(path: &Path) -> Result<(), FileError> {
    unless_missing(fs::remove_file(path)).map_err(FileError::at("remove", path))?;
    Ok(())
}

/// Makes the names in a directory durable, where the system can: a synced file whose name is not durable is lost with
/// the power.
pub fn sync_directory(path: &Path) -> Result<(), FileError> {
    if cfg!(unix) {
        let synced = File::open(path).and_then(|directory| directory.sync_all());
        synced.map_err(FileError::at("sync", path))?;
    }
    Ok(())
}

/// `None` if `result` says that there is nothing at the path.
fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// The result of [`lock`].
#[derive(Debug)]
pub enum Lock {
    /// It is ours until the file is closed. The operating system releases it when the process ends, however it ends.
    Ours(File),
    /// Another process has it; its content can be read.
    Held(File),
}

/// Locks the file at `path`, creating it if missing. Does not wait.
pub fn lock(path: &Path) -> Result<Lock, FileError> {
    let file = options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(FileError::at("open", path))?;
    held_or(file, path, File::try_lock)
}

/// The file at `path` if a process has it locked, so that the caller can read which; `None` if it is unlocked or
/// missing.
pub fn held(path: &Path) -> Result<Option<File>, FileError> {
    let Some(file) = unless_missing(File::open(path)).map_err(FileError::at("open", path))? else {
        return Ok(None);
    };
    match held_or(file, path, File::try_lock_shared)? {
        Lock::Ours(_) => Ok(None),
        Lock::Held(file) => Ok(Some(file)),
    }
}

fn held_or(file: File, path: &Path, lock: impl FnOnce(&File) -> Result<(), TryLockError>) -> Result<Lock, FileError> {
    match lock(&file) {
        Ok(()) => Ok(Lock::Ours(file)),
        Err(TryLockError::WouldBlock) => Ok(Lock::Held(file)),
        Err(TryLockError::Error(error)) => Err(FileError::at("lock", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_what_a_crash_left_is_cleared() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deep/er/key.bin");
        make_directory(path.parent().unwrap()).unwrap();
        fs::write(staged(&path), "half").unwrap();
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert!(!staged(&path).exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            assert_eq!(mode(path.parent().unwrap()), 0o700);
        }
    }

    #[test]
    fn a_missing_file_is_neither_read_nor_removed_and_any_other_failure_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("key.bin");
        assert_eq!(read(&path).unwrap(), None);
        remove(&path).unwrap();
        fs::write(&path, "key").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(b"key".as_slice()));
        remove(&path).unwrap();
        assert!(!path.exists());
        assert!(read(root.path()).is_err());
        assert!(remove(root.path()).is_err());
        sync_directory(root.path()).unwrap();
        assert!(sync_directory(&path).is_err());
    }

    #[test]
    fn a_lock_is_held_until_its_file_is_closed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        assert!(held(&path).unwrap().is_none());
        let Lock::Ours(ours) = lock(&path).unwrap() else {
            panic!("nobody else has it");
        };
        assert!(held(&path).unwrap().is_some());
        assert!(matches!(lock(&path).unwrap(), Lock::Held(_)));
        drop(ours);
        assert!(held(&path).unwrap().is_none());
    }

    #[test]
    fn an_error_says_what_was_tried_with_which_path() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = make_directory(&file.join("below")).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot make") && error.contains("file/below"),
            "{error}"
        );
    }
}
