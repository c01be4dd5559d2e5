//! The identities of plugins.

use std::{fmt, str::FromStr};

/// The longest identity in bytes: it is part of URLs and of file names.
const MAX_IDENTITY_BYTES: usize = 100;

/// Identifies a plugin in all its versions: `name@author`, each of lower-case letters, digits, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity(Box<str>);

/// A text that is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an identity is name@author of lower-case letters, digits, '_' and '-', at most {MAX_IDENTITY_BYTES} bytes")]
pub struct InvalidIdentity;

impl Identity {
    /// The identity as a text.
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

crate::text::text_in_json!(Identity);

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
