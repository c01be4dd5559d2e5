//! Packages on the disk: one folder per package, named by its digest and never changed. A marker file, written last,
//! says that it is complete and has the digest of each file; a folder without it is deleted at the next start.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use market::Digest;
use plugin_package::Package;
use private_files::{FileError, sync_directory};

use crate::{
    error::{CommandError, DiskError},
    package::fault_point::{FaultPoints, Step},
};

/// The marker file. It cannot collide: no path component in a package begins with a dot.
const COMPLETE: &str = ".complete";

/// Where packages are.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    faults: FaultPoints,
}

impl Disk {
    pub(crate) fn new(root: PathBuf, faults: FaultPoints) -> Self {
        Self { root, faults }
    }

    fn folder(&self, digest: Digest) -> PathBuf {
        self.root.join(digest.to_string())
    }

    /// Writes a package. When this returns, it survives a power failure.
    pub(crate) fn put(&self, package: &Package) -> Result<(), DiskError> {
        let folder = self.folder(package.digest);
        if self
            .contents(package.digest)
            .is_ok_and(|contents| contents.len() == package.files.len())
            && package.files.keys().all(|path| self.read(package.digest, path).is_ok())
        {
            return Ok(());
        }
        remove(&folder)?;
        let mut folders: BTreeSet<&Path> = [folder.as_path()].into();
        let paths: Vec<_> = package.files.keys().map(|path| folder.join(path)).collect();
        for (path, bytes) in paths.iter().zip(package.files.values()) {
            let parents = path.ancestors().skip(1).take_while(|parent| *parent != self.root);
            folders.extend(parents);
            let parent = path.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).map_err(FileError::at("make", parent))?;
            self.write(path, bytes)?;
        }
        // The deepest first, so that no folder is durable before its content.
        for folder in folders.iter().rev() {
            sync_directory(folder)?;
        }
        let lines = package
            .files
            .iter()
            .map(|(path, bytes)| format!("{} {path}\n", Digest::of(bytes)));
        self.write(&folder.join(COMPLETE), lines.collect::<String>().as_bytes())?;
        sync_directory(&folder)?;
        Ok(sync_directory(&self.root)?)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), FileError> {
        self.faults
            .pass(Step::Materialise)
            .map_err(FileError::at("write", path))?;
        let written = File::create(path).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(FileError::at("write", path))
    }

    /// A file of a package, with its digest verified.
    pub(crate) fn read(&self, digest: Digest, path: &str) -> Result<Bytes, DiskError> {
        let full = self.folder(digest).join(path);
        let contents = self.contents(digest)?;
        let Some(expected) = contents.get(path) else {
            return Err(DiskError::Damaged(full));
        };
        let bytes = fs::read(&full).map_err(FileError::at("read", &full))?;
        let is_whole = Digest::of(&bytes) == *expected;
        is_whole.then(|| bytes.into()).ok_or(DiskError::Damaged(full))
    }

    /// All files of a package, with their digests verified.
    pub(crate) fn read_all(&self, digest: Digest) -> Result<BTreeMap<String, Bytes>, DiskError> {
        let paths = self.contents(digest)?.into_keys();
        paths
            .map(|path| Ok((path.clone(), self.read(digest, &path)?)))
            .collect()
    }

    /// The files of a package and their digests.
    fn contents(&self, digest: Digest) -> Result<BTreeMap<String, Digest>, DiskError> {
        let path = self.folder(digest).join(COMPLETE);
        let text = fs::read_to_string(&path).map_err(FileError::at("read", &path))?;
        let parse = |line: &str| {
            let (digest, path) = line.split_once(' ')?;
            Some((path.to_owned(), digest.parse().ok()?))
        };
        let contents: Option<_> = text.lines().map(parse).collect();
        contents.ok_or(DiskError::Damaged(path))
    }

    /// Deletes packages that are not in `used`, and incomplete ones.
    pub(crate) fn keep_only(&self, used: &BTreeSet<Digest>) -> Result<(), DiskError> {
        fs::create_dir_all(&self.root).map_err(FileError::at("make", &self.root))?;
        for entry in fs::read_dir(&self.root).map_err(FileError::at("list", &self.root))? {
            let path = entry.map_err(FileError::at("list", &self.root))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            let is_used = name.parse().is_ok_and(|digest| used.contains(&digest));
            if !is_used {
                self.faults
                    .pass(Step::Collect)
                    .map_err(FileError::at("remove", &path))?;
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Deletes a folder, its marker first, so that an interrupted deletion leaves no valid package.
fn remove(folder: &Path) -> Result<(), FileError> {
    private_files::remove(&folder.join(COMPLETE))?;
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(FileError::at("remove", folder)),
    }
}

/// Runs `work` on a thread that may block.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T, CommandError>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T, CommandError> + Send + 'static,
{
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| CommandError::Closed)?
}
