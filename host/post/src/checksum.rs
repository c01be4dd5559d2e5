//! Checksum files beside downloads, in the formats of the programs that check them.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use private_files::FileError;
use rustix::fs::CWD;
use serde::{Deserialize, Serialize};
use transfer::{
    FileName,
    checksum::{Algorithm, Checksum},
};

use crate::dir::rename_new;

/// The most alternatives of a name that are tried.
const MAX_NUMBER: u32 = 99;

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
/// content is left, with another it is kept and a number is added. Blocks for as long as reading the file takes.
pub fn write(path: &Path, algorithm: Algorithm) -> Result<PathBuf, FileError> {
    let mut file = File::open(path).map_err(FileError::at("open", path))?;
    let checksum = Checksum::compute(algorithm, &mut file).map_err(FileError::at("read", path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let content = line(&name, &checksum);
    let directory = path.parent().unwrap_or(Path::new(""));
    let wanted = FileName::sanitise(&format!("{name}{}", suffix(algorithm)));
    let numbered = (1..=MAX_NUMBER).map(|number| wanted.numbered(number));
    let staged = directory.join(format!(".{wanted}.svcnew"));
    for name in std::iter::once(wanted.clone()).chain(numbered) {
        let target = directory.join(name.as_str());
        if fs::read(&target).is_ok_and(|existing| existing == content.as_bytes()) {
            return Ok(target);
        }
        if fs::symlink_metadata(&target).is_err() && place(&staged, &target, &content)? {
            private_files::sync_directory(directory)?;
            return Ok(target);
        }
    }
    Err(FileError::at("name", directory.join(wanted.as_str()))(
        std::io::ErrorKind::AlreadyExists.into(),
    ))
}

/// Writes `content` so that it appears whole; false if the name is taken meanwhile.
fn place(staged: &Path, target: &Path, content: &str) -> Result<bool, FileError> {
    private_files::remove(staged)?;
    let file = File::options().write(true).create_new(true).open(staged);
    let mut file = file.map_err(FileError::at("make", staged))?;
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    written.map_err(FileError::at("write", staged))?;
    match rename_new(CWD, staged, CWD, target) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            private_files::remove(staged)?;
            Ok(false)
        }
        Err(error) => Err(FileError::at("rename", staged)(error)),
    }
}
