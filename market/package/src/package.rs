//! Packages: the files of an archive, with the limits that hold for every plugin.

use std::collections::BTreeMap;

use bytes::Bytes;
use transfer::ByteCount;

use crate::{
    Digest, manifest,
    refusal::{Check, Result, refuse},
    zip::unpack,
};

/// The most bytes of all recorded exchanges together.
const MAX_FIXTURE_BYTES: usize = 512 * 1024;

/// The largest icon in bytes.
const MAX_ICON_BYTES: usize = 64 * 1024;

/// A package: the files of an archive by their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// The SHA-256 of the archive.
    pub digest: Digest,
    /// The files. Every path is relative, stays inside, and names one file on every system.
    pub files: BTreeMap<String, Bytes>,
}

impl Package {
    /// Reads an archive.
    pub fn open(archive: &[u8]) -> Result<Self> {
        let files = without_wrapper(unpack(archive)?);
        if !files.contains_key(manifest::FILE) {
            return refuse(Check::Content, Some(manifest::FILE), "is missing");
        }
        let fixtures = files.iter().filter(|(path, _)| path.starts_with("fixtures/"));
        let fixture_bytes: usize = fixtures.map(|(_, bytes)| bytes.len()).sum();
        if fixture_bytes > MAX_FIXTURE_BYTES {
            let reason = format!("more than {} in all", ByteCount(MAX_FIXTURE_BYTES as u64));
            return refuse(Check::Size, Some("fixtures/"), reason);
        }
        Ok(Self {
            digest: Digest::of(archive),
            files,
        })
    }

    /// The file at `path`, which the manifest names as its `role`.
    pub fn file(&self, path: &str, role: &str) -> Result<&Bytes> {
        match self.files.get(path) {
            Some(bytes) => Ok(bytes),
            None => refuse(
                Check::Content,
                Some(path),
                format!("is missing; the manifest names it as {role}"),
            ),
        }
    }

    /// Checks the icon at `path`.
    pub fn check_icon(&self, path: &str) -> Result<()> {
        let icon = self.file(path, "icon")?;
        if icon.len() > MAX_ICON_BYTES {
            let reason = format!("an icon is larger than {}", ByteCount(MAX_ICON_BYTES as u64));
            return refuse(Check::Size, Some(path), reason);
        }
        Ok(())
    }
}

/// The files without the one folder that they are all in, if the manifest is in it: the archive of a folder.
fn without_wrapper(files: BTreeMap<String, Bytes>) -> BTreeMap<String, Bytes> {
    let first = files.keys().next().and_then(|path| path.split_once('/'));
    let Some(wrapper) = first.map(|(folder, _)| format!("{folder}/")) else {
        return files;
    };
    let is_wrapped = files.contains_key(&format!("{wrapper}{}", manifest::FILE))
        && files.keys().all(|path| path.starts_with(&wrapper));
    if !is_wrapped {
        return files;
    }
    let stripped = files
        .into_iter()
        .map(|(path, bytes)| (path[wrapper.len()..].to_owned(), bytes));
    stripped.collect()
}
