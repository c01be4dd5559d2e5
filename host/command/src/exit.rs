//! Exit codes, the same for every command. Scripts depend on the numbers; where aria2 or curl has a number for the same
//! condition, it is used.

use std::fmt::Write as _;

use protocol::ErrorCode;
use transfer::FailureKind;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// Everything was done.
    Success,
    /// A bug, or an error without its own code.
    Internal,
    /// A peer did not answer in time.
    Timeout,
    /// The server has no such file.
    NotFound,
    /// An error of the network, proxy or server, possibly temporary.
    Network,
    /// Stopped on request before everything was done; running the command again resumes.
    Unfinished,
    /// No space or quota left.
    DiskFull,
    /// The target exists and must not be renamed.
    Exists,
    /// The target cannot be written.
    CannotCreate,
    /// The disk failed.
    DiskIo,
    /// The target's directory cannot be created.
    Directory,
    /// The response violates the protocol or is not the announced file.
    BadResponse,
    /// Too many redirects, or a forbidden one.
    Redirect,
    /// The server rejected the credentials.
    Unauthorized,
    /// The command cannot be carried out as given.
    Usage,
    /// The checksum of the received bytes does not match.
    Checksum,
    /// A plugin differs from its recorded fixtures, or cannot be packed.
    Unfit,
    /// A signature of a plugin or source is missing or invalid.
    Untrusted,
}

impl Exit {
    /// In the order of the codes.
    const ALL: [Self; 18] = [
        Self::Success,
        Self::Internal,
        Self::Timeout,
        Self::NotFound,
        Self::Network,
        Self::Unfinished,
        Self::DiskFull,
        Self::Exists,
        Self::CannotCreate,
        Self::DiskIo,
        Self::Directory,
        Self::BadResponse,
        Self::Redirect,
        Self::Unauthorized,
        Self::Usage,
        Self::Checksum,
        Self::Unfit,
        Self::Untrusted,
    ];

    /// The process exit code.
    pub fn code(self) -> u8 {
        self.entry().0
    }

    /// The result of a child process by its exit code; none if a signal ended it.
    pub fn from_code(code: Option<i32>) -> Self {
        let known = Self::ALL.into_iter().find(|exit| code == Some(exit.code().into()));
        known.unwrap_or(Self::Internal)
    }

    /// The exit for an HTTP error status of a service.
    pub fn from_status(status: u16) -> Self {
        match status {
            401 | 403 | 429 => Self::Unauthorized,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            400..500 => Self::Usage,
            _ => Self::Network,
        }
    }

    /// The code and its description.
    fn entry(self) -> (u8, &'static str) {
        match self {
            Self::Success => (0, "everything asked for is done"),
            Self::Internal => (1, "internal or unknown error"),
            Self::Timeout => (2, "timeout, or slower than --lowest-speed-limit"),
            Self::NotFound => (3, "not found: the file (404, 410), the task, the queue"),
            Self::Network => (5, "network, TLS, proxy or server trouble"),
            Self::Unfinished => (7, "stopped before the end; the same command continues"),
            Self::DiskFull => (9, "disk full or quota used up"),
            Self::Exists => (13, "the file exists"),
            Self::CannotCreate => (
                16,
                "the file or directory cannot be used: permission, read-only, in use",
            ),
            Self::DiskIo => (17, "disk error"),
            Self::Directory => (18, "the directory cannot be made"),
            Self::BadResponse => (22, "the server's answer is wrong or not the announced file"),
            Self::Redirect => (23, "too many or forbidden redirects"),
            Self::Unauthorized => (24, "credentials missing or refused (401, 403)"),
            Self::Usage => (32, "wrong usage: bad option, URL or input file"),
            Self::Checksum => (33, "checksum mismatch"),
            Self::Unfit => (34, "a plugin fails its own fixtures or checks"),
            Self::Untrusted => (35, "a plugin or a source of plugins is not signed as it should be"),
        }
    }
}

