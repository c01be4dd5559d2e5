//! Where the files of a torrent are, and under which names. Blocks only to look what is there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use metainfo::{Info, InfoHash};
use transfer::{Failure, FailureKind, FileName, file_name::PART_SUFFIX};

use super::open;

/// Where the files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Name of the file, or of the directory of files.
    pub(crate) top: String,
    pub(crate) files: Vec<Place>,
}

/// Where a file is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Another path below the top than the torrent names.
    pub(crate) renamed: Option<String>,
    /// It has its final name.
    pub(crate) is_finished: bool,
    /// It is not wanted: its bytes are kept in the parts file.
    pub(crate) in_parts: bool,
}

/// Size and time of the last change of a file; zeros if it does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    pub(crate) changed_nanos: u64,
}

/// What there is of a torrent.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) files: Vec<PathBuf>,
    /// Those that contain them, deepest first; they may contain other files, too.
    pub(crate) directories: Vec<PathBuf>,
}

impl Places {
    /// The places of a torrent that begins.
    pub(crate) fn new(top: String, info: &Info) -> Self {
        Self {
            top,
            files: vec![Place::default(); info.files().len()],
        }
    }

    /// [`new`](Self::new) with other paths, if files may have them; for what is only shown.
    pub(crate) fn renamed(top: String, info: &Info, paths: &[(u32, String)]) -> Self {
        let mut places = Self::new(top, info);
        let mut renamed = places.clone();
        if renamed.rename(info, paths).is_ok() {
            places = renamed;
        }
        places
    }

    /// Gives files other paths than the torrent names. Nothing is there yet.
    pub(crate) fn rename(&mut self, info: &Info, paths: &[(u32, String)]) -> Result<(), Failure> {
        for (index, path) in paths {
            // They may be chosen before anybody knows how many files there are.
            let Some(file) = self.files.get_mut(*index as usize) else {
                continue;
            };
            if !is_path_in(info, path) {
                return Err(no_path(path));
            }
            if info.is_single_file() {
                path.clone_into(&mut self.top);
            } else {
                file.renamed = Some(path.clone());
            }
        }
        if paths.is_empty() {
            return Ok(());
        }
        let mut all = BTreeSet::new();
        let mut finals = (0..self.files.len()).map(|index| self.final_relative(info, index));
        match finals.find(|path| !all.insert(path.to_lowercase())) {
            Some(twice) => {
                let message = format!("{twice:?} would be the path of two files; choose another one");
                Err(Failure::new(FailureKind::InvalidSource, message))
            }
            None => Ok(()),
        }
    }

    /// The path of a file below the directory, as it is on the disk now.
    pub(crate) fn relative(&self, info: &Info, index: usize) -> String {
        let suffix = if self.files[index].is_finished { "" } else { PART_SUFFIX };
        format!("{}{suffix}", self.final_relative(info, index))
    }

    /// The path that a file has once it is complete.
    pub(crate) fn final_relative(&self, info: &Info, index: usize) -> String {
        if info.is_single_file() {
            return self.top.clone();
        }
        let path = self.files[index].renamed.as_deref();
        format!("{}/{}", self.top, path.unwrap_or_else(|| info.files()[index].shown()))
    }

    /// Size and time of the last change of each file, as they are on the disk.
    pub(crate) fn stamps(&self, info: &Info, directory: &Path) -> Vec<Stamp> {
        let parts = self.files.iter().any(|place| place.in_parts);
        let parts = parts.then(|| stamp(&directory.join(parts_name(info.hash())))).flatten();
        let files = (0..self.files.len()).map(|index| {
            if self.files[index].in_parts {
                return parts.unwrap_or_default();
            }
            stamp(&directory.join(self.relative(info, index))).unwrap_or_default()
        });
        files.collect()
    }

    /// The files that are there, without the parts file, and the directories of all of them. Finished files only if they
    /// are asked for. None to which a symbolic link leads.
    pub(crate) fn paths(&self, info: &Info, directory: &Path, with_finished: bool) -> Paths {
        let (mut files, mut directories) = (Vec::new(), BTreeSet::new());
        for (index, place) in self.files.iter().enumerate() {
            let relative = self.relative(info, index);
            let path = directory.join(&relative);
            let is_asked_for = !place.in_parts && (with_finished || !place.is_finished);
            if is_asked_for && !open::leads_through_link(directory, &relative) && fs::symlink_metadata(&path).is_ok() {
                files.push(path);
            }
            let mut parent = Path::new(&relative).parent();
            while let Some(below) = parent.filter(|below| !below.as_os_str().is_empty()) {
                directories.insert(below.to_owned());
                parent = below.parent();
            }
        }
        let there = directories.into_iter().rev().map(|below| directory.join(below));
        Paths {
            files,
            directories: there.filter(|path| is_directory(path)).collect(),
        }
    }
}

/// Whether a file of the torrent may have this path below the top, or the only file this name.
pub(super) fn is_path_in(info: &Info, path: &str) -> bool {
    FileName::is_path(path) && !(info.is_single_file() && path.contains('/'))
}

pub(super) fn no_path(path: &str) -> Failure {
    let message = format!("{path:?} is no path of a file in this torrent");
    Failure::new(FailureKind::InvalidSource, message)
}

fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Stamp {
        bytes: metadata.len(),
        changed_nanos: u64::try_from(changed.as_nanos()).ok()?,
    })
}

/// Name of the file that holds parts of unwanted files.
pub(crate) fn parts_name(info_hash: InfoHash) -> String {
    format!(".{info_hash}.svcparts")
}

/// Whether it is a directory, and no link to one.
fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}
