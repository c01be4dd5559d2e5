//! The identity of a torrent.

use std::{fmt, str::FromStr};

use data_encoding::HEXLOWER;
use sha1::{Digest as _, Sha1};

/// SHA-1 of the bytes of an info dictionary (BEP 3). Prints as 40 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InfoHash(pub [u8; 20]);

/// A text that is no info hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an info hash: it has 40 hexadecimal digits, or 32 letters and digits of base 32")]
pub struct InvalidInfoHash;

impl InfoHash {
    /// The hash of an info dictionary.
    pub fn of(info: &[u8]) -> Self {
        Self(Sha1::digest(info).into())
    }

    /// The name of a metainfo file that is named after it.
    pub fn file_name(&self) -> String {
        format!("{self}.torrent")
    }

    /// Its bytes, as trackers and peers take them.
    pub const fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl fmt::Display for InfoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for InfoHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for InfoHash {
    type Err = InvalidInfoHash;

    fn from_str(text: &str) -> Result<Self, InvalidInfoHash> {
        transfer::source::parse_torrent_hash(text)
            .map(Self)
            .ok_or(InvalidInfoHash)
    }
}
