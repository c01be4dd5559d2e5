//! Every environment variable that Svc reads, and the only place that reads them (clap reads those that stand in for
//! an option, under the names given here).

/// The password of `--http-user`, so that it need not be an argument that other users of the machine can see.
pub const HTTP_PASSWORD: &str = "SVC_HTTP_PASSWORD";

/// What is logged to standard error: `off`, `error`, `warn`, `info`, `debug`, `trace`, or `target=level,…`.
pub const LOG_LEVEL: &str = "SVC_LOG_LEVEL";

/// Any value but the empty one switches colour off (<https://no-color.org>).
pub const NO_COLOR: &str = "NO_COLOR";

/// The kind of terminal; `dumb` cannot move its cursor, so it gets lines instead of bars.
pub const TERM: &str = "TERM";

/// What the environment says, read once at the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// [`LOG_LEVEL`], if set and not empty.
    pub log_level: Option<String>,
    /// Whether [`NO_COLOR`] is set.
    pub is_colorless: bool,
    /// Whether [`TERM`] is `dumb`.
    pub is_dumb_terminal: bool,
}

impl Environment {
    /// Reads the environment of this process.
    pub fn read() -> Self {
        Self {
            log_level: variable(LOG_LEVEL),
            is_colorless: variable(NO_COLOR).is_some(),
            is_dumb_terminal: variable(TERM).is_some_and(|term| term == "dumb"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}
