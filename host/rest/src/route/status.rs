//! `/ping` and `/api/v1/info`: liveness and version.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    problem::{Gated, ResultMessage},
};

/// Check that the service runs.
///
/// Needs no key. Answers as soon as the service listens; it says nothing about downloads.
#[utoipa::path(get, path = "/ping", responses((status = 200, body = Pong), (status = 403, body = ResultMessage)))]
pub(crate) async fn ping(State(app): State<App>) -> Json<Pong> {
    let device = app.daemon.device();
    Json(Pong {
        success: true,
        app: "Svc",
        version: app.about.version.to_string(),
        message: "pong",
        language: app.about.language.as_deref().map(ToOwned::to_owned),
        link_fingerprint: device.as_ref().map(|device| device.fingerprint.clone()),
        link_name: device.as_ref().map(|device| device.name.clone()),
        link_platform: device.map(|device| device.platform),
    })
}

/// Show the version of the service.
///
/// Requires the access key, so it is a good call to test a key with.
#[utoipa::path(get, path = "/api/v1/info", responses(
    (status = 200, body = ApiInfo), Gated))]
pub(crate) async fn info_view(State(app): State<App>) -> Json<ApiInfo> {
    Json(ApiInfo {
        name: "Svc",
        version: app.about.version.to_string(),
    })
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pong {
    success: bool,
    app: &'static str,
    version: String,
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    /// The fingerprint for the device link, if it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_fingerprint: Option<String>,
    /// The name for the device link.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_name: Option<String>,
    /// The platform for the device link.
    #[serde(skip_serializing_if = "Option::is_none")]
    link_platform: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiInfo {
    name: &'static str,
    version: String,
}
