//! The hidden directory that an archive is unpacked to, beside its destination, and how its content appears: at once, by
//! one rename. A directory that a crash left is completed, or found and removed.
//!
//! Only its owner may write to it, and it is used through the descriptor it was opened with: who renames it, or puts
//! something else in its place, changes nothing of what is written and removed.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use private_files::FileError;
use rustix::fs::{OFlags, Stat, fstat};
use serde::{Deserialize, Serialize};
use transfer::FileName;

use crate::{
    dir::{Dir, Identity, Original, is_directory},
    wire::LOCK,
};

/// What stands in the directory's name before the run.
const SUFFIX: &str = ".svcunpack-";

/// The file by which such a directory is known to be ours.
const MARKER: &str = "svcunpack.json";

/// The marker before it takes the place of the last one.
const NEW_MARKER: &str = "svcunpack.json.new";

/// The longest marker: the paths of all volumes of an archive.
const MAX_MARKER_BYTES: u64 = 8 << 20;

/// What the files begin with by which it is known what the file system makes of owners and modes.
const PROBE: &str = "probe-";

/// What a marker begins with.
const FORMAT: &str = "svcunpack 1";

/// What the mode of a stage does not have.
const OTHERS_WRITE: rustix::fs::RawMode = 0o022;

/// The mode of a file for its owner only.
const OF_OWNER: u32 = 0o600;

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

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// What appeared.
    pub placed: Placed,
    /// The files of the archive, which are kept: see [`remove_originals`](crate::remove_originals).
    pub originals: Vec<Original>,
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
    /// The files of the archive, as they were read.
    #[serde(default)]
    originals: Vec<Original>,
    /// Of the payload; none in a marker of an older version.
    #[serde(default)]
    identity: Option<Identity>,
}

/// What appeared, and what distinguishes it from anything that takes its name later.
#[derive(Debug)]
pub(crate) struct Appeared {
    pub(crate) placed: Placed,
    identity: Identity,
}

/// A stage whose content is complete, and not visible.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub(crate) stage: Stage,
    pub(crate) payload: PathBuf,
    /// As it will be placed, if the name is free.
    pub(crate) wanted: Placed,
    pub(crate) originals: Vec<Original>,
}

/// What a sweep has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Stages that were removed.
    pub removed: usize,
    /// Stages that a process still uses, or of which that cannot be told: another sweep may remove them.
    pub in_use: usize,
}

/// A stage of this process. It stays on the disk until [`remove`](Self::remove) or [`place`](Self::place).
#[derive(Debug)]
pub(crate) struct Stage {
    destination: Dir,
    name: String,
    dir: Dir,
    run: RunId,
    /// Shared with the unpacker, so that neither end of one lets others remove the directory.
    lock: File,
}

impl Stage {
    /// Makes the directory for `run` in `destination`.
    pub(crate) fn make(destination: &Dir, name: &FileName, run: &RunId) -> Result<Self, FileError> {
        let destination = destination.again()?;
        let name = format!(".{name}{SUFFIX}{}", run.0);
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = destination.make(&name)?;
        let lock = locked(&dir, OFlags::EXCL)?;
        if !is_private(&dir)? {
            // Not the one that was made: another process has put it in its place.
            return Err(destination.error("make", &name, io::ErrorKind::PermissionDenied));
        }
        let stage = Self {
            destination,
            name,
            dir,
            run: run.clone(),
            lock,
        };
        stage.mark(None)?;
        Ok(stage)
    }

