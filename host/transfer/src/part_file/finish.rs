//! The last step: renames a verified part file to its final name.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::SystemTime,
};

use crate::{
    failure::{Failure, FailureKind},
    os,
    part_file::file::PartFile,
};

/// A verified part file that is about to be renamed to `path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landing {
    /// The final path.
    pub path: PathBuf,
    /// The inode number, by which the file is recognised under any name.
    pub inode: u64,
    /// Its size.
    pub size_bytes: u64,
}

impl Landing {
    /// Whether this very file, not another of its name, is at `path`.
    pub fn has_happened(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|metadata| {
            metadata.is_file() && os::inode(&metadata) == self.inode && metadata.len() == self.size_bytes
        })
    }
}

impl PartFile {
    /// Turns the verified part file of `size` bytes into the finished file: syncs it, sets its modification time and
    /// renames it, to another name if the first was taken meanwhile. Each name is announced before the rename. May
    /// block for long. Returns the final path.
    pub fn finish(
        &self,
        size: u64,
        modified: Option<SystemTime>,
        announce: impl Fn(Landing) -> Result<(), Failure>,
    ) -> Result<PathBuf, Failure> {
        let failed = |act: &str, error: &io::Error| Failure::disk(act, &self.part, error);
        let metadata = self.file().metadata().map_err(|error| failed("read", &error))?;
        if metadata.len() != size {
            self.file().set_len(size).map_err(|error| failed("cut", &error))?;
        }
        if let Some(time) = modified {
            self.file()
                .set_modified(time)
                .map_err(|error| failed("set the time of", &error))?;
        }
        os::make_usual(self.file(), &metadata).map_err(|error| failed("set the permissions of", &error))?;
        let has_disk = self.has_disk();
        if has_disk {
            self.file().sync_all().map_err(|error| failed("sync", &error))?;
        }
        let inode = os::inode(&metadata);
        let path = self.rename_to_final(|path| {
            announce(Landing {
                path: path.to_owned(),
                inode,
                size_bytes: size,
            })
        })?;
        if has_disk {
            sync_directory(&self.directory).map_err(|error| Failure::disk("sync", &self.directory, &error))?;
        }
        if let Some(journal) = self.journal().take() {
            // The file is complete; a leftover journal is deleted by the next claim of its name.
            let _leftover = journal.remove();
        }
        Ok(path)
    }

    fn rename_to_final(&self, announce: impl Fn(&Path) -> Result<(), Failure>) -> Result<PathBuf, Failure> {
        let first = self.final_path();
        if self.replaces.load(Ordering::Relaxed) {
            announce(&first)?;
            fs::rename(&self.part, &first).map_err(|error| Failure::disk("replace", &first, &error))?;
            return Ok(first);
        }
        for name in self.name.alternatives() {
            let path = self.directory.join(name.as_str());
            announce(&path)?;
            match os::rename_new(&self.part, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::disk("name", &path, &error)),
            }
        }
        Err(Failure::new(
            FailureKind::Exists,
            format!("{} and all its alternatives exist", first.display()),
        ))
    }
}

/// Syncs the entries of a directory. Blocks.
pub fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(directory)?.sync_all()
    } else {
        Ok(())
    }
}
