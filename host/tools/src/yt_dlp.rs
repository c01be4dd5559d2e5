//! What `yt-dlp` is run for: finding the media of a page. It downloads none of them.

mod handed;
mod loose;
mod media;

use std::{ffi::OsString, path::Path, time::Duration};

use transfer::{GivenBy, SafeUrl};

use crate::order::Limits;

pub use self::{
    handed::TooLong,
    media::{Codec, Format, ListEntry, Media},
};

/// The first version with all options of [`arguments`].
pub(crate) const LEAST_VERSION: &str = "2025.03.21";

/// The most output. The largest pages of sites with many subtitles print some MiB.
pub(crate) const MAX_OUTPUT_BYTES: u64 = 16 * 1024 * 1024;

/// Wall-clock limit: some sites need a dozen requests, and make clients wait.
const MAX_WALL: Duration = Duration::from_mins(3);

/// Some extractors interpret a site's script, which takes seconds.
const MAX_CPU_SECONDS: u64 = 120;

/// Memory of its own. An interpreter of scripts that it starts counts by itself.
const MAX_DATA_BYTES: u64 = 2 << 30;

/// What it writes is its own libraries: one form of it unpacks itself at each start.
const MAX_FILE_BYTES: u64 = 128 * 1024 * 1024;

/// The file with the URL, in the temporary directory of the run. Arguments can be read by every user of the machine, and
/// URLs have secrets.
pub(crate) const URL_FILE: &str = "url";

/// A job for `yt-dlp`.
#[derive(Debug, Clone)]
pub struct Extraction {
    /// The page.
    pub url: SafeUrl,
    /// Who gave its URL, on which depends what it may lead to.
    pub given_by: GivenBy,
    /// The proxy of the user's network for this URL. Those of the scheme `https` cannot be used.
    pub proxy: Option<SafeUrl>,
}

pub(crate) fn limits() -> Limits {
    Limits {
        wall: MAX_WALL,
        cpu_seconds: MAX_CPU_SECONDS,
        address_space_bytes: None,
        data_bytes: MAX_DATA_BYTES,
        file_bytes: MAX_FILE_BYTES,
    }
}

/// The arguments. Every default that a configuration, an environment or a plugin of the user could change is stated.
pub(crate) fn arguments(url_file: &Path) -> Vec<OsString> {
    let last_entry = media::MAX_ENTRIES;
    let entries = format!("1:{last_entry}");
    let mut arguments: Vec<OsString> = [
        "--ignore-config",
        "--no-plugin-dirs",
        "--no-cache-dir",
        "--no-cookies",
        "--no-cookies-from-browser",
        "--no-exec",
        "--no-update",
        "--no-mark-watched",
        "--no-check-formats",
        "--no-progress",
        "--no-warnings",
        "--color",
        "never",
        "--socket-timeout",
        "20",
        "--retries",
        "2",
        "--extractor-retries",
        "1",
        "--default-search",
        "error",
        "--no-playlist",
        "--flat-playlist",
        "--playlist-items",
        &entries,
        "--dump-single-json",
        "--batch-file",
    ]
    .map(OsString::from)
    .into();
    arguments.push(url_file.into());
    arguments
}

/// The version in what `--version` prints.
pub(crate) fn version(output: &str) -> Option<String> {
    let version = output.lines().next()?.trim();
    let is_version = version.len() <= 40 && version.starts_with(|c: char| c.is_ascii_digit());
    is_version.then(|| version.to_owned())
}

/// Whether `version` has all options of [`arguments`]. Versions are dates, with zeros since long before the least one.
pub(crate) fn is_recent(version: &str) -> bool {
    version >= LEAST_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_dates() {
        assert_eq!(version("2026.10.26\n").as_deref(), Some("2026.10.26"));
        assert_eq!(version("Usage: yt-dlp"), None);
        assert!(is_recent("2025.03.21") && is_recent("2026.10.26.232925"));
        assert!(!is_recent("2023.03.04"));
    }
}
