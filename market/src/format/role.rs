//! The roles of the keys that sign a source's documents.

use std::{fmt, str::FromStr};

/// The role of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Signs roots.
    Root,
    /// Signs timestamps.
    Timestamp,
    /// Signs indexes.
    Index,
    /// Signs revocations.
    Revocations,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Root, Self::Timestamp, Self::Index, Self::Revocations];

    /// Its name in files and commands.
    pub fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Timestamp => "timestamp",
            Self::Index => "index",
            Self::Revocations => "revocations",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that names no role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is root, timestamp, index or revocations")]
pub struct InvalidRole;

impl FromStr for Role {
    type Err = InvalidRole;

    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        Self::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or(InvalidRole)
    }
}
