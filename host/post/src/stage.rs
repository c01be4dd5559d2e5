//! The hidden directory that an archive is unpacked to, beside its destination, and how its content appears: at once, by
//! one rename. A directory that a crash left is completed, or found and removed.

use std::{
    ffi::OsStr,
    fs::{self, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use private_files::FileError;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use transfer::FileName;

use crate::{rename_new::rename_new, wire::LOCK};

/// What stands in the directory's name before the run.
const SUFFIX: &str = ".svcunpack-";

/// The file by which such a directory is known to be ours.
const MARKER: &str = "svcunpack.json";

/// What a marker begins with.
const FORMAT: &str = "svcunpack 1";

/// How often, and after which pauses, it is checked whether a killed unpacker has ended: two seconds in all.
const ENDING_CHECKS: u32 = 100;
const ENDING_PAUSE: Duration = Duration::from_millis(20);

/// Held while a stage is made and while one is swept, so that none is taken for abandoned before it is locked.
static MAKING: Mutex<()> = Mutex::new(());

/// Identifies one attempt at unpacking: 1 to 40 letters, digits and dashes. No two attempts may share one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// A text that is no [`RunId`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a run is named by 1 to 40 letters, digits and dashes")]
pub struct InvalidRun;

impl TryFrom<String> for RunId {
    type Error = InvalidRun;

    fn try_from(text: String) -> Result<Self, InvalidRun> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_plain && matches!(text.len(), 1..=40) {
            Ok(Self(text))
        } else {
            Err(InvalidRun)
        }
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> Self {
        run.0
    }
}

impl RunId {
    /// A part of this attempt: that at the archive of this name. While the attempt is kept, so are its parts.
    pub fn part(&self, archive: &str) -> Result<Self, InvalidRun> {
        Self::try_from(format!("{}-{:08x}", self.0, crc32fast::hash(archive.as_bytes())))
    }
}

/// What appeared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placed {
    /// The name of the directory in the destination.
    pub name: String,
    /// Files in it.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Marker {
    format: String,
    run: RunId,
    /// Written when everything is unpacked, verified and synced: only the rename is left.
    complete: Option<Complete>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete {
    /// What is renamed, relative to the directory.
    payload: PathBuf,
    placed: Placed,
}

/// A stage of this process. It stays on the disk until [`remove`](Self::remove) or [`place`](Self::place).
#[derive(Debug)]
pub(crate) struct Stage {
    destination: PathBuf,
    path: PathBuf,
    run: RunId,
    /// Shared with the unpacker, so that neither end of one lets others remove the directory.
    lock: File,
}

impl Stage {
    /// Makes the directory for `run` in `destination`.
    pub(crate) fn make(destination: &Path, name: &FileName, run: &RunId) -> Result<Self, FileError> {
        let path = destination.join(format!(".{name}{SUFFIX}{}", run.0));
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(FileError::at("make", &path))?;
        let lock = locked(&path).map_err(FileError::at("lock", &path))?;
        let stage = Self {
            destination: destination.to_owned(),
            path,
            run: run.clone(),
            lock,
        };
        stage.mark(None)?;
        Ok(stage)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets `payload`, a path in the stage whose content is complete and synced, appear as `wanted` or its next free
    /// number. What is left of the stage says so until it is swept: the caller first saves that the result is there.
    pub(crate) fn place(
        self,
        payload: &Path,
        wanted: &FileName,
        (files, bytes): (u64, u64),
    ) -> Result<Placed, FileError> {
        let from = self.path.join(payload);
        for name in wanted.directories() {
            let to = self.destination.join(name.as_str());
            if fs::symlink_metadata(&to).is_ok() {
                continue;
            }
            let name = name.as_str().to_owned();
            let placed = Placed { name, files, bytes };
            self.mark(Some(Complete {
                payload: payload.to_owned(),
                placed: placed.clone(),
            }))?;
            match rename_new(&from, &to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(FileError::at("rename", &from)(error)),
                Ok(()) => {
                    private_files::sync_directory(&self.destination)?;
                    return Ok(placed);
                }
            }
        }
        Err(FileError::at("place", &self.destination)(
            io::ErrorKind::AlreadyExists.into(),
        ))
    }

    /// Removes the directory and everything in it.
    #[expect(
        clippy::disallowed_methods,
        reason = "it blocks anyway, and nothing tells of the end of a lock"
    )]
    pub(crate) fn remove(self) -> Result<(), FileError> {
        // An unpacker that was just killed may still be ending.
        for _ in 0..ENDING_CHECKS {
            if self.lock.try_lock().is_ok() {
                break;
            }
            std::thread::sleep(ENDING_PAUSE);
        }
        remove(&self.path)
    }

    fn mark(&self, complete: Option<Complete>) -> Result<(), FileError> {
        let marker = Marker {
            format: FORMAT.to_owned(),
            run: self.run.clone(),
            complete,
        };
        let text = serde_json::to_vec(&marker).expect("a marker has only texts and numbers");
        private_files::replace(&self.path.join(MARKER), &text)
    }
}

/// Continues an attempt that a crash interrupted: if everything was unpacked and verified, it is placed now if it was
/// not yet; asked again, it says the same until the stage is swept. `None` means that it has to be repeated, with another
/// run.
pub fn recover(destination: &Path, run: &RunId) -> Result<Option<Placed>, FileError> {
    let Some(path) = stages(destination)?.into_iter().find(|path| is_of(path, run)) else {
        return Ok(None);
    };
    let complete = read_marker(&path)?
        .filter(|marker| marker.run == *run)
        .and_then(|marker| marker.complete);
    let Some(Complete { payload, placed }) = complete else {
        return Ok(None);
    };
    let stage = Stage {
        destination: destination.to_owned(),
        lock: locked(&path).map_err(FileError::at("lock", &path))?,
        run: run.clone(),
        path,
    };
    if fs::symlink_metadata(stage.path.join(&payload)).is_ok() {
        let wanted = FileName::sanitise(&placed.name);
        return stage.place(&payload, &wanted, (placed.files, placed.bytes)).map(Some);
    }
    let is_there = fs::symlink_metadata(destination.join(&placed.name)).is_ok_and(|metadata| metadata.is_dir());
    Ok(is_there.then_some(placed))
}

/// Removes the stages in `directory` that a crash left, and returns how many. Those that a process still uses stay; so
/// does everything that has no marker of ours, and those of runs, or parts of them, that are still to be
/// [recovered](recover).
pub fn sweep(directory: &Path, keep: &[RunId]) -> Result<usize, FileError> {
    let mut removed = 0;
    let is_kept = |path: &PathBuf| keep.iter().any(|run| is_of(path, run) || is_part_of(path, run));
    for path in stages(directory)? {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_kept(&path) && !is_in_use(&path) && is_ours(&path)? {
            remove(&path)?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn remove(path: &Path) -> Result<(), FileError> {
    // The marker is removed last, so that what is left after a crash is still known to be ours.
    let entries = fs::read_dir(path).map_err(FileError::at("read", path))?;
    for entry in entries {
        let entry = entry.map_err(FileError::at("read", path))?.path();
        let is_directory = fs::symlink_metadata(&entry).is_ok_and(|metadata| metadata.is_dir());
        let result = match name_of(&entry) {
            Some(MARKER) => Ok(()),
            _ if is_directory => fs::remove_dir_all(&entry),
            _ => fs::remove_file(&entry),
        };
        result.map_err(FileError::at("remove", &entry))?;
    }
    private_files::remove(&path.join(MARKER))?;
    fs::remove_dir(path).map_err(FileError::at("remove", path))
}

/// Directories of this user whose names are those of stages.
fn stages(directory: &Path) -> Result<Vec<PathBuf>, FileError> {
    let entries = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(FileError::at("read", directory))?,
    };
    let is_stage = |path: &PathBuf| {
        let is_named = name_of(path).is_some_and(|name| name.starts_with('.') && name.contains(SUFFIX));
        let owner = geteuid().as_raw();
        is_named && fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == owner)
    };
    Ok(entries.flatten().map(|entry| entry.path()).filter(is_stage).collect())
}

/// Whether a stage is that of `run`.
fn is_of(path: &Path, run: &RunId) -> bool {
    let ending = format!("{SUFFIX}{}", run.0);
    name_of(path).is_some_and(|name| name.ends_with(&ending))
}

/// Whether a stage is that of a part of `run`.
fn is_part_of(path: &Path, run: &RunId) -> bool {
    let id = name_of(path).and_then(|name| name.rsplit_once(SUFFIX));
    let rest = id.and_then(|(_, id)| id.strip_prefix(run.0.as_str()));
    rest.is_some_and(|rest| rest.starts_with('-'))
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name().and_then(OsStr::to_str)
}

/// Whether a stage carries our marker. A crash right after it was made leaves one that is empty but for the lock.
fn is_ours(path: &Path) -> Result<bool, FileError> {
    if read_marker(path)?.is_some() {
        return Ok(true);
    }
    let mut entries = fs::read_dir(path).map_err(FileError::at("read", path))?.flatten();
    let unmarked = format!("{MARKER}.new");
    Ok(entries.all(|entry| {
        let name = entry.file_name();
        name == OsStr::new(LOCK) || name == OsStr::new(&unmarked)
    }))
}

fn read_marker(path: &Path) -> Result<Option<Marker>, FileError> {
    let text = private_files::read(&path.join(MARKER))?;
    let marker = text.and_then(|text| serde_json::from_slice::<Marker>(&text).ok());
    Ok(marker.filter(|marker| marker.format == FORMAT))
}

fn is_in_use(path: &Path) -> bool {
    match File::open(path.join(LOCK)).map(|lock| lock.try_lock()) {
        Ok(Err(TryLockError::WouldBlock)) => true,
        // Not locked, or never: whoever made it was killed before.
        Ok(_) | Err(_) => false,
    }
}

/// Holds the shared lock of a stage.
fn locked(path: &Path) -> io::Result<File> {
    let path = path.join(LOCK);
    let lock = private_files::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    lock.lock_shared()?;
    Ok(lock)
}
