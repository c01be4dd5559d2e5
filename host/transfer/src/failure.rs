//! Failures of a transfer: one closed list of kinds, so that retries, exit codes and clients decide on a kind and never
//! on text.

use std::{fmt, io, time::Duration};

use serde::{Deserialize, Serialize};

/// The kind of a failure. [`FailureKind::code`] is the stable name that scripts and clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The source cannot be used as written: malformed URL, header, proxy or checksum.
    InvalidSource,
    /// No transport supports this scheme.
    UnsupportedScheme,
    /// The host name does not resolve.
    Resolve,
    /// No address of the host accepted a connection.
    Connect,
    /// A peer did not answer in time.
    Timeout,
    /// Every connection was slower than the task allows ([`crate::ConnectionPlan::lowest_bytes_per_second`]).
    TooSlow,
    /// The connection broke while it was in use (reset, end of stream, unreachable network).
    Network,
    /// The TLS handshake or certificate check failed.
    Tls,
    /// The proxy refused or broke the connection.
    Proxy,
    /// The server wants credentials, or refused the ones given (401, 407).
    Unauthorized,
    /// The server refuses the request (403).
    Forbidden,
    /// The server knows no such file (404).
    NotFound,
    /// The server knew no such file as often as the task allows without a byte of it ([`crate::RetryPolicy::not_found`]).
    StillNotFound,
    /// The file is gone for good, or the link has expired (410).
    Gone,
    /// The server asks for fewer or later requests (429, 503).
    Busy,
    /// The server failed (other 5xx).
    ServerError,
    /// A status that makes no sense for a download.
    UnexpectedStatus,
    /// More redirects than allowed, or a loop.
    TooManyRedirects,
    /// A redirect to another scheme, or from https to http.
    ForbiddenRedirect,
    /// The response breaks HTTP or contradicts itself.
    MalformedResponse,
    /// The server sent another range than the one asked for.
    RangeMismatch,
    /// The body is encoded in a way that cannot be undone safely.
    Encoding,
    /// The server sent something else than the file, such as a sign-in page.
    NotTheFile,
    /// The file changed at the server more often than the run may start over.
    Changed,
    /// Fewer or more bytes came than the server announced.
    SizeMismatch,
    /// The finished bytes do not have the checksum that was asked for.
    ChecksumMismatch,
    /// No space is left on the target's file system.
    DiskFull,
    /// The user's quota on the target's file system is used up.
    QuotaExceeded,
    /// The target's file system is mounted read-only.
    ReadOnly,
    /// The target's directory or file may not be written.
    PermissionDenied,
    /// A directory of the target could not be made.
    Directory,
    /// Another process or task holds the target.
    InUse,
    /// The target exists and the conflict rule forbids another name.
    Exists,
    /// Any other failure of the disk.
    DiskIo,
    /// The plugin failed, or its answer is invalid.
    Plugin,
    /// The plugin is not installed, disabled or overloaded.
    PluginUnavailable,
    /// The site wants the user to log in first.
    LoginRequired,
    /// The site allows the account no further download for now: as many run as it may at once, or its daily allowance is
    /// used up. The task continues by itself.
    AccountLimit,
    /// A defect of ours: a panic or a broken invariant.
    Internal,
}

