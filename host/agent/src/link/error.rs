//! Why there is no connection to the daemon, or no result of a call.

use std::sync::Arc;

use protocol::{ErrorCode, RpcError, client::EncodeError};
use tokio_tungstenite::tungstenite;

use super::connect::ConnectError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot reach the daemon")]
    Dial(#[source] std::io::Error),
    #[error("the connection to the daemon broke")]
    Socket(#[source] Box<tungstenite::Error>),
    #[error("the daemon sent something else than the protocol allows: {0}")]
    Protocol(String),
    #[error("the daemon does not know the shared token")]
    WrongProof,
    #[error("the daemon refused the connection")]
    Refused(#[source] RpcError),
    #[error(
        "the daemon is version {theirs}, which this agent (version {ours}) does not understand; it was asked to stop"
    )]
    OtherVersion { theirs: String, ours: String },
    #[error("the daemon does not answer")]
    Silent,
    #[error("the daemon closed the connection")]
    Closed,
}

impl From<tungstenite::Error> for SessionError {
    fn from(error: tungstenite::Error) -> Self {
        Self::Socket(Box::new(error))
    }
}

#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Refused(#[from] RpcError),
    /// There is no session, for this reason.
    #[error("{0}")]
    NoDaemon(Arc<str>),
    /// The connection ended before the reply.
    #[error("the connection to the daemon broke")]
    Unavailable,
    #[error("the daemon did not answer in time")]
    TimedOut,
    #[error("the daemon's answer could not be read")]
    Unreadable,
}

impl From<EncodeError> for CallError {
    fn from(error: EncodeError) -> Self {
        let message = error.to_string();
        Self::Refused(match error {
            EncodeError::Params(error) => error,
            EncodeError::TooLarge => RpcError::application(ErrorCode::InvalidArgument, message),
        })
    }
}

impl From<CallError> for RpcError {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Refused(error) => error,
            CallError::NoDaemon(_) | CallError::Unavailable => Self::application(ErrorCode::Unavailable, message),
            CallError::TimedOut => Self::application(ErrorCode::Timeout, message),
            CallError::Unreadable => Self::internal(message),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(super) fn unreadable(error: serde_json::Error) -> SessionError {
    SessionError::Protocol(error.to_string())
}
