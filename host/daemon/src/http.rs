//! The daemon's HTTP routes on the loopback: the upgrade to `/rpc`, uploads, exports and finished files.

mod connection;
mod files;
pub(crate) mod shared;
mod writer;

use std::sync::Arc;

use admission::ConnectionSlot;
use axum::{
    Json, Router,
    body::Body,
    extract::{DefaultBodyLimit, Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use hyper_util::rt::TokioIo;
use protocol::{BlobResult, MAX_BLOB_BYTES, proof};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::{
    http::shared::{Shared, problem},
    service::blobs::Full,
};

/// Limit of what a client may send before it has authenticated; the proof takes a few hundred bytes.
const UNPROVED_BYTES: usize = 64 * 1024;

pub(crate) fn router(shared: Shared) -> Router {
    let keyed = Router::new()
        .route(
            "/blobs/{kind}",
            post(keep_blob).layer(DefaultBodyLimit::max(MAX_BLOB_BYTES)),
        )
        .route("/files/tasks/{id}", get(files::serve))
        .route("/exports/{id}", get(serve_export))
        .layer(middleware::from_fn_with_state(shared.clone(), require_key));
    Router::new()
        .route("/rpc", get(upgrade))
        .merge(keyed)
        .layer(middleware::from_fn(refuse_browsers))
        .with_state(shared)
}

/// Browsers talk to the agent only. A web page that guesses this port must not learn anything from it.
async fn refuse_browsers(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return problem(StatusCode::FORBIDDEN, "this port is not for browsers");
    }
    next.run(request).await
}

/// Authenticates before any body is read.
async fn require_key(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    if !shared.service.access.admits(request.headers()) {
        return problem(StatusCode::UNAUTHORIZED, "invalid or missing key");
    }
    if let Some(slot) = request.extensions().get::<Arc<ConnectionSlot<()>>>() {
        slot.authenticate();
    }
    let mut response = next.run(request).await;
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `GET /rpc`: RFC 6455 §4.2.
async fn upgrade(State(shared): State<Shared>, mut request: Request) -> Response {
    let is_known = match shared.service.access.has_token(request.headers()) {
        Some(false) => return problem(StatusCode::UNAUTHORIZED, "invalid key"),
        Some(true) => true,
        None => false,
    };
    let Some(key) = websocket_key(request.method(), request.headers()) else {
        let mut response = problem(StatusCode::UPGRADE_REQUIRED, "/rpc is a WebSocket, version 13");
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgrading = hyper::upgrade::on(&mut request);
    let service = Arc::clone(&shared.service);
    let slot = request.extensions().get::<Arc<ConnectionSlot<()>>>().cloned();
    let Some(slot) = slot else {
        return problem(StatusCode::INTERNAL_SERVER_ERROR, "a request came on no connection");
    };
    if is_known {
        slot.authenticate();
    }
    slot.limit_reading(UNPROVED_BYTES);
    shared.tracker.spawn(async move {
        match upgrading.await {
            Ok(upgraded) => tokio::select! {
                () = connection::serve(service, TokioIo::new(upgraded), is_known, Arc::clone(&slot)) => {}
                () = slot.evicted() => {}
            },
            Err(error) => tracing::debug!(%error, "a client went away while its connection was upgraded"),
        }
    });
    let headers = [
        (header::CONNECTION, "Upgrade".to_owned()),
        (header::UPGRADE, "websocket".to_owned()),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn websocket_key(method: &Method, headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let lists = |name, item: &str| {
        text(name).is_some_and(|list| list.split(',').any(|entry| entry.trim().eq_ignore_ascii_case(item)))
    };
    let is_upgrade = method == Method::GET
        && lists(header::CONNECTION, "upgrade")
        && lists(header::UPGRADE, "websocket")
        && text(header::SEC_WEBSOCKET_VERSION) == Some("13");
    text(header::SEC_WEBSOCKET_KEY)
        .filter(|_| is_upgrade)
        .map(ToOwned::to_owned)
}

/// `POST /blobs/{kind}`: stores bytes for a later call.
async fn keep_blob(State(shared): State<Shared>, Path(kind): Path<String>, body: Bytes) -> Response {
    if !matches!(kind.as_str(), "torrents" | "plugins") {
        return problem(StatusCode::NOT_FOUND, "blobs are torrents or plugins");
    }
    if body.is_empty() {
        return problem(StatusCode::BAD_REQUEST, "the body is empty");
    }
    let Ok(blob_id) = proof::nonce() else {
        return problem(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the operating system gives no random numbers",
        );
    };
    match shared.service.blobs.keep(blob_id.clone(), body) {
        Ok(()) => Json(BlobResult { blob_id }).into_response(),
        Err(Full) => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many uploads wait for the call that names them",
        ),
    }
}

/// `GET /exports/{id}`: an export can be fetched once.
async fn serve_export(State(shared): State<Shared>, Path(id): Path<String>) -> Response {
    let Some(text) = shared.service.exports.take(&id) else {
        return problem(StatusCode::NOT_FOUND, "the export is unknown, fetched or expired");
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"svc-diagnostics.json\"",
        ),
    ];
    (headers, Body::from(text)).into_response()
}
