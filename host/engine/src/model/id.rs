//! Identifiers and timestamps.

use std::{fmt, str::FromStr};

use uuid::Uuid;

/// A text that is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a {0} is a UUID")]
pub struct InvalidId(&'static str);

macro_rules! uuid_id {
    ($name:ident, $what:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            /// A new random one.
            #[must_use]
            pub fn random() -> Self {
                Self(Uuid::new_v4())
            }

            /// The one with these bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// Its bytes.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId($what))
            }
        }
    };
}

uuid_id!(TaskId, "task id", "Names a task.");
uuid_id!(GroupId, "group id", "Names a group.");

/// Identifies a queue: one of the two built-in ones, or one that a user created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum QueueId {
    /// `main`: the default queue.
    #[default]
    Main,
    /// `later`: stopped until a user starts it.
    Later,
    /// A queue that a user created.
    Own(Uuid),
}

impl QueueId {
    /// A new random one.
    #[must_use]
    pub fn random() -> Self {
        Self::Own(Uuid::new_v4())
    }

    /// Whether the queue always exists.
    pub fn is_built_in(self) -> bool {
        !matches!(self, Self::Own(_))
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Later => f.write_str("later"),
            Self::Own(id) => fmt::Display::fmt(id, f),
        }
    }
}

impl FromStr for QueueId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text {
            "main" => Ok(Self::Main),
            "later" => Ok(Self::Later),
            _ => Uuid::try_parse(text)
                .map(Self::Own)
                .map_err(|_| InvalidId("queue id is main, later or")),
        }
    }
}

/// Identifies a run. Never reused while the process lives, so that late messages of an earlier run can be ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(pub u64);

/// A moment: milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The moment this many milliseconds after the Unix epoch.
    pub const fn from_unix_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn unix_millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the Unix epoch.
    pub const fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The moment `wait` later.
    #[must_use]
    pub fn after(self, wait: std::time::Duration) -> Self {
        Self(
            self.0
                .saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)),
        )
    }

    /// How long from `earlier` to this moment; zero if it is not earlier.
    pub fn since(self, earlier: Self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}
