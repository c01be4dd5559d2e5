//! What the engine itself does to files: remove a task's own, rename without replacing, look whether they are there.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use transfer::part_file::{JOURNAL_SUFFIX, PART_SUFFIX};

use crate::error::CommandError;

/// The part file and the journal that lie beside the finished file's path.
pub(crate) fn part_files(path: &Path) -> Vec<PathBuf> {
    [PART_SUFFIX, JOURNAL_SUFFIX]
        .iter()
        .map(|suffix| with_suffix(path, suffix))
        .collect()
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes files; one that is gone already does not matter. Only files: a directory of the name is not ours.
pub(crate) fn remove(paths: &[PathBuf]) {
    for path in paths {
        match fs::remove_file(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(path = %path.display(), %error, "cannot remove a deleted task's file"),
        }
    }
}

/// A file that gets another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// From here.
    pub from: PathBuf,
    /// To here.
    pub to: PathBuf,
}

/// Renames files in order, none of them over an existing one. A file that is not there is passed over. If one cannot
/// be renamed, those before it get their names back.
pub(crate) fn rename(free: &Path, moves: &[Move]) -> Result<(), CommandError> {
    if fs::symlink_metadata(free).is_ok() {
        return Err(CommandError::TargetExists(free.to_owned()));
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
            _ => CommandError::Rename {
                path: step.from.clone(),
                reason: error.to_string(),
            },
        });
    }
    Ok(())
}

/// A link is made only if the name is free, in one step; file systems without links get a look and a rename.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Err(error),
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
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
            rename(&at("b"), &moves),
            Err(CommandError::TargetExists(at("b.svcpart.journal")))
        );
        assert_eq!(fs::read_to_string(at("a.svcpart")).unwrap(), "a.svcpart");
        assert_eq!(
            fs::read_to_string(at("b.svcpart.journal")).unwrap(),
            "b.svcpart.journal"
        );
        assert!(!at("b.svcpart").exists());
        fs::remove_file(at("b.svcpart.journal")).unwrap();
        rename(&at("b"), &moves).unwrap();
        assert!(at("b.svcpart").exists() && at("b.svcpart.journal").exists() && !at("a.svcpart").exists());
    }
}
