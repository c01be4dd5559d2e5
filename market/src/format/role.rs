//! The roles of the keys that sign a source's documents.

use std::{fmt, str::FromStr};

/// In which role a key speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Says which keys there are.
    Root,
    /// Says what is the newest.
    Timestamp,
    /// Says which plugins there are.
    Index,
    /// Says which must not run.
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
