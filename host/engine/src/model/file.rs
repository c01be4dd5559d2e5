//! The engine's own file operations: delete a task's files, rename without replacing, look whether they exist. Transports do
//! the rest.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use transfer::{
    FileName, Landing,
    part_file::{JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX, PART_SUFFIX, sync_directory},
};

use crate::model::{error::CommandError, id::Timestamp};

/// The most directories that are looked at for one new group.
const MAX_PLACES: usize = 100;

/// Where a new group that wants the directory `root` can be: there, or beside it with a number. A directory that exists
/// is used; a file that has the name is not replaced.
fn places(root: &Path) -> Vec<PathBuf> {
    let name = root
        .file_name()
        .and_then(|name| FileName::sanitise_or_none(&name.to_string_lossy()));
    let names = name.iter().flat_map(FileName::directories).take(MAX_PLACES);
    let places = names.map(|name| root.with_file_name(name.as_str()));
    places
        .filter(|place| place.is_dir() || fs::symlink_metadata(place).is_err())
        .collect()
}

/// [`places`] on a thread that may block; none without a `root`.
pub(crate) async fn places_of(root: Option<PathBuf>) -> Vec<PathBuf> {
    let Some(root) = root else { return Vec::new() };
    let looking = tokio::task::spawn_blocking(move || places(&root));
    looking.await.unwrap_or_default()
}

/// Whether a task's file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It exists.
    Present,
    /// It does not.
    Missing,
    /// It is not there, and neither is the directory in which it was: its disk may only be away.
    Away,
}

/// Whether the file of a task that completed at `completed_at` is still there. Reads names and times only.
pub(crate) fn look_for(path: &Path, completed_at: Option<Timestamp>) -> FileState {
    // An error is no answer: a disk that does not respond hides files, it does not lose them.
    if path.try_exists().unwrap_or(true) {
        return FileState::Present;
    }
    let directory = path.parent().and_then(|directory| fs::metadata(directory).ok());
    if directory
        .zip(completed_at)
        .is_some_and(|(directory, at)| may_have_received(&directory, at))
    {
        FileState::Missing
    } else {
        FileState::Away
    }
}

/// Whether a directory can be the one that received a file at `completed_at`, judged by its times: receiving it changed
/// the directory. The place where a disk is mounted at other times is older, and one that was made because the disk is
/// away was born later.
fn may_have_received(directory: &fs::Metadata, completed_at: Timestamp) -> bool {
    let millis = u64::try_from(completed_at.unix_millis()).unwrap_or(0);
    let completed_at = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
    let has_changed = directory.modified().is_ok_and(|at| at + CLOCK_STEP >= completed_at);
    has_changed && directory.created().map_or(true, |born| born <= completed_at)
}

/// The coarsest step of a file system's clock (FAT).
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// The part file and the journals beside the finished file's path.
pub(crate) fn part_files(path: &Path) -> Vec<PathBuf> {
    [PART_SUFFIX, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX]
        .iter()
        .map(|suffix| with_suffix(path, suffix))
        .collect()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Deletes files, and the directories among the paths, which end with a separator, if they are empty; missing ones are
/// ignored. A directory in the place of a file is not ours and stays. When this returns, the names
/// are gone from the disk, too: once a task's row is deleted, nothing would delete a file that a power cut brings back.
pub(crate) fn remove<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) {
    let mut changed = BTreeSet::new();
    for path in paths {
        let is_directory = path.as_os_str().to_string_lossy().ends_with(std::path::MAIN_SEPARATOR);
        let removed = if is_directory {
            fs::remove_dir(path)
        } else {
            fs::remove_file(path)
        };
        match removed {
            Ok(()) => changed.extend(path.parent()),
            // It holds what others put there.
            Err(error) if is_directory && error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot remove a deleted task's file"),
        }
    }
    for directory in changed {
        if let Err(error) = sync_directory(directory) {
            tracing::warn!(path = %directory.display(), %error, "cannot sync the directory of deleted files");
        }
    }
}

/// Checks whether a landing happened before a crash; if so, deletes what is left of the part file.
pub(crate) fn check_landing(landing: &Landing, rest: &[PathBuf]) -> FileState {
    if !landing.has_happened() {
        return FileState::Missing;
    }
    remove(rest);
    FileState::Present
}

/// One file of a rename.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// From here.
    pub from: PathBuf,
    /// To here.
    pub to: PathBuf,
}

