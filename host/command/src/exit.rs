//! How the process ends: one code per kind of end, the same for every command. Scripts depend on the numbers; where
//! aria2 and curl have a number for the same thing, it is theirs.

use std::fmt::Write as _;

use protocol::ErrorCode;
use transfer::FailureKind;

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// All is done.
    Success,
    /// A defect of ours, or something that no other code stands for.
    Internal,
    /// Something did not answer in time.
    Timeout,
    /// The server knows no such file.
    NotFound,
    /// The network, the proxy or the server is in the way, perhaps only for now.
    Network,
    /// Told to stop before all was done; the same command goes on from there.
    Unfinished,
    /// No space or no quota left.
    DiskFull,
    /// The target is taken and may not be renamed.
    Exists,
    /// The target may not be written.
    CannotCreate,
    /// The disk failed.
    DiskIo,
    /// The target's directory could not be made.
    Directory,
    /// The response breaks the protocol or is not the file that was announced.
    BadResponse,
    /// Redirects that lead nowhere or where they may not.
    Redirect,
    /// The server wants other credentials.
    Unauthorized,
    /// The command cannot be carried out as given.
    Usage,
    /// The finished bytes do not have the checksum asked for.
    Checksum,
    /// A plugin does not do what its author recorded, or is not fit to be packed.
    Unfit,
    /// A plugin or a source of plugins is not signed as it should be.
    Untrusted,
}

impl Exit {
    /// Every exit, in the order of the codes.
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

    /// The code that the process ends with.
    pub fn code(self) -> u8 {
        self.entry().0
    }

    /// The end of another process of ours, by its code; none if a signal ended it.
    pub fn from_code(code: Option<i32>) -> Self {
        let known = Self::ALL.into_iter().find(|exit| code == Some(exit.code().into()));
        known.unwrap_or(Self::Internal)
    }

    /// The exit for an HTTP status with which a service refuses.
    pub fn from_status(status: u16) -> Self {
        match status {
            401 | 403 | 429 => Self::Unauthorized,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            400..500 => Self::Usage,
            _ => Self::Network,
        }
    }

    /// The code, and what it means in a few words.
    fn entry(self) -> (u8, &'static str) {
        match self {
            Self::Success => (0, "everything asked for is done"),
            Self::Internal => (1, "internal or unknown error"),
            Self::Timeout => (2, "timeout"),
            Self::NotFound => (3, "not found: the file (404, 410), the task, the queue"),
            Self::Network => (5, "network, TLS, proxy or server trouble"),
            Self::Unfinished => (7, "stopped before the end; the same command goes on"),
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
            FailureKind::Timeout => Self::Timeout,
            FailureKind::NotFound | FailureKind::Gone => Self::NotFound,
            FailureKind::Resolve
            | FailureKind::Connect
            | FailureKind::Network
            | FailureKind::Tls
            | FailureKind::Proxy
            | FailureKind::Busy
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
            // A kind that is newer than this table; the test below refuses one that `FailureKind::ALL` names.
            FailureKind::Internal | _ => Self::Internal,
        }
    }
}

impl From<ErrorCode> for Exit {
    /// The exit for a call that a service refused.
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

/// The table of exits for help and manual.
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
