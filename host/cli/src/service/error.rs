//! Errors of calls to a service: message, remedy, and exit code.

use std::{io, time::Duration};

use command::{Exit, amount};
use protocol::{ErrorCode, RpcError, close, code};

/// Why a call to a service has no result.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No service answers.
    #[error("cannot reach the service at {address}")]
    Unreachable {
        address: String,
        #[source]
        source: io::Error,
    },
    /// The TLS handshake failed.
    #[error("cannot speak TLS with {address}")]
    Insecure {
        address: String,
        #[source]
        source: io::Error,
    },
    #[error("the service at {address} did not answer within {}", amount::duration(*limit))]
    Silent { address: String, limit: Duration },
    #[error("there is no access key to send to {address}{}", detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default())]
    NoKey { address: String, detail: Option<String> },
    #[error("the service at {address} does not accept the access key")]
    WrongKey { address: String },
    /// The service answered with an HTTP error status.
    #[error("the service at {address} refuses: {message}")]
    Refused {
        address: String,
        status: u16,
        message: String,
    },
    #[error("what answers at {address} is not Svc ({found})")]
    Foreign { address: String, found: String },
    /// The service closed the connection.
    #[error("the service at {address} closed the connection{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Closed {
        address: String,
        code: Option<u16>,
        reason: Option<String>,
    },
    /// A call returned an error.
    #[error(transparent)]
    Call(#[from] RpcError),
    /// A named object does not exist.
    #[error("no {what} matches {}", names.join(", "))]
    Unknown { what: &'static str, names: Vec<String> },
}

impl RemoteError {
    /// The exit of a command that fails with this error.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Unreachable { .. } | Self::Insecure { .. } | Self::Foreign { .. } | Self::Closed { .. } => {
                Exit::Network
            }
            Self::Silent { .. } => Exit::Timeout,
            Self::NoKey { .. } | Self::WrongKey { .. } => Exit::Unauthorized,
            Self::Refused { status, .. } => Exit::from_status(*status),
            Self::Call(error) => match (error.application_code(), error.code) {
                (Some(code), _) => Exit::from(code),
                (None, code::INVALID_PARAMS) => Exit::Usage,
                (None, _) => Exit::Internal,
            },
            Self::Unknown { .. } => Exit::NotFound,
        }
    }

    /// The remedy.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some(
                "start the service there with \"svc serve\", or name another one with --url; \"svc doctor\" looks for the cause",
            ),
            Self::Insecure { .. } => Some("name the authority that signed its certificate with --ca-certificate"),
            Self::Silent { .. } => Some("try again, or wait longer with --timeout"),
            Self::NoKey { .. } => Some(
                "a service without a key gets its first one by \"svc setup\"; an existing key is given with --token-file, SVC_TOKEN or \"svc config set token -\"",
            ),
            Self::WrongKey { .. } => {
                Some("give the right one with --token-file, SVC_TOKEN or \"svc config set token -\"")
            }
            Self::Refused { status: 403, .. } => Some(
                "a service without a key gets its first one by \"svc setup\"; \"svc doctor\" looks for other causes",
            ),
            Self::Refused { status: 429, .. } => Some("too many wrong keys came from here; wait a minute"),
            Self::Foreign { .. } => Some("name the address of the service with --url"),
            Self::Call(error) if error.data.as_ref().is_some_and(|data| data.reason.is_some()) => None,
            Self::Call(error) if error.application_code() == Some(ErrorCode::Unavailable) => {
                Some("the part of the service that owns the tasks is not up; try again, or see \"svc doctor\"")
            }
            Self::Unknown { what: "task", .. } => Some("\"svc list\" shows the tasks"),
            Self::Unknown {
                what: "paired device", ..
            } => Some("\"svc link devices\" lists the paired devices"),
            Self::Unknown { what: "plugin", .. } => Some("\"svc plugin list\" shows the plugins"),
            Self::Unknown { what: "download", .. } => Some("\"svc capture\" shows what waits"),
            Self::Unknown {
                what: "plugin of the market",
                ..
            } => Some("\"svc market list\" shows what there is; \"svc market sources\" where it comes from"),
            Self::Unknown { what: "queue", .. } => Some("\"svc queue list\" shows the queues"),
            Self::Unknown { what: "group", .. } => Some("\"svc group list\" shows the groups"),
            Self::Unknown { what: "setting", .. } => Some("\"svc config server list\" shows the settings"),
            Self::Refused { .. } | Self::Closed { .. } | Self::Call(_) | Self::Unknown { .. } => None,
        }
    }

    /// Whether a retry may succeed.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Silent { .. } | Self::Closed { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            Self::Call(error) => error.data.as_ref().is_some_and(|data| data.retryable),
            _ => false,
        }
    }

    /// Whether the connection fell behind, so that reconnecting is sufficient.
    pub(crate) fn is_gap(&self) -> bool {
        matches!(
            self,
            Self::Closed {
                code: Some(close::EVENT_GAP),
                ..
            }
        )
    }

    /// Whether the service announced its shutdown.
    pub(crate) fn is_quit(&self) -> bool {
        matches!(self, Self::Closed { reason: Some(reason), .. } if reason == close::SERVICE_QUIT_REASON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(code: u16, reason: &str) -> RemoteError {
        RemoteError::Closed {
            address: "a".into(),
            code: Some(code),
            reason: Some(reason.into()),
        }
    }

    fn refused(status: u16) -> RemoteError {
        RemoteError::Refused {
            address: "a".into(),
            status,
            message: "no".into(),
        }
    }

    fn call(code: ErrorCode) -> RemoteError {
        RpcError::application(code, "no").into()
    }

    #[test]
    fn scripts_can_tell_ends_apart() {
        for (error, code) in [
            (call(ErrorCode::NotFound), 3),
            (call(ErrorCode::Timeout), 2),
            (call(ErrorCode::Unavailable), 5),
            (call(ErrorCode::InvalidArgument), 32),
            (call(ErrorCode::Conflict), 32),
            (RpcError::invalid_params("no").into(), 32),
            (RpcError::internal("no").into(), 1),
            (refused(403), 24),
            (refused(429), 24),
            (refused(409), 32),
            (refused(503), 5),
            (closed(close::UNAUTHORIZED, close::UNAUTHORIZED_REASON), 5),
        ] {
            assert_eq!(error.exit().code(), code, "{error}");
        }
    }

    #[test]
    fn temporary_errors_are_distinguished_from_permanent_ones() {
        let gap = closed(close::EVENT_GAP, close::EVENT_GAP_REASON);
        assert!(gap.is_gap() && !gap.is_quit());
        let quit = closed(close::GOING_AWAY, close::SERVICE_QUIT_REASON);
        assert!(quit.is_quit() && !quit.is_gap());
        let away = closed(close::GOING_AWAY, "a reason of another version");
        assert!(away.is_temporary() && !away.is_quit() && !away.is_gap());
        assert!(refused(503).is_temporary() && !refused(403).is_temporary());
        assert!(call(ErrorCode::Unavailable).is_temporary() && !call(ErrorCode::NotFound).is_temporary());
        assert!(!RemoteError::WrongKey { address: "a".into() }.is_temporary());
    }
}
