//! What can go wrong with a tool.

use std::{io, path::PathBuf, time::Duration};

use crate::{
    Tool,
    places::{MAX_EXTRACTIONS, MAX_EXTRACTIONS_OF_HOST},
};

/// Why a tool gave no result.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The user does not allow it.
    #[error("{tool} is not allowed: set {} to auto to use the one in PATH, or to its path", tool.key())]
    Off {
        /// The tool.
        tool: Tool,
    },
    /// There is none in `PATH`.
    #[error("{tool} is not installed: PATH has no such program; install it, or set {} to its path", tool.key())]
    NotFound {
        /// The tool.
        tool: Tool,
    },
    /// The path of the setting leads to no program.
    #[error("{} is no program that this user can run; {} names it", path.display(), tool.key())]
    NotExecutable {
        /// The tool.
        tool: Tool,
        /// The path.
        path: PathBuf,
    },
    /// Only Linux has what a run needs.
    #[error("{tool} cannot be used here: its limits are implemented for Linux only")]
    Unsupported {
        /// The tool.
        tool: Tool,
    },
    /// It did not start, or the process around it failed.
    #[error("cannot run {tool}: {act}")]
    Run {
        /// The tool.
        tool: Tool,
        /// What failed.
        act: String,
        /// Why, unless `act` says so.
        source: Option<io::Error>,
    },
    /// It ended with an error.
    #[error("{tool} failed ({status}): {explanation}")]
    Failed {
        /// The tool.
        tool: Tool,
        /// Its exit code or signal.
        status: String,
        /// The end of what it printed; one line.
        explanation: String,
    },
    /// It took too long.
    #[error("{tool} did not end within {limit:?} and was killed")]
    TimedOut {
        /// The tool.
        tool: Tool,
        /// The limit.
        limit: Duration,
    },
    /// It printed too much.
    #[error("{tool} printed more than {limit_bytes} bytes and was killed")]
    TooMuchOutput {
        /// The tool.
        tool: Tool,
        /// The limit.
        limit_bytes: u64,
    },
    /// As many runs as there may be go on, and none of them ended in time. A later attempt may succeed.
    #[error("{tool} is busy: {MAX_EXTRACTIONS} runs go on, or {MAX_EXTRACTIONS_OF_HOST} for this site")]
    Busy {
        /// The tool.
        tool: Tool,
    },
    /// The caller or a shutdown ended it.
    #[error("{tool} was stopped")]
    Stopped {
        /// The tool.
        tool: Tool,
    },
    /// It failed, and had been refused a connection.
    #[error("{tool} failed because the page leads to {0}", tool = Tool::YtDlp)]
    Forbidden(egress::Forbidden),
    /// It does not know the options that it is run with.
    #[error("{tool} {found} is too old: install {least} or a newer one")]
    TooOld {
        /// The tool.
        tool: Tool,
        /// Its version.
        found: String,
        /// The first version that can be used.
        least: &'static str,
    },
    /// It printed something else than it should.
    #[error("{tool} printed what cannot be read: {reason}")]
    Output {
        /// The tool.
        tool: Tool,
        /// Why not, without the secrets of URLs.
        reason: String,
    },
    /// Only web pages are given to `yt-dlp`.
    #[error("{tool} is used for http and https only, not for {scheme}", tool = Tool::YtDlp)]
    Scheme {
        /// The scheme of the URL.
        scheme: String,
    },
    /// The proxy of the settings cannot be used for `yt-dlp`.
    #[error("{tool} cannot be used behind a proxy of the kind {scheme}: use one of the kind http, socks4 or socks5", tool = Tool::YtDlp)]
    Proxy {
        /// The scheme of the proxy's URL.
        scheme: String,
    },
    /// An input is missing or is not a regular file.
    #[error("cannot read {}", path.display())]
    Input {
        /// The path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is a file where the result would be.
    #[error("{} exists; remove it or choose another name", path.display())]
    OutputExists {
        /// The path.
        path: PathBuf,
    },
}