/// Renames files in order and never replaces one; when this returns, the new names are on disk. A missing file is
/// skipped: it may have been renamed before a crash. If one cannot be renamed, those before it are renamed back.
pub(crate) fn rename(free: Option<&Path>, moves: &[Move]) -> Result<(), CommandError> {
    if let Some(taken) = free.filter(|free| fs::symlink_metadata(free).is_ok()) {
        return Err(CommandError::TargetExists(taken.to_owned()));
    }
    for (index, step) in moves.iter().enumerate() {
        let Err(error) = rename_new(&step.from, &step.to) else {
            continue;
        };
        if error.kind() == io::ErrorKind::NotFound {
            continue;
        }
        for done in &moves[..index] {
            let _best_effort = rename_new(&done.to, &done.from);
        }
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => CommandError::TargetExists(step.to.clone()),
            _ => failed(&step.from, &error),
        });
    }
    match moves.first().and_then(|step| step.to.parent()) {
        Some(directory) => sync_directory(directory).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(failed(directory, &error)),
        }),
        None => Ok(()),
    }
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Rename {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// A hard link is created only if the name is free, atomically. On file systems without links, checks and then renames.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_half_renamed(from, to) => {
            fs::remove_file(from)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Err(error),
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// Whether a crash came between creating the link and removing the old name. Counts links, because on a
/// case-insensitive file system one file can be found under two names.
#[cfg(unix)]
fn is_half_renamed(from: &Path, to: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (fs::symlink_metadata(from), fs::symlink_metadata(to)) {
        (Ok(from), Ok(to)) => from.nlink() > 1 && (from.dev(), from.ino()) == (to.dev(), to.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_half_renamed(_from: &Path, _to: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renaming_replaces_nothing_and_undoes_what_it_began() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["a.svcpart", "a.svcpart.journal", "b.svcpart.journal"] {
            fs::write(at(name), name).unwrap();
        }
        let step = |from: &str, to: &str| Move {
            from: at(from),
            to: at(to),
        };
        let moves = [
            step("a.svcpart", "b.svcpart"),
            step("a.svcpart.journal", "b.svcpart.journal"),
        ];
        assert_eq!(
            rename(Some(&at("b")), &moves),
            Err(CommandError::TargetExists(at("b.svcpart.journal")))
        );
        assert_eq!(fs::read_to_string(at("a.svcpart")).unwrap(), "a.svcpart");
        assert_eq!(
            fs::read_to_string(at("b.svcpart.journal")).unwrap(),
            "b.svcpart.journal"
        );
        assert!(!at("b.svcpart").exists());
        fs::remove_file(at("b.svcpart.journal")).unwrap();
        rename(Some(&at("b")), &moves).unwrap();
        assert!(at("b.svcpart").exists() && at("b.svcpart.journal").exists() && !at("a.svcpart").exists());
    }

    /// Every state in which a kill can leave the rename of two files: how many steps of it were done. A step is a link
    /// made or an old name removed.
    #[cfg(unix)]
    #[test]
    fn a_rename_that_a_kill_cut_short_goes_on_from_any_step() {
        for steps in 0..=4 {
            let dir = tempfile::tempdir().unwrap();
            let at = |name: &str| dir.path().join(name);
            let moves = ["x", "y"].map(|name| Move {
                from: at(name),
                to: at(&format!("new-{name}")),
            });
            for (step, done) in moves.iter().zip([steps.min(2), steps.max(2) - 2]) {
                fs::write(&step.from, step.from.file_name().unwrap().as_encoded_bytes()).unwrap();
                if done > 0 {
                    fs::hard_link(&step.from, &step.to).unwrap();
                }
                if done > 1 {
                    fs::remove_file(&step.from).unwrap();
                }
            }
            rename(None, &moves).unwrap();
            assert_eq!(fs::read(at("new-x")).unwrap(), b"x");
            assert_eq!(fs::read(at("new-y")).unwrap(), b"y");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "after {steps} steps");
        }
    }

    #[test]
    fn a_rename_that_goes_on_replaces_nothing_either() {
        let dir = tempfile::tempdir().unwrap();
        let step = Move {
            from: dir.path().join("mine"),
            to: dir.path().join("theirs"),
        };
        fs::write(&step.from, "mine").unwrap();
        fs::write(&step.to, "theirs").unwrap();
        let refused = rename(None, std::slice::from_ref(&step));
        assert_eq!(refused, Err(CommandError::TargetExists(step.to.clone())));
        assert_eq!(fs::read(&step.from).unwrap(), b"mine");
        assert_eq!(fs::read(&step.to).unwrap(), b"theirs");
    }
}