    /// The directory.
    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Lets `payload`, a directory below the stage whose content is complete and synced, appear as `wanted` or its next free
    /// number. What is left of the stage says so until it is swept: the caller first saves that the result is there.
    pub(crate) fn place(
        &self,
        payload: &Path,
        wanted: &FileName,
        (files, bytes): (u64, u64),
        originals: &[Original],
    ) -> Result<Appeared, FileError> {
        let (from, payload_name) = self.payload(payload)?;
        let identity = from.identity(payload_name)?;
        for name in wanted.directories() {
            let name = name.as_str();
            if self.destination.find(name).is_some() {
                continue;
            }
            let placed = Placed {
                name: name.to_owned(),
                files,
                bytes,
            };
            self.mark(Some(Complete {
                payload: payload.to_owned(),
                placed: placed.clone(),
                originals: originals.to_vec(),
                identity: Some(identity),
            }))?;
            match from.rename(payload_name, &self.destination, name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(from.error("rename", payload_name, error)),
                Ok(()) => {
                    let appeared = Appeared { placed, identity };
                    return match self.destination.sync() {
                        Ok(()) => Ok(appeared),
                        Err(error) => {
                            // Not reported; the first error is the one that says what is wrong.
                            let _is_left = self.take_back(payload, &appeared);
                            Err(error)
                        }
                    };
                }
            }
        }
        Err(self
            .destination
            .error("place", wanted.as_str(), io::ErrorKind::AlreadyExists))
    }

    /// Takes back what [`place`](Self::place) let appear, and nothing that has its name instead.
    pub(crate) fn take_back(&self, payload: &Path, appeared: &Appeared) -> Result<(), FileError> {
        let Appeared { placed, identity } = appeared;
        let (into, payload_name) = self.payload(payload)?;
        self.destination
            .rename_same(&placed.name, *identity, &into, payload_name)?;
        self.mark(None)
    }

    /// The directory that the payload is in, and its name there.
    fn payload<'a>(&self, payload: &'a Path) -> Result<(Dir, &'a OsStr), FileError> {
        let Some(Component::Normal(name)) = payload.components().next_back() else {
            return Err(self.dir.error("open", payload, io::ErrorKind::InvalidInput));
        };
        let parent = payload.parent().unwrap_or(Path::new(""));
        Ok((self.dir.enter_all(parent)?, name))
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
        remove(&self.destination, &self.name, &self.dir)
    }

    fn mark(&self, complete: Option<Complete>) -> Result<(), FileError> {
        let marker = Marker {
            format: FORMAT.to_owned(),
            run: self.run.clone(),
            complete,
        };
        let text = serde_json::to_vec(&marker).expect("a marker has only texts and numbers");
        self.dir.remove(NEW_MARKER)?;
        self.dir.write_new(NEW_MARKER, OF_OWNER, &text)?;
        self.dir.replace(NEW_MARKER, MARKER)?;
        self.dir.sync()
    }
}

/// Continues an attempt that a crash interrupted: if everything was unpacked and verified, it is placed now if it was
/// not yet; asked again, it says the same until the stage is swept. `None` means that it has to be repeated, with another
/// run.
pub fn recover(destination: &Path, run: &RunId) -> Result<Option<Unpacked>, FileError> {
    let found = opened(destination)?.map(|destination| complete_stage(destination, run));
    let Some((stage, complete)) = found.transpose()?.flatten() else {
        return Ok(None);
    };
    let Complete {
        payload,
        mut placed,
        originals,
        identity,
    } = complete;
    let (parent, payload_name) = stage.payload(&payload)?;
    if parent.find(payload_name).is_some() {
        let wanted = FileName::sanitise(&placed.name);
        let appeared = stage.place(&payload, &wanted, (placed.files, placed.bytes), &originals)?;
        placed = appeared.placed;
    } else {
        let found = stage.destination.find(&placed.name);
        let is_it = |identity| {
            stage
                .destination
                .identity(&placed.name)
                .is_ok_and(|found| found == identity)
        };
        if !found.is_some_and(|found| is_directory(&found)) || !identity.is_none_or(is_it) {
            return Ok(None);
        }
    }
    Ok(Some(Unpacked { placed, originals }))
}

