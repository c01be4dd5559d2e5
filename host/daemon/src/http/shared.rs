//! State and error responses of the HTTP handlers.

use std::sync::Arc;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use tokio_util::task::TaskTracker;

use crate::service::Service;

/// State of the HTTP handlers.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    /// Tracks upgraded connections: the listener does not see them any more.
    pub(crate) tracker: TaskTracker,
}

/// The body of an error response.
#[derive(Serialize)]
struct Problem {
    success: bool,
    message: String,
}

pub(crate) fn problem(status: StatusCode, message: impl Into<String>) -> Response {
    let message = message.into();
    (
        status,
        Json(Problem {
            success: false,
            message,
        }),
    )
        .into_response()
}
