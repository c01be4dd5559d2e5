//! Torrents that are not in a session: what their records say. Looks what is on the disk; opens no file of a torrent.
//! Everything here blocks.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use metainfo::Info;
use transfer::{Failure, FailureKind, FileName};

use crate::{
    bitfield::Bitfield,
    config::Content,
    heart::Priority,
    storage::{self, Places, Storage, Target, resume::ResumeFile},
    view::FileView,
};

/// What is there of a torrent, as far as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// The file or directory that it is stored in.
    pub path: PathBuf,
    /// Its files. Those that no run has wanted have the priority [`Priority::Skip`].
    pub files: Vec<FileView>,
    /// Pieces that are there, as in [`crate::PiecesView::have`].
    pub have: Vec<u8>,
}

/// Reads what an earlier run recorded of a torrent in this directory and under this name; nothing is there if none did, and its
/// files will have `paths` ([`crate::TorrentSpec::paths`]). `state_directory` is that of the session
/// ([`crate::SessionConfig`]). Files that changed since are not noticed.
pub fn inspect(
    info: &Info,
    directory: &Path,
    name: &FileName,
    paths: &[(u32, String)],
    state_directory: &Path,
) -> Inspected {
    let record = ResumeFile::new(state_directory, info.hash()).read_for(info, directory, Some(name));
    let (places, have) = record.map_or_else(
        || {
            let places = Places::renamed(name.to_string(), info, paths);
            (places, Bitfield::new(info.piece_count()))
        },
        |record| (record.places, record.have),
    );
    let priority = |file: usize| {
        if places.files[file].in_parts {
            Priority::Skip
        } else {
            Priority::Normal
        }
    };
    Inspected {
        path: directory.join(&places.top),
        files: FileView::all(info, directory, &places, &have, priority),
        have: have.as_bytes().to_vec(),
    }
}

/// Gives a file another path below the torrent's directory, and records that; a torrent that no run has stored there fails. A
/// torrent of one file is renamed by the caller, who keeps its name, and believed under the new one.
pub fn rename(
    info: &Info,
    directory: &Path,
    name: &FileName,
    (file, path): (usize, &str),
    state_directory: &Path,
) -> Result<(), Failure> {
    let mut resume = ResumeFile::new(state_directory, info.hash());
    let Some(mut record) = resume.read_for(info, directory, Some(name)) else {
        let message = format!(
            "nothing is recorded of the files in {}; resume the task first",
            directory.join(name.as_str()).display()
        );
        return Err(Failure::new(FailureKind::NotFound, message));
    };
    let target = Target {
        directory: directory.to_owned(),
        name: Some(name.clone()),
        paths: Vec::new(),
    };
    let storage = Storage::new(info.clone(), &target, Arc::default(), record.places);
    storage.rename(file, path)?;
    record.places = storage.places();
    if !record.is_clean {
        // What changed since the kill can no longer be told by the age of the record.
        record.boot.clear();
    }
    let written = resume.write(&record);
    written.map_err(|error| Failure::disk(error.act, &error.path, &error.source))
}

/// Whether what is in this directory under this name was made by an earlier run of this torrent, as far as its record says.
/// Blocks, for one small read.
pub fn is_recorded(info: &Info, directory: &Path, name: &FileName, state_directory: &Path) -> bool {
    let record = ResumeFile::new(state_directory, info.hash());
    record.read_for(info, directory, Some(name)).is_some()
}

/// What is deleted with a torrent that is not in a session: every file that is there, its record among them, then every
/// directory of the torrent, with a separator at its end and deepest first. Directories are to be deleted only if they are
/// empty by then. Finished files are among them if they are to be deleted, too; without a record that says which are the
/// torrent's own, those that have their names are taken for them.
///
/// `name` is that of the torrent's file or directory, its own if there is none; without it or the metadata, no run has made
/// files, and only what the session keeps is returned.
pub fn leftovers(
    content: &Content,
    directory: &Path,
    name: Option<&FileName>,
    state_directory: &Path,
    deletes_finished: bool,
) -> Vec<PathBuf> {
    let record = ResumeFile::new(state_directory, content.info_hash());
    let mut left = Vec::new();
    let mut directories = Vec::new();
    if let Content::Info(info) = content {
        let places = record.read_for(info, directory, name).map_or_else(
            || unrecorded(info, name.unwrap_or_else(|| info.name()), deletes_finished),
            |record| record.places,
        );
        let paths = places.paths(info, directory, deletes_finished);
        left.extend(paths.files);
        directories = paths.directories;
    }
    let own = [
        directory.join(storage::parts_name(content.info_hash())),
        record.path().to_owned(),
    ];
    left.extend(own.into_iter().filter(|path| std::fs::symlink_metadata(path).is_ok()));
    left.extend(directories.into_iter().map(|directory| directory.join("")));
    left
}

/// Where the files are without a record: it was damaged or deleted.
fn unrecorded(info: &Info, name: &FileName, are_finished: bool) -> Places {
    let mut places = Places::new(name.to_string(), info);
    for place in &mut places.files {
        place.is_finished = are_finished;
    }
    places
}
