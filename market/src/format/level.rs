//! How bad a revoked version is.

use serde::{Deserialize, Serialize};

/// How bad a revoked version is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It works, and something better is there. Users are told.
    Deprecated,
    /// It can be abused. It is not installed any more; an installed one is to be updated at once.
    Vulnerable,
    /// It does harm. It is never installed; an installed one stops.
    Malicious,
}

impl Level {
    /// Its name in files and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Deprecated => "deprecated",
            Self::Vulnerable => "vulnerable",
            Self::Malicious => "malicious",
        }
    }

    /// Whether a version of this level may be installed.
    pub fn allows_install(self) -> bool {
        self == Self::Deprecated
    }

    /// Whether an installed version of this level may run.
    pub fn allows_run(self) -> bool {
        self != Self::Malicious
    }
}
