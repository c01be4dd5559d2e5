//! Maps errors to codes and texts for aria2's clients. The only place that decides them.

use admission::json::TooManyValues;
use protocol::{RpcError, client::CallError};

/// The code of every refusal by a method.
const REFUSED: i64 = 1;

const PARSE: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;

/// Texts are aria2's where aria2 has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Fault {
    /// A refusal by a method.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            code: REFUSED,
            message: message.into(),
        }
    }

    pub(crate) fn parse() -> Self {
        Self {
            code: PARSE,
            message: "Parse error.".to_owned(),
        }
    }

    pub(crate) fn invalid_request() -> Self {
        Self {
            code: INVALID_REQUEST,
            message: "Invalid Request.".to_owned(),
        }
    }

    /// The parameters would take too much memory.
    pub(crate) fn too_large(error: TooManyValues) -> Self {
        Self::new(format!("params: {error}"))
    }

    /// The token is missing or wrong.
    pub fn unauthorized() -> Self {
        Self::new("Unauthorized")
    }

    pub(crate) fn unknown_method(name: &str) -> Self {
        Self::new(format!("No such method: {name}"))
    }

    pub(crate) fn bad_option(name: &str) -> Self {
        Self::new(format!(
            "We encountered a problem while processing the option '--{name}'."
        ))
    }
}

/// Why a command has no result.
#[derive(Debug, Clone)]
pub enum CommandError {
    /// The service refused it.
    Refused(RpcError),
    /// There was no reply; the command may have been executed.
    Failed(String),
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(error) => Self::Refused(error),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Why an option or download is rejected, in aria2's text where there is one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.0)
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self(fault.message)
    }
}

impl From<CommandError> for Fault {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Refused(error) => error.into(),
            CommandError::Failed(why) => Self::new(why),
        }
    }
}

impl From<RpcError> for Fault {
    fn from(error: RpcError) -> Self {
        let field = error.data.and_then(|data| data.field);
        match field {
            Some(field) if !error.message.contains(&field) => Self::new(format!("{field}: {}", error.message)),
            _ => Self::new(error.message),
        }
    }
}

/// aria2's `errorCode` for the kind of failure.
pub(crate) fn error_code(kind: &str) -> u8 {
    match kind {
        "timeout" => 2,
        "not-found" => 3,
        "still-not-found" => 4,
        "too-slow" => 5,
        "network" | "tls" | "proxy" => 6,
        "range-mismatch" | "changed" => 8,
        "disk-full" | "quota-exceeded" => 9,
        "in-use" => 11,
        "exists" => 13,
        "permission-denied" | "read-only" => 16,
        "disk-io" => 17,
        "directory" => 18,
        "resolve" => 19,
        "unexpected-status" | "malformed-response" | "encoding" | "not-the-file" | "size-mismatch" | "forbidden"
        | "gone" | "server-error" => 22,
        "too-many-redirects" | "forbidden-redirect" => 23,
        "unauthorized" | "login-required" => 24,
        "invalid-source" => 28,
        "busy" => 29,
        "checksum-mismatch" => 32,
        // aria2 reports a refused connection as unknown error, too.
        _ => 1,
    }
}
