//! Files, exports and uploads for browsers. The daemon holds the bytes; the agent relays them.

use axum::{
    Json,
    body::{self, Bytes},
    extract::{Path, State},
    http::{HeaderMap, HeaderName, Method, Request, StatusCode, header, request},
    response::{IntoResponse, Response},
};
use protocol::{BlobResult, client::CallError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::App,
    extract::{self, Raw},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
};

/// The longest answer to an upload: an id or a refusal.
const MAX_ANSWER_BYTES: usize = 4096;

/// Request headers that are forwarded to the daemon.
const REQUEST_HEADERS: [HeaderName; 2] = [header::RANGE, header::IF_RANGE];

/// Response headers of the daemon that are passed on.
const RESPONSE_HEADERS: [HeaderName; 7] = [
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::CONTENT_RANGE,
    header::CONTENT_DISPOSITION,
    header::ACCEPT_RANGES,
    header::ETAG,
    header::LAST_MODIFIED,
];

/// Upload bytes for a later call.
///
/// `kind` is `torrents` or `plugins`; a call of `/rpc` refers to the upload by the `blobId` of the response. It can be
/// used once.
#[utoipa::path(post, path = "/api/web/blobs/{kind}", params(("kind" = String, Path)), 
    request_body(content = inline(Raw), content_type = "application/octet-stream"), responses(
    (status = 200, body = BlobResult), Gated, Sent, Called, (status = 502, body = ResultMessage)))]
pub(crate) async fn blob_create(
    State(app): State<App>,
    Path(kind): Path<String>,
    Raw(bytes): Raw,
) -> Result<Json<BlobResult>, Problem> {
    if !["torrents", "plugins"].contains(&kind.as_str()) {
        return Err(Problem::not_found());
    }
    keep(&app, &kind, bytes).await.map(Json)
}

/// Uploads bytes to the daemon for a later call that refers to them.
pub(crate) async fn keep(app: &App, kind: &str, bytes: Bytes) -> Result<BlobResult, Problem> {
    let (parts, body) = relay(app, Request::post(format!("/blobs/{kind}")), bytes)
        .await?
        .into_parts();
    let unreadable = || Problem::new(StatusCode::BAD_GATEWAY, "the daemon's answer could not be read");
    let body = body::to_bytes(body, MAX_ANSWER_BYTES).await.map_err(|_| unreadable())?;
    if parts.status.is_success() {
        return serde_json::from_slice(&body).map_err(|_| unreadable());
    }
    let refused: ResultMessage = serde_json::from_slice(&body).map_err(|_| unreadable())?;
    Err(Problem::new(parts.status, refused.message))
}

/// Create a ticket for the download of a file.
///
/// For clients that cannot send the access key, such as a link: as `?ticket=` behind the file's address, it authorizes
/// one request for that address, within a minute.
#[utoipa::path(post, path = "/api/web/tickets", request_body = TicketBody, responses(
    (status = 200, body = Ticket), Gated, Sent, (status = 500, body = ResultMessage)))]
pub(crate) async fn ticket_create(
    State(app): State<App>,
    extract::Body(TicketBody { path }): extract::Body<TicketBody>,
) -> Result<Json<Ticket>, Problem> {
    if !["/api/web/files/tasks/", "/api/web/exports/"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
    {
        return Err(Problem::invalid(
            "path must be one of a file or an export below /api/web",
        ));
    }
    let ticket = app.daemon.ticket(&path);
    let ticket = ticket.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Json(Ticket {
        ticket: ticket.text,
        expires_in_secs: ticket.valid_for.as_secs(),
    }))
}

/// Download a finished file.
///
/// All of it, or the range of a `Range` header.
#[utoipa::path(get, path = "/api/web/files/tasks/{id}", params(("id" = String, Path), ("token" = Option<String>, Query), ("ticket" = Option<String>, Query)), responses(
    (status = 200, description = "The file", content_type = "application/octet-stream"),
    (status = 206, description = "A part of it"),
    (status = 416, description = "No such part"),
    Gated, Named, Called, (status = 502, body = ResultMessage)))]
pub(crate) async fn file_view(
    State(app): State<App>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/files/tasks/{}", segment(&id)?));
    for name in REQUEST_HEADERS {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    relay(&app, request, Bytes::new()).await
}

/// Download an export.
///
/// One that a call of `/rpc` has prepared; it can be fetched once.
#[utoipa::path(get, path = "/api/web/exports/{id}", params(("id" = String, Path), ("token" = Option<String>, Query), ("ticket" = Option<String>, Query)), responses(
    (status = 200, description = "The export", content_type = "application/json"),
    Gated, (status = 400, body = ResultMessage), Called, (status = 502, body = ResultMessage)))]
pub(crate) async fn export_view(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Problem> {
    let request = Request::get(format!("/exports/{}", segment(&id)?));
    let mut response = relay(&app, request, Bytes::new()).await?;
    if response.status() == StatusCode::OK {
        let name = header::HeaderValue::from_static("attachment; filename=\"svc-diagnostics.json\"");
        response.headers_mut().insert(header::CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

/// Validates an id, which becomes one segment of the daemon's path.
fn segment(id: &str) -> Result<&str, Problem> {
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_plain.then_some(id).ok_or_else(Problem::not_found)
}

/// Streams the daemon's response to the client.
async fn relay(app: &App, request: request::Builder, body: Bytes) -> Result<Response, Problem> {
    let request = request.body(body).map_err(|_| CallError::Unreadable)?;
    let (parts, body) = app.daemon.fetch(request).await?.into_parts();
    match parts.status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            // The session ended between the request and its response.
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "app shutting down"));
        }
        // The daemon has no room for another upload; its own message is passed on.
        StatusCode::SERVICE_UNAVAILABLE => {}
        status if status.is_server_error() => {
            return Err(Problem::new(StatusCode::BAD_GATEWAY, "the daemon failed to answer"));
        }
        _ => {}
    }
    let mut response = (parts.status, body).into_response();
    for name in RESPONSE_HEADERS {
        if let Some(value) = parts.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    Ok(response)
}

#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TicketBody {
    /// The path of the download.
    path: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ticket {
    ticket: String,
    expires_in_secs: u64,
}
