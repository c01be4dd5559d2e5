//! Checksum files beside downloads, in the formats of the programs that check them.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use private_files::FileError;
use serde::{Deserialize, Serialize};
use transfer::{
    FileName,
    checksum::{Algorithm, Checksum},
};

use crate::{
    dir::Dir,
    stage::{RunId, Stage},
};

/// The most alternatives of a name that are tried.
const MAX_NUMBER: u32 = 99;

/// The name of the file in its stage.
const NEW: &str = "checksum";

/// An algorithm, stored by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(pub Algorithm);

impl TryFrom<String> for Digest {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let known = Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
        known
            .map(Self)
            .ok_or_else(|| format!("unknown checksum algorithm {name:?}"))
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.0.name().to_owned()
    }
}

/// The ending of a checksum file.
pub fn suffix(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Md5 => ".md5",
        Algorithm::Sha1 => ".sha1",
        Algorithm::Sha256 => ".sha256",
        Algorithm::Sha512 => ".sha512",
        Algorithm::Crc32 => ".sfv",
        Algorithm::Blake3 => ".b3",
    }
}

/// The content of a checksum file: a line as `sha256sum`, `b3sum` and the like write and check it; of CRC-32, as SFV
/// files have it.
pub fn line(name: &str, checksum: &Checksum) -> String {
    let hex = checksum.hex();
    if checksum.algorithm() == Algorithm::Crc32 {
        return format!("{name} {}\n", hex.to_ascii_uppercase());
    }
    if !name.contains(['\\', '\n', '\r']) {
        return format!("{hex}  {name}\n");
    }
    // The programs take a backslash at the start as a sign that the name is escaped.
    let escaped = name.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    format!("\\{hex}  {escaped}\n")
}

/// Computes the checksum of the file at `path` and writes it beside it; returns where. A file of that name with the same
/// content is left, with another it is kept and a number is added. Links below `root`, the save directory, are not followed,
/// and what is no regular file is not read. What an interruption leaves is removed by [`sweep`](crate::sweep). Blocks for as
/// long as reading the file takes.
pub fn write(root: &Path, path: &Path, algorithm: Algorithm, run: &RunId) -> Result<PathBuf, FileError> {
    let directory = Dir::open_below(root, path.parent().unwrap_or(Path::new("")))?;
    let name = path.file_name().unwrap_or_default();
    let file = directory.open_regular(name);
    let mut file = file.map_err(|error| directory.error("open", name, error))?;
    let checksum = Checksum::compute(algorithm, &mut file).map_err(|error| directory.error("read", name, error))?;
    let name = name.to_string_lossy();
    let content = line(&name, &checksum);
    let wanted = FileName::sanitise(&format!("{name}{}", suffix(algorithm)));
    let numbered = (1..=MAX_NUMBER).map(|number| wanted.numbered(number));
    for name in std::iter::once(wanted.clone()).chain(numbered) {
        let name = name.as_str();
        let is_free = directory.find(name).is_none();
        if (is_free && place(&directory, name, &content, run)?) || holds(&directory, name, &content) {
            return Ok(directory.path().join(name));
        }
    }
    Err(directory.error("name", wanted.as_str(), io::ErrorKind::AlreadyExists))
}

/// Writes `content` so that it appears whole; false if the name is taken meanwhile.
fn place(directory: &Dir, name: &str, content: &str, run: &RunId) -> Result<bool, FileError> {
    let stage = Stage::make(directory, &FileName::sanitise(NEW), run)?;
    // The file creation mask of the process applies, as for downloads.
    stage.dir().write_new(NEW, 0o666, content.as_bytes())?;
    let placed = match stage.dir().rename(NEW, directory, name) {
        Ok(()) => directory.sync().map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(directory.error("rename", name, error)),
    };
    stage.remove()?;
    placed
}

/// Whether a regular file of this name has this content.
fn holds(directory: &Dir, name: &str, content: &str) -> bool {
    let read = directory.open_regular(name).and_then(|file| {
        let mut existing = Vec::new();
        if file.metadata()?.len() == content.len() as u64 {
            file.take(content.len() as u64).read_to_end(&mut existing)?;
        }
        Ok(existing)
    });
    read.is_ok_and(|existing| existing == content.as_bytes())
}
