//! The permanent ids of sources.

use std::{fmt, str::FromStr};

/// The longest id in bytes; it is part of file names.
const MAX_ID_BYTES: usize = 64;

/// The permanent id of a source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(String);

/// A text that is no id of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the id of a source has 1 to {MAX_ID_BYTES} lower-case letters, digits, '-' and '.'")]
pub struct InvalidSourceId;

impl FromStr for SourceId {
    type Err = InvalidSourceId;

    fn from_str(text: &str) -> Result<Self, InvalidSourceId> {
        let is_valid = (1..=MAX_ID_BYTES).contains(&text.len())
            && text
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
        is_valid.then(|| Self(text.to_owned())).ok_or(InvalidSourceId)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

plugin_package::text_in_json!(SourceId);
