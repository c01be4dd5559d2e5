//! Versions of the interface between host and plugins.

use std::{fmt, str::FromStr};

/// The version of the plugin interface: `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Abi {
    major: u32,
    minor: u32,
}

/// A text that is no version of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a version of the plugin interface is two numbers with a point between them")]
pub struct InvalidAbi;

impl Abi {
    /// Whether a host with this version runs a plugin that requires `wanted`: minor versions only add, except before 1.0.
    pub fn runs(self, wanted: Self) -> bool {
        let adds = if self.major == 0 {
            self.minor == wanted.minor
        } else {
            self.minor >= wanted.minor
        };
        self.major == wanted.major && adds
    }
}

impl FromStr for Abi {
    type Err = InvalidAbi;

    fn from_str(text: &str) -> Result<Self, InvalidAbi> {
        let (major, minor) = text.split_once('.').ok_or(InvalidAbi)?;
        let number = |text: &str| {
            let number: u32 = text.parse().map_err(|_| InvalidAbi)?;
            (number.to_string() == text).then_some(number).ok_or(InvalidAbi)
        };
        Ok(Self {
            major: number(major)?,
            minor: number(minor)?,
        })
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

plugin_package::text_in_json!(Abi);