impl FailureKind {
    /// Every kind, for tables and documentation.
    pub const ALL: &'static [Self] = &[
        Self::InvalidSource,
        Self::UnsupportedScheme,
        Self::Resolve,
        Self::Connect,
        Self::Timeout,
        Self::TooSlow,
        Self::Network,
        Self::Tls,
        Self::Proxy,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::StillNotFound,
        Self::Gone,
        Self::Busy,
        Self::ServerError,
        Self::UnexpectedStatus,
        Self::TooManyRedirects,
        Self::ForbiddenRedirect,
        Self::MalformedResponse,
        Self::RangeMismatch,
        Self::Encoding,
        Self::NotTheFile,
        Self::Changed,
        Self::SizeMismatch,
        Self::ChecksumMismatch,
        Self::DiskFull,
        Self::QuotaExceeded,
        Self::ReadOnly,
        Self::PermissionDenied,
        Self::Directory,
        Self::InUse,
        Self::Exists,
        Self::DiskIo,
        Self::Plugin,
        Self::PluginUnavailable,
        Self::LoginRequired,
        Self::AccountLimit,
        Self::Internal,
    ];

    /// The stable name that scripts and clients see, in kebab-case.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidSource => "invalid-source",
            Self::UnsupportedScheme => "unsupported-scheme",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::TooSlow => "too-slow",
            Self::Network => "network",
            Self::Tls => "tls",
            Self::Proxy => "proxy",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not-found",
            Self::StillNotFound => "still-not-found",
            Self::Gone => "gone",
            Self::Busy => "busy",
            Self::ServerError => "server-error",
            Self::UnexpectedStatus => "unexpected-status",
            Self::TooManyRedirects => "too-many-redirects",
            Self::ForbiddenRedirect => "forbidden-redirect",
            Self::MalformedResponse => "malformed-response",
            Self::RangeMismatch => "range-mismatch",
            Self::Encoding => "encoding",
            Self::NotTheFile => "not-the-file",
            Self::Changed => "changed",
            Self::SizeMismatch => "size-mismatch",
            Self::ChecksumMismatch => "checksum-mismatch",
            Self::DiskFull => "disk-full",
            Self::QuotaExceeded => "quota-exceeded",
            Self::ReadOnly => "read-only",
            Self::PermissionDenied => "permission-denied",
            Self::Directory => "directory",
            Self::InUse => "in-use",
            Self::Exists => "exists",
            Self::DiskIo => "disk-io",
            Self::Plugin => "plugin",
            Self::PluginUnavailable => "plugin-unavailable",
            Self::LoginRequired => "login-required",
            Self::AccountLimit => "account-limit",
            Self::Internal => "internal",
        }
    }

    /// Whether trying again without changing anything may help.
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::Resolve
                | Self::Connect
                | Self::Timeout
                | Self::Network
                | Self::Proxy
                | Self::Busy
                | Self::ServerError
                | Self::MalformedResponse
                | Self::RangeMismatch
                | Self::SizeMismatch
                | Self::Changed
        )
    }

    /// Whether the link itself may have expired, so that a fresh link could help.
    pub fn is_link_refused(self) -> bool {
        matches!(
            self,
            Self::Unauthorized | Self::Forbidden | Self::NotFound | Self::StillNotFound | Self::Gone
        )
    }

    /// Whether the local disk is the cause; bytes on disk are kept, and the task can resume once the cause is gone.
    pub fn is_disk(self) -> bool {
        matches!(
            self,
            Self::DiskFull
                | Self::QuotaExceeded
                | Self::ReadOnly
                | Self::PermissionDenied
                | Self::Directory
                | Self::InUse
                | Self::Exists
                | Self::DiskIo
        )
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A transfer that failed: stored with the task and shown to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind; all decisions depend on it alone.
    pub kind: FailureKind,
    /// For the user: what failed, why, and what to do. Never holds a secret.
    pub message: String,
    /// How long the server asked us to wait (`Retry-After`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The same failure with the wait that the server asked for.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Option<Duration>) -> Self {
        self.retry_after = wait;
        self
    }

    /// A directory that could not be made.
    pub fn directory(path: &std::path::Path, error: &io::Error) -> Self {
        let mut failure = Self::disk("make the directory", path, error);
        if error.kind() == io::ErrorKind::AlreadyExists {
            let message = format!(
                "{} is a file, and the download needs a directory of that name: rename it, or choose another directory",
                path.display()
            );
            failure = Self::new(FailureKind::Directory, message);
        } else if failure.kind == FailureKind::DiskIo {
            failure.kind = FailureKind::Directory;
        }
        failure
    }

    /// A failure of the local disk: `act` names what was tried ("write", "create", …) and `path` where.
    pub fn disk(act: &str, path: &std::path::Path, error: &io::Error) -> Self {
        let kind = disk_kind(error);
        let advice = match kind {
            FailureKind::DiskFull => "; free some space and resume",
            FailureKind::QuotaExceeded => "; raise the quota or free some of it, and resume",
            FailureKind::ReadOnly => "; mount it writable and resume, or choose another directory",
            FailureKind::PermissionDenied => "; change its permissions or choose another directory",
            _ => "",
        };
        Self::new(kind, format!("cannot {act} {}: {error}{advice}", path.display()))
    }
}

fn disk_kind(error: &io::Error) -> FailureKind {
    match error.kind() {
        io::ErrorKind::StorageFull => FailureKind::DiskFull,
        io::ErrorKind::QuotaExceeded => FailureKind::QuotaExceeded,
        io::ErrorKind::ReadOnlyFilesystem => FailureKind::ReadOnly,
        io::ErrorKind::PermissionDenied => FailureKind::PermissionDenied,
        io::ErrorKind::AlreadyExists => FailureKind::Exists,
        io::ErrorKind::NotADirectory | io::ErrorKind::NotFound => FailureKind::Directory,
        _ => FailureKind::DiskIo,
    }
}
