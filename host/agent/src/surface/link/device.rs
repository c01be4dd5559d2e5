//! What other devices call: the messages of a pairing, and sealed requests.

use admission::throttle::Source;
use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, FromRequestParts as _, OriginalUri, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use link::{
    PlaneError,
    constants::{INFO_PATH, MAX_BODY_BYTES, TASKS_PATH, UNPAIR_PATH},
    pairing::responder::{Confirmed, Reply as PairReply},
    plane::{Headers, Unauthorized},
};
use protocol::{
    LinkPairConfirmRequest, LinkPairConfirmResponse, LinkPairHelloRequest, LinkPairHelloResponse,
    LinkPairRevealRequest, LinkPairRevealResponse, LinkUnauthorized,
};
use rest::{FREE_TIME, Incoming, Problem, ResultMessage, Sent};

use super::answer::refused;
use crate::{clock::unix_seconds, gate::sender::Sender, surface::state::App};

/// The body of another device's request, with what is decided before it is looked at.
pub(crate) struct FromDevice {
    body: Bytes,
    headers: HeaderMap,
    source: Source,
}

impl FromRequest<App> for FromDevice {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let query = OriginalUri::from_request_parts(&mut parts, app).await;
        if query.is_ok_and(|OriginalUri(uri)| uri.query().is_some()) {
            return Err(Problem::invalid("paths of the device link have no query"));
        }
        let Parts { headers, .. } = &parts;
        let headers = headers.clone();
        let sender: Option<&Sender> = parts.extensions.get();
        let source = sender.map_or(Source::of([0, 0, 0, 0].into()), |sender| sender.source);
        let announced = headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse().ok());
        let too_large = || {
            let message = format!("the body is larger than {} KiB", MAX_BODY_BYTES >> 10);
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        if announced.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
            return Err(too_large());
        }
        let mut incoming = Incoming::of(Request::from_parts(parts, body), FREE_TIME);
        if !incoming.read(MAX_BODY_BYTES).await? || incoming.so_far().len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        let body = incoming.into_bytes();
        Ok(Self { body, headers, source })
    }
}

/// First message of a pairing.
///
/// Another device sends it, with the code. Its version must be 2. Too many wrong codes are answered with 429 for a while.
#[utoipa::path(post, path = "/api/v1/link/pair/hello", request_body = LinkPairHelloRequest, responses(
    (status = 200, body = LinkPairHelloResponse), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage), (status = 429, body = ResultMessage), Sent))]
pub(crate) async fn link_pair_hello(
    State(app): State<App>,
    message: FromDevice,
) -> Result<Json<LinkPairHelloResponse>, Problem> {
    let reply = app.link()?.hello(message.source, &message.body).await;
    match reply.map_err(|error| refused(&error))? {
        PairReply::Hello(response) => Ok(Json(*response)),
        _ => Err(unexpected()),
    }
}

/// Second message of a pairing.
///
/// Within 30 seconds of the first: what the first one committed to. From here on this device's user sees the request.
#[utoipa::path(post, path = "/api/v1/link/pair/reveal", request_body = LinkPairRevealRequest, responses(
    (status = 200, body = LinkPairRevealResponse), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage), Sent))]
pub(crate) async fn link_pair_reveal(
    State(app): State<App>,
    message: FromDevice,
) -> Result<Json<LinkPairRevealResponse>, Problem> {
    match app
        .link()?
        .reveal(&message.body)
        .await
        .map_err(|error| refused(&error))?
    {
        PairReply::Reveal(response) => Ok(Json(response)),
        _ => Err(unexpected()),
    }
}

/// Third message of a pairing.
///
/// With `confirm` it is answered once this device's user has decided, at most a minute after the second message. That the
/// user refused, or did not answer, is no error: `paired` is false and `reason` says which.
#[utoipa::path(post, path = "/api/v1/link/pair/confirm", request_body = LinkPairConfirmRequest, responses(
    (status = 200, body = LinkPairConfirmResponse), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage), Sent))]
pub(crate) async fn link_pair_confirm(
    State(app): State<App>,
    message: FromDevice,
) -> Result<Json<LinkPairConfirmResponse>, Problem> {
    let confirmed = app
        .link()?
        .confirm(&message.body)
        .await
        .map_err(|error| refused(&error))?;
    Ok(Json(LinkPairConfirmResponse {
        success: true,
        paired: confirmed == Confirmed::Paired,
        reason: confirmed.reason().map(ToOwned::to_owned),
    }))
}

