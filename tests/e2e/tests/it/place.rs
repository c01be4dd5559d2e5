//! A directory to download into, and what is in it.

use std::path::{Path, PathBuf};

use support::Content;
use tempfile::TempDir;

/// A directory deep inside a temporary one, so that names which climb out of it are caught.
pub(crate) struct Place {
    root: TempDir,
    directory: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("there is room for temporary files");
        let directory = root.path().join("a/b/c/downloads");
        std::fs::create_dir_all(&directory).expect("a temporary directory is writable");
        Self { root, directory }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// A path outside the directory of downloads.
    pub(crate) fn aside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The names in the directory, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        names_in(&self.directory)
    }

    /// Names of files that look finished: neither part files nor their journals.
    pub(crate) fn finished_names(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| !is_unfinished(name)).collect()
    }

    /// What came to lie outside the directory, which nothing should.
    pub(crate) fn escaped(&self) -> Vec<String> {
        let levels = [("", "a"), ("a", "b"), ("a/b", "c"), ("a/b/c", "downloads")];
        levels
            .into_iter()
            .flat_map(|(level, own)| {
                names_in(&self.root.path().join(level))
                    .into_iter()
                    .filter(move |name| name != own && name != "ca.pem")
            })
            .collect()
    }

    /// Asserts that this file is there and holds exactly this.
    #[track_caller]
    pub(crate) fn assert_file(&self, name: &str, content: &Content) {
        let path = self.directory.join(name);
        match content.difference(&path) {
            Ok(None) => {}
            Ok(Some(difference)) => panic!("{name}: {difference}"),
            Err(error) => panic!("{name}: {error}; there are {:?}", self.names()),
        }
    }
}

fn is_unfinished(name: &str) -> bool {
    name.ends_with(".svcpart") || name.ends_with(".svcpart.journal")
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory exists");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("a directory entry can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}
