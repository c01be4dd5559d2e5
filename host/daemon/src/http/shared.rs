//! What the handlers share, and how they refuse.

use std::sync::Arc;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use tokio_util::task::TaskTracker;

use crate::service::Service;

/// What the handlers share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) service: Arc<Service>,
    /// Owns the upgraded connections.
    pub(crate) tracker: TaskTracker,
}

/// The body of a refusal.
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