fn unexpected() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "the pairing gave another answer than it should",
    )
}

/// Receive a download of a paired device.
///
/// Body and response are sealed (`X-SvcLink-Enc: v2`); the sealed response is `{taskId}`. 429 is the answer to a device that
/// sent as many within 24 hours as this device's owner takes.
#[utoipa::path(post, path = "/api/v1/link/tasks", params(
        ("X-SvcLink-Enc" = String, Header, description = "`v2`"),
        ("X-SvcLink-Device" = String, Header, description = "The sender's fingerprint"),
        ("X-SvcLink-Ts" = String, Header, description = "Unix seconds, at most 120 from this device's"),
        ("X-SvcLink-Nonce" = String, Header, description = "32 lower-case hexadecimal digits, never used before"),
        ("X-SvcLink-Tag" = String, Header, description = "HMAC-SHA256, 64 lower-case hexadecimal digits")),
    request_body(content = String, content_type = "application/octet-stream"), responses(
    (status = 200, description = "Sealed", body = String, content_type = "application/octet-stream"),
    (status = 401, body = LinkUnauthorized), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 429, body = ResultMessage), Sent))]
pub(crate) async fn link_task_receive(State(app): State<App>, message: FromDevice) -> Result<Response, Problem> {
    receive(&app, TASKS_PATH, &message).await
}

/// Exchange device info with a paired device.
///
/// Body and response are sealed like those of `/api/v1/link/tasks`, with the same headers.
#[utoipa::path(post, path = "/api/v1/link/info", request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, description = "Sealed", body = String, content_type = "application/octet-stream"),
    (status = 401, body = LinkUnauthorized), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage), Sent))]
pub(crate) async fn link_info_receive(State(app): State<App>, message: FromDevice) -> Result<Response, Problem> {
    receive(&app, INFO_PATH, &message).await
}

/// Learn that a paired device ended the pairing.
///
/// Body and response are sealed like those of `/api/v1/link/tasks`, with the same headers. Can be repeated.
#[utoipa::path(post, path = "/api/v1/link/unpair", request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, description = "Sealed", body = String, content_type = "application/octet-stream"),
    (status = 401, body = LinkUnauthorized), (status = 403, body = ResultMessage), (status = 404, body = ResultMessage), Sent))]
pub(crate) async fn link_unpair_receive(State(app): State<App>, message: FromDevice) -> Result<Response, Problem> {
    receive(&app, UNPAIR_PATH, &message).await
}

async fn receive(app: &App, path: &str, message: &FromDevice) -> Result<Response, Problem> {
    let one = |name: &str| {
        let mut values = message.headers.get_all(name).iter();
        let value = values.next()?.to_str().ok();
        value.filter(|_| values.next().is_none())
    };
    let headers = Headers {
        enc: one("x-svclink-enc"),
        device: one("x-svclink-device"),
        timestamp: one("x-svclink-ts"),
        nonce: one("x-svclink-nonce"),
        tag: one("x-svclink-tag"),
    };
    match app.link()?.receive(path, &headers, &message.body).await {
        Ok(sealed) => {
            let octets = HeaderValue::from_static("application/octet-stream");
            let enc = HeaderValue::from_static("v2");
            let headers = [(header::CONTENT_TYPE.as_str(), octets), ("x-svclink-enc", enc)];
            Ok((headers, sealed).into_response())
        }
        Err(PlaneError::Unauthorized(reason)) => {
            app.gate.metrics.refused_device(reason);
            Ok(unauthorized(reason))
        }
        Err(PlaneError::Body(what)) => Err(Problem::invalid(what)),
        Err(PlaneError::Declined(why)) => Err(Problem::new(StatusCode::FORBIDDEN, why)),
        Err(PlaneError::TooMany(why)) => Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, why)),
        Err(PlaneError::Unavailable(why)) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, why)),
    }
}

fn unauthorized(reason: Unauthorized) -> Response {
    let body = LinkUnauthorized {
        reason: reason.name().to_owned(),
        server_time: unix_seconds(),
    };
    (StatusCode::UNAUTHORIZED, Json(body)).into_response()
}
