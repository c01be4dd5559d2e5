//! Maps errors to HTTP answers. The only place that decides status and text.

use std::collections::BTreeMap;

use admission::budget::Exhausted;
use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use protocol::{ErrorCode, Reason, RpcError, client::CallError, code};
use serde::{Deserialize, Serialize};
use utoipa::{
    IntoResponses, ToSchema,
    openapi::{Content, Ref, RefOr, Response as Described, ResponseBuilder},
};

/// For paths that do not exist or are switched off.
pub const UNKNOWN_ENDPOINT: &str = "unknown endpoint";

/// An acknowledgement or a refusal.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ResultMessage {
    /// Whether it was done.
    pub success: bool,
    /// `ok`, or why not.
    pub message: String,
    /// The cause as a fixed name, where there is one: for programs, because messages change. Renaming has `invalid-name`,
    /// `task-active` and `target-exists`, adding a torrent twice `torrent-exists`; plugins and the market have those of `/rpc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub code: Option<Reason>,
}

/// An error with its status.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    message: String,
    code: Option<Reason>,
}

impl Problem {
    /// An error with this status and text.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        let code = None;
        Self { status, message, code }
    }

    /// The request is not as it must be: 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// The same with its cause as a fixed name.
    #[must_use]
    pub fn with_code(self, code: Reason) -> Self {
        let code = Some(code);
        Self { code, ..self }
    }

    /// What the request names does not exist: 404.
    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found")
    }
}

impl Problem {
    /// For routes where a missing, unavailable or untrusted package is the request's fault: 400, not 404, 409 or 503.
    pub(crate) fn refused(error: CallError) -> Self {
        Self::invalid_if(error, |error| match error.application_code() {
            Some(ErrorCode::NotFound | ErrorCode::Conflict) => true,
            // Without a reason, the service itself is unavailable.
            Some(ErrorCode::Unavailable) => error.data.as_ref().is_some_and(|data| data.reason.is_some()),
            _ => false,
        })
    }

    /// For logins of plugins, which fail with 400 also because of the state of the plugin or of other logins. Too many
    /// logins are not 429: to clients that status means that their key is locked out.
    pub(crate) fn login(error: CallError) -> Self {
        Self::invalid_if(error, |error| error.application_code() == Some(ErrorCode::Conflict))
    }

    fn invalid_if(error: CallError, is_invalid: impl Fn(&RpcError) -> bool) -> Self {
        match error {
            CallError::Refused(error) if is_invalid(&error) => Self {
                status: StatusCode::BAD_REQUEST,
                ..error.into()
            },
            error => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Self { status, message, code } = self;
        let success = false;
        (status, Json(ResultMessage { success, message, code })).into_response()
    }
}

/// The answer to a source that is locked out because it showed too many wrong keys or codes.
pub fn too_many(seconds: u64) -> Response {
    let mut response = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong keys; try later").into_response();
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

impl From<Exhausted> for Problem {
    fn from(error: Exhausted) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<CallError> for Problem {
    fn from(error: CallError) -> Self {
        let message = error.to_string();
        match error {
            CallError::Refused(error) => error.into(),
            CallError::NoDaemon(_) | CallError::Unavailable => Self::new(StatusCode::SERVICE_UNAVAILABLE, message),
            CallError::TimedOut => Self::new(StatusCode::GATEWAY_TIMEOUT, message),
            CallError::Unreadable => Self::new(StatusCode::INTERNAL_SERVER_ERROR, message),
        }
    }
}

impl From<RpcError> for Problem {
    fn from(error: RpcError) -> Self {
        let Some(kind) = error.application_code() else {
            let status = match error.code {
                code::INVALID_PARAMS => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            return Self::new(status, error.message);
        };
        let code = error.data.as_ref().and_then(|data| data.reason);
        let message = message_of(error);
        let status = match kind {
            ErrorCode::NotFound => return Self::not_found(),
            ErrorCode::InvalidArgument | ErrorCode::Unsupported => StatusCode::BAD_REQUEST,
            ErrorCode::Conflict | ErrorCode::Cancelled => StatusCode::CONFLICT,
            ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::Unauthorized | ErrorCode::ProtocolIncompatible | ErrorCode::Internal => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self { status, message, code }
    }
}

/// The message, with the field that it concerns.
fn message_of(error: RpcError) -> String {
    match error.data.and_then(|data| data.field) {
        Some(field) if !error.message.contains(&field) => format!("{field}: {}", error.message),
        _ => error.message,
    }
}

macro_rules! refusals {
    ($($(#[doc = $about:literal])+ $name:ident = $($status:ident),+;)+) => {$(
        $(#[doc = $about])+
        #[derive(Debug)]
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Described>> {
                described(&[$(StatusCode::$status),+])
            }
        }
    )+};
}

refusals! {
    /// Responses of the gate to routes that need the key; 404 is a disabled group.
    Gated = UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY_REQUESTS;
    /// Errors of any call to the daemon.
    Called = INTERNAL_SERVER_ERROR, SERVICE_UNAVAILABLE, GATEWAY_TIMEOUT;
    /// Errors of calls about one object: invalid id, not found, wrong state.
    Named = BAD_REQUEST, NOT_FOUND, CONFLICT;
    /// Errors of request bodies.
    Sent = BAD_REQUEST, REQUEST_TIMEOUT, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE;
    /// Responses to calls of aria2's clients that are refused before the call itself is read.
    Unanswered = BAD_REQUEST, FORBIDDEN, NOT_FOUND, REQUEST_TIMEOUT, PAYLOAD_TOO_LARGE, TOO_MANY_REQUESTS,
        SERVICE_UNAVAILABLE;
}

fn described(statuses: &[StatusCode]) -> BTreeMap<String, RefOr<Described>> {
    let describe = |status: &StatusCode| {
        let schema = Ref::from_schema_name("ResultMessage");
        let response = ResponseBuilder::new()
            .description(status.canonical_reason().unwrap_or_default())
            .content("application/json", Content::new(Some(schema)));
        (status.as_str().to_owned(), RefOr::T(response.build()))
    };
    statuses.iter().map(describe).collect()
}
