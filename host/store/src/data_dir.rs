//! The data directory and the lock that keeps a second process out of it.

use std::{
    fs::File,
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
};

use private_files::{FileError, Lock};

/// Name of the file that is locked, inside the directory.
const LOCK_FILE: &str = "lock";

/// A directory that this process alone may use, for as long as the value lives.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    /// Holds the lock; the operating system releases it when the process ends, however it ends.
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses it.
    #[error("the data directory {} is in use by {holder}", path.display())]
    Held {
        /// The directory.
        path: PathBuf,
        /// `process 1234`, or `another process` if it did not say.
        holder: String,
    },
    /// It cannot be created, opened or locked.
    #[error(transparent)]
    File(#[from] FileError),
}

impl DataDir {
    /// Creates the directory if missing (readable by its owner only) and locks it.
    pub fn lock(path: impl Into<PathBuf>) -> Result<Self, LockError> {
        let path = path.into();
        private_files::make_directory(&path)?;
        let lock_path = path.join(LOCK_FILE);
        match private_files::lock(&lock_path)? {
            Lock::Held(mut file) => Err(LockError::Held {
                holder: holder(&mut file),
                path,
            }),
            Lock::Ours(mut file) => {
                write_pid(&mut file).map_err(FileError::at("write", &lock_path))?;
                Ok(Self { path, _lock: file })
            }
        }
    }

    /// Waits until no process uses the directory at `path`. Blocks for as long as that takes.
    pub fn wait_until_free(path: &Path) -> io::Result<()> {
        match File::open(path.join(LOCK_FILE)) {
            Ok(file) => file.lock_shared(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The process that uses the directory at `path`: `process 1234` or `another process`; `None` if there is none.
    pub fn holder_of(path: &Path) -> Result<Option<String>, FileError> {
        let held = private_files::held(&path.join(LOCK_FILE))?;
        Ok(held.map(|mut file| holder(&mut file)))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` inside the directory.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    match file.read_to_string(&mut text).map(|_| text.trim().parse::<u32>()) {
        Ok(Ok(pid)) => format!("process {pid}"),
        _ => "another process".to_owned(),
    }
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let root = tempfile::tempdir().unwrap();
        let first = DataDir::lock(root.path().join("data")).unwrap();
        let error = DataDir::lock(first.path()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("in use by process {}", std::process::id())),
            "{error}"
        );
        assert_eq!(
            DataDir::holder_of(first.path()).unwrap(),
            Some(format!("process {}", std::process::id()))
        );
        let path = first.path().to_owned();
        let waiter = std::thread::spawn(move || DataDir::wait_until_free(&path));
        drop(first);
        waiter.join().unwrap().unwrap();
        assert_eq!(DataDir::holder_of(&root.path().join("data")).unwrap(), None);
        DataDir::lock(root.path().join("data")).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = DataDir::lock(file.join("data")).unwrap_err().to_string();
        assert!(error.contains("file/data"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_may_read_the_directory() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::lock(root.path().join("data")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(dir.path()), 0o700);
        assert_eq!(mode(&dir.join(LOCK_FILE)), 0o600);
    }
}