/// As [`recover`], but what was placed already is hidden again: the caller places it when everything else is done.
pub(crate) fn recover_hidden(destination: Dir, run: &RunId) -> Result<Option<Hidden>, FileError> {
    let Some((stage, complete)) = complete_stage(destination, run)? else {
        return Ok(None);
    };
    let Complete {
        payload,
        placed: wanted,
        originals,
        identity,
    } = complete;
    let (parent, payload_name) = stage.payload(&payload)?;
    if parent.find(payload_name).is_none() {
        let Some(identity) = identity else {
            return Ok(None);
        };
        let placed = wanted.clone();
        match stage.take_back(&payload, &Appeared { placed, identity }) {
            // Another process has removed or renamed it.
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => return Ok(None),
            taken => taken?,
        }
    }
    Ok(Some(Hidden {
        stage,
        payload,
        wanted,
        originals,
    }))
}

/// The stage of `run` in which everything is complete.
fn complete_stage(destination: Dir, run: &RunId) -> Result<Option<(Stage, Complete)>, FileError> {
    for name in stages(&destination)?.into_iter().filter(|name| is_of(name, run)) {
        let Some(dir) = private(&destination, &name) else {
            continue;
        };
        let marker = read_marker(&dir)?.filter(|marker| marker.run == *run);
        if let Some(complete) = marker.and_then(|marker| marker.complete) {
            let stage = Stage {
                lock: locked(&dir, OFlags::empty())?,
                run: run.clone(),
                destination,
                name,
                dir,
            };
            return Ok(Some((stage, complete)));
        }
    }
    Ok(None)
}

/// Removes the stages in `directory` that a crash left. Those that a process still uses stay; so does everything that has no
/// marker of ours, and those of runs, or parts of them, that are still to be [recovered](recover).
pub fn sweep(directory: &Path, keep: &[RunId]) -> Result<Swept, FileError> {
    let mut swept = Swept::default();
    let Some(directory) = opened(directory)? else {
        return Ok(swept);
    };
    let is_kept = |name: &str| keep.iter().any(|run| is_of(name, run) || is_part_of(name, run));
    for name in stages(&directory)?.into_iter().filter(|name| !is_kept(name)) {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(dir) = private(&directory, &name) else {
            continue;
        };
        if !is_ours(&dir)? {
            continue;
        }
        if is_in_use(&dir) {
            swept.in_use += 1;
        } else {
            remove(&directory, &name, &dir)?;
            swept.removed += 1;
        }
    }
    Ok(swept)
}

