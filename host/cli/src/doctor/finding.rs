//! What the doctor found: one line of its report.

use std::path::Path;

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Warn,
    Fail,
}

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What was looked at.
    pub(crate) check: &'static str,
    /// How it is.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            check,
            found: found.into(),
            advice: None,
        }
    }

    pub(crate) fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Warn,
            check,
            found: found.into(),
            advice: Some(advice.into()),
        }
    }

    pub(crate) fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(check, found, advice)
        }
    }
}

/// A path as people read it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// An error with its cause.
pub(crate) fn whole(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}
