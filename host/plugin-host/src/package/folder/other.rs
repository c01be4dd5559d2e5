//! Systems without confined access to folders: development folders are not supported there.

use std::{fs::File, io, path::Path, time::SystemTime};

/// Never constructed.
#[derive(Debug)]
pub(crate) enum FolderHandle {}

impl FolderHandle {
    pub(crate) fn of(_: &Path) -> io::Result<Self> {
        let reason = "this system has no folders of plugins under development; install a package";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    pub(super) fn file(&self, _: &Path) -> io::Result<File> {
        match *self {}
    }

    pub(crate) fn below(&self, _: &Path, _: bool) -> io::Result<Self> {
        match *self {}
    }

    pub(crate) fn write(&self, _: &str, _: &[u8]) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: &str) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn files(&self) -> io::Result<Vec<(SystemTime, String)>> {
        match *self {}
    }
}
