//! Sets the first access key of a server.

use axum::{
    Json,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::App,
    extract::{FREE_TIME, read_object},
    problem::{ResultMessage, too_many},
    service::SetupError,
};

/// Large enough for a key and a code.
const MAX_BODY_BYTES: usize = 4 * 1024;

/// Show whether an access key has been set.
///
/// Needs no key. Until one is set, everything but the web interface, `/ping`, the set-up and this description answers 403.
#[utoipa::path(get, path = "/api/v1/setup/status", responses(
    (status = 200, body = SetupStatus), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 503, body = SetupProblem)))]
pub(crate) async fn setup_status(State(app): State<App>, request: Parts) -> Response {
    if app.daemon.is_draining() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "app shutting down");
    }
    let setup_required = !app.daemon.has_key();
    Json(SetupStatus {
        setup_required,
        min_length: app.about.min_key_chars,
        code_required: setup_required && app.daemon.needs_code(&request).await,
    })
    .into_response()
}

/// Set the first access key.
///
/// Works once, while there is no key. On this machine, a process of the service's own user or of root needs no code;
/// all others need the code that the service printed at its start. Afterwards the key is changed in the settings, with
/// the current key.
#[utoipa::path(post, path = "/api/v1/setup", request_body = SetupBody, responses(
    (status = 200, body = SetupDone), (status = 400, body = SetupProblem), (status = 403, body = SetupProblem),
    (status = 404, body = ResultMessage), (status = 409, body = SetupProblem), (status = 429, body = ResultMessage),
    (status = 500, body = SetupProblem), (status = 503, body = SetupProblem)))]
pub(crate) async fn setup_create(State(app): State<App>, request: Request) -> Response {
    if app.daemon.is_draining() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "app shutting down");
    }
    if app.daemon.has_key() {
        return refused(StatusCode::CONFLICT, SetupError::Completed.to_string());
    }
    let (parts, body) = request.into_parts();
    let asked = match read(&parts.headers, body).await {
        Ok(asked) => asked,
        Err(message) => return refused(StatusCode::BAD_REQUEST, message),
    };
    let set = app.daemon.set_first_key(&parts, &asked.token, asked.code.as_deref());
    let Err(error) = set.await else {
        return Json(SetupDone { ok: true }).into_response();
    };
    let status = match &error {
        SetupError::TooMany { seconds } => return too_many(*seconds),
        SetupError::Completed => StatusCode::CONFLICT,
        SetupError::WrongCode => StatusCode::FORBIDDEN,
        SetupError::Weak(_) => StatusCode::BAD_REQUEST,
        SetupError::NotStored(_) => {
            tracing::error!(%error, "the first access key could not be stored");
            StatusCode::INTERNAL_SERVER_ERROR
        }
    };
    refused(status, error.to_string())
}

async fn read(headers: &HeaderMap, body: Body) -> Result<SetupBody, String> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = content_type.and_then(|value| value.split(';').next()).unwrap_or("");
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err("Content-Type must be application/json".to_owned());
    }
    let bytes = tokio::time::timeout(FREE_TIME, to_bytes(body, MAX_BODY_BYTES))
        .await
        .map_err(|_| format!("the body took longer than {} s", FREE_TIME.as_secs()))?
        .map_err(|_| format!("the body must be at most {} KiB", MAX_BODY_BYTES >> 10))?;
    read_object(&bytes)
}

fn refused(status: StatusCode, error: impl Into<String>) -> Response {
    (status, Json(SetupProblem { error: error.into() })).into_response()
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetupStatus {
    setup_required: bool,
    min_length: usize,
    /// Whether this caller must send the code that was shown where the server was started.
    code_required: bool,
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct SetupBody {
    token: String,
    #[serde(default)]
    code: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetupDone {
    ok: bool,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetupProblem {
    error: String,
}
