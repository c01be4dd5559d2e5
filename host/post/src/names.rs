//! Names of entries: each becomes a path of names that are safe on every system, or is refused.

use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

use transfer::{FileName, file_name::fold};

use crate::refusal::{Reason, Result};

/// The most entries, with the directories that only appear in paths.
pub(crate) const MAX_ENTRIES: usize = 100_000;

/// The deepest path, in components.
pub(crate) const MAX_DEPTH: usize = 32;

/// The longest name, in bytes: what file systems allow. [`FileName`] shortens some that are allowed.
const MAX_NAME_BYTES: usize = 255;

/// The longest path, in bytes: with the directory that it is unpacked to, it stays below the 4,096 of Linux.
const MAX_PATH_BYTES: usize = 2048;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
}

/// The names of an archive so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// By the folded path: what it is, and how it was written first.
    taken: HashMap<String, (Kind, PathBuf)>,
    /// The names at the top.
    top: BTreeMap<String, Kind>,
}

impl Names {
    /// Checks the name of an entry and returns its path, which is relative and has only plain components. It is empty
    /// for the directory that is unpacked to itself.
    pub(crate) fn admit(&mut self, raw: &str, kind: Kind) -> Result<PathBuf> {
        self.admit_or(raw, kind).map_err(|reason| match reason {
            Reason::Entries { .. } => reason.of_archive(),
            reason => reason.of(raw),
        })
    }

    fn admit_or(&mut self, raw: &str, kind: Kind) -> std::result::Result<PathBuf, Reason> {
        let components = components(raw)?;
        let Some((last, parents)) = components.split_last() else {
            return match kind {
                Kind::Directory => Ok(PathBuf::new()),
                Kind::File => Err(Reason::NoName),
            };
        };
        // A directory is written as it was first, so that two spellings of its name are one on every system.
        let (mut path, mut key) = (PathBuf::new(), String::new());
        for parent in parents {
            path = self.enter(&mut key, &path, parent, Kind::Directory)?;
        }
        self.enter(&mut key, &path, last, kind)
    }

    /// Adds `name` in `directory`, whose folded path is `key`, and extends `key`.
    fn enter(
        &mut self,
        key: &mut String,
        directory: &std::path::Path,
        name: &FileName,
        kind: Kind,
    ) -> std::result::Result<PathBuf, Reason> {
        if !key.is_empty() {
            key.push('/');
        }
        key.push_str(&fold(name.as_str()));
        match self.taken.get(key.as_str()) {
            Some((Kind::Directory, path)) if kind == Kind::Directory => return Ok(path.clone()),
            Some((Kind::File, _)) if kind == Kind::File => return Err(Reason::Duplicate),
            Some(_) => return Err(Reason::FileAndDirectory),
            None => {}
        }
        if self.taken.len() >= MAX_ENTRIES {
            return Err(Reason::Entries { limit: MAX_ENTRIES });
        }
        let path = directory.join(name.as_str());
        if directory.as_os_str().is_empty() {
            self.top.insert(name.as_str().to_owned(), kind);
        }
        self.taken.insert(key.clone(), (kind, path.clone()));
        Ok(path)
    }

    /// The directory that everything is in, if there is one.
    pub(crate) fn only_directory(&self) -> Option<&str> {
        let mut names = self.top.iter();
        match (names.next(), names.next()) {
            (Some((name, Kind::Directory)), None) => Some(name),
            _ => None,
        }
    }
}

/// The components of a name. A backslash separates them too: on Windows it would.
fn components(raw: &str) -> std::result::Result<Vec<FileName>, Reason> {
    if raw.chars().any(char::is_control) {
        return Err(Reason::ControlCharacter);
    }
    if raw.len() > MAX_PATH_BYTES {
        let (bytes, limit) = (raw.len(), MAX_PATH_BYTES);
        return Err(Reason::PathTooLong { bytes, limit });
    }
    let path = raw.replace('\\', "/");
    if path.starts_with("//") {
        return Err(Reason::NetworkPath);
    }
    if path.starts_with('/') {
        return Err(Reason::Absolute);
    }
    if let [letter, b':', ..] = path.as_bytes()
        && letter.is_ascii_alphabetic()
    {
        return Err(Reason::DriveLetter);
    }
    let parts = path.split('/').filter(|part| !part.is_empty() && *part != ".");
    let components: Vec<_> = parts.map(component).collect::<std::result::Result<_, _>>()?;
    if components.len() > MAX_DEPTH {
        let (depth, limit) = (components.len(), MAX_DEPTH);
        return Err(Reason::TooDeep { depth, limit });
    }
    Ok(components)
}

fn component(part: &str) -> std::result::Result<FileName, Reason> {
    // Windows ignores dots and spaces at the end, so that `.. .` is `..`.
    if part.trim_end_matches(['.', ' ']).is_empty() {
        return Err(if part.starts_with("..") {
            Reason::ParentDirectory
        } else {
            Reason::NoName
        });
    }
    if part.len() > MAX_NAME_BYTES {
        let (bytes, limit) = (part.len(), MAX_NAME_BYTES);
        return Err(Reason::NameTooLong { bytes, limit });
    }
    if FileName::is_device(part) {
        return Err(Reason::DeviceName);
    }
    FileName::sanitise_entry(part).ok_or(Reason::NoName)
}
