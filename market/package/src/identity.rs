//! What a plugin is called.

use std::{borrow::Cow, fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The longest identity in bytes: it is part of URLs and of file names.
const MAX_IDENTITY_BYTES: usize = 100;

/// Names a plugin, whatever its version: `name@author`, each of lower-case letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(Box<str>);

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
        is_valid.then(|| Self(text.into())).ok_or(InvalidIdentity)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Identity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
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
        let long = format!("{}@b", "a".repeat(MAX_IDENTITY_BYTES));
        for bad in [
            "",
            "acme",
            "@acme",
            "acme@",
            "Acme@acme",
            "a@b@c",
            "a/b@c",
            "a b@c",
            "../x@y",
            "a\n@b",
            "ä@b",
            &long,
        ] {
            assert_eq!(bad.parse::<Identity>(), Err(InvalidIdentity), "{bad}");
        }
    }
}