/// The directory, unless it is gone.
fn opened(directory: &Path) -> Result<Option<Dir>, FileError> {
    match Dir::open(directory) {
        Err(error)
            if matches!(
                error.source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        opened => opened.map(Some),
    }
}

/// Removes what is in a stage, and the stage, if it still has its name.
fn remove(destination: &Dir, name: &str, dir: &Dir) -> Result<(), FileError> {
    // The marker is removed last, so that what is left after a crash is still known to be ours.
    let names = dir.names()?;
    let mut others = names.iter().filter(|name| *name != OsStr::new(MARKER));
    others.try_for_each(|name| dir.remove(name))?;
    dir.remove(MARKER)?;
    destination.remove_empty(name)
}

/// Names that are those of stages.
fn stages(directory: &Dir) -> Result<Vec<String>, FileError> {
    let names = directory
        .names()?
        .into_iter()
        .filter_map(|name| name.into_string().ok());
    let named = names.filter(|name| name.starts_with('.') && name.contains(SUFFIX));
    Ok(named.collect())
}

/// Opens a directory that only this user writes to; what cannot be opened is a link, or of somebody else.
fn private(directory: &Dir, name: &str) -> Option<Dir> {
    let dir = directory.enter(name).ok()?;
    is_private(&dir).is_ok_and(|is_private| is_private).then_some(dir)
}

/// Whether only this user writes to a directory, as far as its file system knows users.
fn is_private(dir: &Dir) -> Result<bool, FileError> {
    static PROBES: AtomicU64 = AtomicU64::new(0);
    let name = format!(
        "{PROBE}{}-{}",
        std::process::id(),
        PROBES.fetch_add(1, Ordering::Relaxed)
    );
    let probe = dir.create(&name, OFlags::EXCL, OF_OWNER);
    let probe = probe.and_then(|probe| Ok(fstat(probe)?));
    // Others may have put a directory in its place, unless it turns out that they cannot.
    dir.remove_file(&name)?;
    let probe = probe.map_err(|error| dir.error("make", &name, error))?;
    Ok(admits_owner_only(&dir.metadata()?, &probe))
}

/// Whether only the owner of `probe`, which was made for its owner only, writes to `dir`. Where that mode was not kept, as on
/// FAT, the mount options decide who writes to all of it.
fn admits_owner_only(dir: &Stat, probe: &Stat) -> bool {
    let keeps_modes = probe.st_mode & 0o777 & !(OF_OWNER as rustix::fs::RawMode) == 0;
    dir.st_uid == probe.st_uid && (dir.st_mode & OTHERS_WRITE == 0 || !keeps_modes)
}

/// Whether a stage is that of `run`.
fn is_of(name: &str, run: &RunId) -> bool {
    name.ends_with(&format!("{SUFFIX}{}", run.0))
}

/// Whether a stage is that of a part of `run`.
fn is_part_of(name: &str, run: &RunId) -> bool {
    let id = name.rsplit_once(SUFFIX);
    let rest = id.and_then(|(_, id)| id.strip_prefix(run.0.as_str()));
    rest.is_some_and(|rest| rest.starts_with('-'))
}

/// Whether a stage carries our marker. A crash right after it was made leaves one that is empty but for the lock.
fn is_ours(dir: &Dir) -> Result<bool, FileError> {
    if read_marker(dir)?.is_some() {
        return Ok(true);
    }
    let names = dir.names()?;
    let is_first =
        |name: &OsStr| name == LOCK || name == NEW_MARKER || name.as_encoded_bytes().starts_with(PROBE.as_bytes());
    Ok(names.iter().all(|name| is_first(name)))
}

fn read_marker(dir: &Dir) -> Result<Option<Marker>, FileError> {
    let mut text = Vec::new();
    let read = dir
        .open_regular(MARKER)
        .and_then(|file| file.take(MAX_MARKER_BYTES).read_to_end(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| dir.error("read", MARKER, error))?,
    };
    let marker = serde_json::from_slice::<Marker>(&text).ok();
    Ok(marker.filter(|marker| marker.format == FORMAT))
}

fn is_in_use(dir: &Dir) -> bool {
    match dir.open_regular(LOCK) {
        Ok(lock) => lock.try_lock().is_err(),
        // Without one, the process that made it was killed before. What cannot be told is no reason to remove it.
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Holds the shared lock of a stage.
fn locked(dir: &Dir, flags: OFlags) -> Result<File, FileError> {
    let lock = dir.create(LOCK, flags, OF_OWNER).and_then(|lock| {
        lock.lock_shared()?;
        Ok(lock)
    });
    lock.map_err(|error| dir.error("lock", LOCK, error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn where_modes_are_not_kept_a_stage_is_one_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::open(root.path()).unwrap();
        assert!(is_private(&dir).unwrap());
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_private(&dir).unwrap());
        assert!(dir.names().unwrap().is_empty());
        let probe = dir.create("probe", OFlags::EXCL, OF_OWNER).unwrap();
        let (open, mut probe) = (dir.metadata().unwrap(), fstat(probe).unwrap());
        assert!(!admits_owner_only(&open, &probe));
        // As on a mount with one mode for everything.
        probe.st_mode |= 0o777;
        assert!(admits_owner_only(&open, &probe));
        probe.st_uid += 1;
        assert!(!admits_owner_only(&open, &probe));
    }
}
