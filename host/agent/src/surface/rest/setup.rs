//! Sets the first access key of a server.

use admission::throttle::Form;
use axum::{
    Extension, Json,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    access::{
        key::{AccessKey, MIN_KEY_CHARS},
        peer_user::Peer,
    },
    gate::{self, sender::Sender},
    problem::ResultMessage,
    settings::{file::ChangeError, switches::Settings},
    surface::{
        http::extract::{FREE_TIME, read_object},
        state::App,
    },
};

/// Large enough for a key and a code.
const MAX_BODY_BYTES: usize = 4 * 1024;

/// Show whether an access key has been set.
///
/// Needs no key. Until one is set, everything but the start page, `/ping`, the set-up and this description answers 403.
#[utoipa::path(get, path = "/api/v1/setup/status", responses(
    (status = 200, body = SetupStatus), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 503, body = SetupProblem)))]
pub(crate) async fn setup_status(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
) -> Response {
    if app.shutdown.drain.is_cancelled() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "app shutting down");
    }
    let setup_required = app.gate.settings.current().key.is_none();
    Json(SetupStatus {
        setup_required,
        min_length: MIN_KEY_CHARS,
        code_required: setup_required && app.gate.needs_code(&peer, &sender, &headers).await,
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
pub(crate) async fn setup_create(
    State(app): State<App>,
    Extension(sender): Extension<Sender>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    if app.shutdown.drain.is_cancelled() {
        return refused(StatusCode::SERVICE_UNAVAILABLE, "app shutting down");
    }
    if app.gate.settings.current().key.is_some() {
        return refused(StatusCode::CONFLICT, "setup already completed");
    }
    let (parts, body) = request.into_parts();
    let asked = match read(&parts.headers, body).await {
        Ok(asked) => asked,
        Err(message) => return refused(StatusCode::BAD_REQUEST, message),
    };
    if app.gate.needs_code(&peer, &sender, &parts.headers).await
        && let Some(response) = check_code(&app, &sender, asked.code.as_deref())
    {
        return response;
    }
    let key = match AccessKey::new(&asked.token) {
        Ok(key) => key,
        Err(weak) => return refused(StatusCode::BAD_REQUEST, weak.to_string()),
    };
    let first = move |settings: &Settings| match settings.key {
        Some(_) => Err(ChangeError::KeyExists),
        None => Ok(Settings {
            key: Some(key),
            ..settings.clone()
        }),
    };
    match app.gate.settings.change(first).await {
        Ok(_) => Json(SetupDone { ok: true }).into_response(),
        Err(ChangeError::KeyExists) => refused(StatusCode::CONFLICT, "setup already completed"),
        Err(error) => {
            tracing::error!(%error, "the first access key could not be stored");
            refused(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
        }
    }
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

/// Rejects clients with a wrong or missing set-up code. Wrong codes are counted apart from wrong keys.
fn check_code(app: &App, sender: &Sender, code: Option<&str>) -> Option<Response> {
    if let Some(seconds) = app.gate.wait(sender.source, Form::Code) {
        return Some(gate::too_many(seconds));
    }
    let is_right = code.is_some_and(|code| app.setup_code.as_ref().is_some_and(|expect| expect.is(code)));
    if code.is_some() {
        app.gate.count(sender.source, Form::Code, is_right);
    }
    (!is_right).then(|| {
        refused(
            StatusCode::FORBIDDEN,
            "the setup code shown where the server was started is needed",
        )
    })
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
