//! Who answers, and what can be asked.

use std::sync::LazyLock;

use axum::{
    Json,
    body::Bytes,
    extract::State,
    http::header,
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use super::App;
use crate::problem::{Gated, ResultMessage};

/// Is the service there?
///
/// Needs no key. Answers as soon as the service listens; it says nothing about downloads.
#[utoipa::path(get, path = "/ping", responses((status = 200, body = Pong), (status = 403, body = ResultMessage)))]
pub(super) async fn ping(State(app): State<App>) -> Json<Pong> {
    Json(Pong {
        success: true,
        app: "Svc",
        version: app.version.to_string(),
        message: "pong",
        language: app.language.as_deref().map(ToOwned::to_owned),
    })
}

/// This description, as `OpenAPI` 3.1.
///
/// Needs no key. It is made from the routes of the running version, so it is never out of date.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses(
    (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
    (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage, description = "The management API is off")))]
pub(super) async fn openapi_view() -> Response {
    /// Made once: everybody may ask for it, and it has a quarter of a mebibyte.
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| super::openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

/// Which service and version this is.
///
/// Asks for the access key like all of the interface, so it is a good first call to try a key with.
#[utoipa::path(get, path = "/api/v1/info", responses(
    (status = 200, body = ApiInfo), Gated))]
pub(super) async fn info_view(State(app): State<App>) -> Json<ApiInfo> {
    Json(ApiInfo {
        name: "Svc",
        version: app.version.to_string(),
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Pong {
    success: bool,
    app: &'static str,
    version: String,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ApiInfo {
    name: &'static str,
    version: String,
}
