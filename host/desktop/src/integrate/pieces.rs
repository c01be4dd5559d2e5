//! Pieces of an integration: files that are written whole. A file counts as ours by a mark in it; every other file stays
//! as it is.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use serde::Serialize;

/// The mark of files that this command wrote: a key of desktop entries, or text in a comment.
pub(super) const MARK: &str = "X-Svc-Integration=1";

/// A file that has more bytes is not ours.
const MAX_BYTES: u64 = 64 * 1024;

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) path: PathBuf,
    pub(super) contents: String,
}

/// What was done, or would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Act {
    Created,
    Updated,
    Unchanged,
    Removed,
    /// It is not ours.
    Kept,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    path: String,
    pub(super) act: Act,
}

impl Step {
    pub(super) fn new(path: impl AsRef<Path>, act: Act) -> Self {
        Self {
            path: path.as_ref().display().to_string(),
            act,
        }
    }

    pub(super) fn line(&self, is_dry_run: bool) -> String {
        let path = &self.path;
        match (self.act, is_dry_run) {
            (Act::Created, false) => format!("created {path}"),
            (Act::Created, true) => format!("would create {path}"),
            (Act::Updated, false) => format!("updated {path}"),
            (Act::Updated, true) => format!("would update {path}"),
            (Act::Removed, false) => format!("removed {path}"),
            (Act::Removed, true) => format!("would remove {path}"),
            (Act::Unchanged, _) => format!("unchanged {path}"),
            (Act::Kept, _) => {
                format!("kept {path}: it was not written by svc integrate; move it away to let Svc have its name")
            }
        }
    }
}

/// What stands at a path.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Nothing,
    Ours(String),
    /// Another program's or the user's, or no regular file.
    Foreign,
}

fn look(path: &Path) -> anyhow::Result<Found> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => return Ok(Found::Nothing),
        Err(error) => return Err(error).with_context(|| format!("cannot look at {}", path.display())),
    };
    if !metadata.is_file() || metadata.len() > MAX_BYTES {
        return Ok(Found::Foreign);
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) if text.contains(MARK) => Found::Ours(text),
        _ => Found::Foreign,
    })
}

impl Piece {
    /// Writes the file, unless there is one that is not ours.
    pub(super) fn install(&self, is_dry_run: bool) -> anyhow::Result<Step> {
        let act = match look(&self.path)? {
            Found::Nothing => Act::Created,
            Found::Ours(text) if text == self.contents => Act::Unchanged,
            Found::Ours(_) => Act::Updated,
            Found::Foreign => Act::Kept,
        };
        if matches!(act, Act::Created | Act::Updated) && !is_dry_run {
            replace(&self.path, &self.contents)?;
        }
        Ok(Step::new(&self.path, act))
    }

    /// Removes the file, if it is ours. `None` if there is none.
    pub(super) fn remove(&self, is_dry_run: bool) -> anyhow::Result<Option<Step>> {
        let act = match look(&self.path)? {
            Found::Nothing => return Ok(None),
            Found::Foreign => Act::Kept,
            Found::Ours(_) => Act::Removed,
        };
        if act == Act::Removed && !is_dry_run {
            fs::remove_file(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))?;
        }
        Ok(Some(Step::new(&self.path, act)))
    }
}

/// Replaces a file in one step, so that a desktop that reads it meanwhile sees the old or the new one.
pub(super) fn replace(path: &Path, contents: &str) -> anyhow::Result<()> {
    let act = || format!("cannot write {}", path.display());
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let mut file = tempfile::NamedTempFile::new_in(directory).with_context(act)?;
    file.write_all(contents.as_bytes()).with_context(act)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are their owner's only; desktops read these as other programs of the same user do.
        let permissions = fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(permissions).with_context(act)?;
    }
    file.as_file().sync_all().with_context(act)?;
    file.persist(path).map(drop).with_context(act)
}

/// A path as text; a desktop's files are UTF-8.
pub(super) fn text_of(path: &Path) -> anyhow::Result<&str> {
    path.to_str().with_context(|| {
        format!(
            "the path of this executable ({}) is not UTF-8; install it elsewhere",
            path.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_program_is_neither_overwritten_nor_removed() {
        let directory = tempfile::tempdir().unwrap();
        let piece = Piece {
            path: directory.path().join("a/svc.desktop"),
            contents: format!("{MARK}\n"),
        };
        let act = |step: Step| step.act;
        assert_eq!(piece.install(true).map(act).unwrap(), Act::Created);
        assert!(!piece.path.exists());
        assert_eq!(piece.install(false).map(act).unwrap(), Act::Created);
        assert_eq!(piece.install(false).map(act).unwrap(), Act::Unchanged);
        fs::write(&piece.path, format!("{MARK} of an older version")).unwrap();
        assert_eq!(piece.install(false).map(act).unwrap(), Act::Updated);
        assert_eq!(piece.remove(false).unwrap().map(act), Some(Act::Removed));
        assert_eq!(piece.remove(false).unwrap(), None);
        fs::write(&piece.path, "of the user").unwrap();
        assert_eq!(piece.install(false).map(act).unwrap(), Act::Kept);
        assert_eq!(piece.remove(false).unwrap().map(act), Some(Act::Kept));
        assert_eq!(fs::read_to_string(&piece.path).unwrap(), "of the user");
        fs::remove_file(&piece.path).unwrap();
        #[cfg(unix)]
        {
            let target = directory.path().join("target");
            fs::write(&target, MARK).unwrap();
            std::os::unix::fs::symlink(&target, &piece.path).unwrap();
            assert_eq!(
                piece.install(false).map(act).unwrap(),
                Act::Kept,
                "a link leads elsewhere"
            );
        }
    }
}
