//! Why there is no connection to the daemon.

use protocol::RpcError;
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

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(super) fn unreadable(error: serde_json::Error) -> SessionError {
    SessionError::Protocol(error.to_string())
}
