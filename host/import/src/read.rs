//! Reads files that other programs wrote, within limits.

use std::{
    fs::File,
    io::{ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};

use crate::ImportError;

/// The content of a file of at most this many bytes; `None` if it does not exist.
pub(crate) fn file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ImportError> {
    let unreadable = |source| ImportError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        let path = path.to_owned();
        return Err(ImportError::TooLarge { path, limit });
    }
    Ok(Some(bytes))
}

/// The paths in a directory whose names have one of these extensions, in the order of their names.
pub(crate) fn with_extension(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>, ImportError> {
    let unreadable = |source| ImportError::Unreadable {
        path: directory.to_owned(),
        source,
    };
    let mut paths = Vec::new();
    for entry in directory.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| extensions.contains(&extension)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Opens a database without writing to it or waiting for the program that uses it.
pub(crate) fn database(path: &Path) -> Result<Connection, ImportError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags);
    opened.map_err(|source| ImportError::Database {
        path: path.to_owned(),
        source,
    })
}
