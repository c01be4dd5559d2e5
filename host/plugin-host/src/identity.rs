//! What a plugin is called, and what its bytes are.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

/// The longest identity in bytes: it is part of URLs, of log lines and of the names of sealed values.
const MAX_IDENTITY_BYTES: usize = 100;

/// Names a plugin, whatever its version: `name@author`, each of lower-case letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(String);

/// A text that names no plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an identity is name@author of lower-case letters, digits, '_' and '-', at most {MAX_IDENTITY_BYTES} bytes")]
pub struct InvalidIdentity;

impl Identity {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Identity {
    type Err = InvalidIdentity;

    fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        };
        let (name, author) = text.split_once('@').ok_or(InvalidIdentity)?;
        let is_valid = text.len() <= MAX_IDENTITY_BYTES && is_word(name) && is_word(author);
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidIdentity)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The SHA-256 of a package, a file or a set of permissions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

impl Digest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let bytes = data_encoding::HEXLOWER
            .decode(text.as_bytes())
            .map_err(|_| InvalidDigest)?;
        bytes.try_into().map(Self).map_err(|_| InvalidDigest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_a_name_and_an_author() {
        assert_eq!(
            "acme-drive@acme".parse::<Identity>().unwrap().as_str(),
            "acme-drive@acme"
        );
        for bad in [
            "",
            "acme",
            "@acme",
            "acme@",
            "Acme@acme",
            "a@b@c",
            "a/b@c",
            "a b@c",
            "ä@b",
        ] {
            assert_eq!(bad.parse::<Identity>(), Err(InvalidIdentity), "{bad}");
        }
        assert!(
            format!("{}@b", "a".repeat(MAX_IDENTITY_BYTES))
                .parse::<Identity>()
                .is_err()
        );
    }

    #[test]
    fn a_digest_reads_what_it_prints() {
        let digest = Digest::of(b"abc");
        assert!(digest.to_string().starts_with("ba7816bf"));
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!("ba78".parse::<Digest>(), Err(InvalidDigest));
    }
}