impl From<FailureKind> for Exit {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Timeout | FailureKind::TooSlow => Self::Timeout,
            FailureKind::NotFound | FailureKind::StillNotFound | FailureKind::Gone => Self::NotFound,
            FailureKind::Resolve
            | FailureKind::Connect
            | FailureKind::Network
            | FailureKind::Tls
            | FailureKind::Proxy
            | FailureKind::Busy
            | FailureKind::AccountLimit
            | FailureKind::ServerError => Self::Network,
            FailureKind::DiskFull | FailureKind::QuotaExceeded => Self::DiskFull,
            FailureKind::Exists => Self::Exists,
            FailureKind::PermissionDenied | FailureKind::ReadOnly | FailureKind::InUse => Self::CannotCreate,
            FailureKind::DiskIo => Self::DiskIo,
            FailureKind::Directory => Self::Directory,
            FailureKind::UnexpectedStatus
            | FailureKind::MalformedResponse
            | FailureKind::RangeMismatch
            | FailureKind::Encoding
            | FailureKind::NotTheFile
            | FailureKind::Changed
            | FailureKind::Plugin
            | FailureKind::PluginUnavailable
            | FailureKind::SizeMismatch => Self::BadResponse,
            FailureKind::TooManyRedirects | FailureKind::ForbiddenRedirect => Self::Redirect,
            FailureKind::Unauthorized | FailureKind::Forbidden | FailureKind::LoginRequired => Self::Unauthorized,
            FailureKind::InvalidSource | FailureKind::UnsupportedScheme => Self::Usage,
            FailureKind::ChecksumMismatch => Self::Checksum,
            // A newer kind than this table; a test ensures that every kind in `FailureKind::ALL` is mapped.
            FailureKind::Internal | _ => Self::Internal,
        }
    }
}

impl From<ErrorCode> for Exit {
    /// The exit for a refused call.
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::Timeout => Self::Timeout,
            ErrorCode::NotFound => Self::NotFound,
            ErrorCode::Unavailable => Self::Network,
            ErrorCode::Cancelled => Self::Unfinished,
            ErrorCode::Unauthorized => Self::Unauthorized,
            ErrorCode::InvalidArgument | ErrorCode::Conflict | ErrorCode::Unsupported => Self::Usage,
            ErrorCode::ProtocolIncompatible | ErrorCode::Internal => Self::Internal,
        }
    }
}

/// The table of exit codes for help and manual.
pub fn help() -> String {
    let mut text = "Exit codes:".to_owned();
    for exit in Exit::ALL {
        let (code, meaning) = exit.entry();
        let _infallible = write!(text, "\n  {code:>2}  {meaning}");
    }
    text.push_str("\n\nWith several files it is the code of the last one that failed.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_failure_has_its_own_meaning() {
        let unmapped: Vec<_> = FailureKind::ALL
            .iter()
            .filter(|kind| Exit::from(**kind) == Exit::Internal)
            .collect();
        assert_eq!(unmapped, [&FailureKind::Internal]);
    }

    #[test]
    fn codes_are_what_scripts_rely_on() {
        for (kind, code) in [
            (FailureKind::Timeout, 2),
            (FailureKind::TooSlow, 2),
            (FailureKind::NotFound, 3),
            (FailureKind::Gone, 3),
            (FailureKind::Resolve, 5),
            (FailureKind::ServerError, 5),
            (FailureKind::DiskFull, 9),
            (FailureKind::Exists, 13),
            (FailureKind::PermissionDenied, 16),
            (FailureKind::DiskIo, 17),
            (FailureKind::Directory, 18),
            (FailureKind::SizeMismatch, 22),
            (FailureKind::ForbiddenRedirect, 23),
            (FailureKind::Forbidden, 24),
            (FailureKind::UnsupportedScheme, 32),
            (FailureKind::ChecksumMismatch, 33),
        ] {
            assert_eq!(Exit::from(kind).code(), code, "{kind}");
        }
    }

    #[test]
    fn codes_are_distinct_and_all_in_the_help() {
        let help = help();
        let codes: std::collections::BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes.len(), Exit::ALL.len());
        assert_eq!(help.lines().count(), Exit::ALL.len() + 3);
    }
}
