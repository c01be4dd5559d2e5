//! The device link over HTTP and `/rpc`: what its owner does, and what other devices call.

use std::time::{SystemTime, UNIX_EPOCH};

use admission::throttle::Source;
use axum::{
    Json,
    body::Bytes,
    extract::{FromRequest, FromRequestParts as _, OriginalUri, Path, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse as _, Response},
};
use link::{
    Link, LinkError, PlaneError,
    constants::{INFO_PATH, MAX_BODY_BYTES, TASKS_PATH, UNPAIR_PATH},
    pairing::responder::{Confirmed, Reply as PairReply},
    plane::{Headers, Unauthorized},
};
use protocol::{
    CreatedTask, LinkAddressParams, LinkCodeResponse, LinkDeviceInfo, LinkDeviceParams, LinkDevicePatch,
    LinkDeviceTaskRequest, LinkDevicesResponse, LinkDiscoveredPeer, LinkDiscoveredResponse, LinkDiscoveryParams,
    LinkDiscoveryRequest, LinkDispatchParams, LinkDispatched, LinkOkResponse, LinkOutboxParams, LinkOutboxResponse,
    LinkPairApproveRequest, LinkPairBeginParams, LinkPairBeginRequest, LinkPairBeginResponse, LinkPairConfirmRequest,
    LinkPairConfirmResponse, LinkPairFinishRequest, LinkPairFinishResponse, LinkPairHelloRequest,
    LinkPairHelloResponse, LinkPairRequestsResponse, LinkPairRevealRequest, LinkPairRevealResponse, LinkProbeRequest,
    LinkQueued, LinkUnauthorized, LinkUpdateParams, Method, OkResult, Request as RpcRequest, RpcError,
};
use rest::{Answer, Bounded, FREE_TIME, Gated, Incoming, Problem, ResultMessage, Sent};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::{gate::sender::Sender, settings::config::DEFAULT_PORT, surface::state::App};

/// The body of an owner's request: no larger than what is sent to a device.
type FromOwner<T> = Bounded<T, MAX_BODY_BYTES>;

impl App {
    fn link(&self) -> Result<&Link, Problem> {
        // A drop-in has no link, and its gate lets no such request pass.
        self.link.as_ref().ok_or_else(Problem::not_found)
    }
}

/// A refusal as an answer over HTTP.
fn refused(error: &LinkError) -> Problem {
    let kind = error.kind();
    let status = StatusCode::from_u16(kind.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let problem = Problem::new(status, error.to_string());
    match kind.reason {
        Some(reason) => problem.with_code(reason),
        None => problem,
    }
}

/// Make a pairing code.
///
/// Six digits, to be entered on the other device within two minutes. They can be used once, and void the code before. This
/// device can be found by others from now on.
#[utoipa::path(post, path = "/api/v1/link/code", responses(
    (status = 200, body = LinkCodeResponse), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn link_code_create(State(app): State<App>) -> Answer<LinkCodeResponse> {
    Ok(Json(app.link()?.code().await.map_err(|error| refused(&error))?))
}

/// Stop being found by others.
///
/// A code that was made can still be used until it expires.
#[utoipa::path(delete, path = "/api/v1/link/code", responses((status = 200, body = LinkOkResponse), Gated))]
pub(crate) async fn link_code_delete(State(app): State<App>) -> Answer<LinkOkResponse> {
    app.link()?.stop_announcing();
    Ok(Json(LinkOkResponse::OK))
}

/// List the paired devices.
///
/// They are asked whether they are there, which takes up to eight seconds.
#[utoipa::path(get, path = "/api/v1/link/devices", responses(
    (status = 200, body = LinkDevicesResponse), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn link_device_list(State(app): State<App>) -> Answer<LinkDevicesResponse> {
    let devices = app.link()?.refresh().await.map_err(|error| refused(&error.into()))?;
    Ok(Json(LinkDevicesResponse { devices }))
}

/// Change what a paired device may do.
///
/// `acceptsTasks`: whether downloads that it sends are taken. `allowPrivate`: whether their URLs may lead to private
/// addresses. `dailyTasks`: how many are taken within 24 hours.
#[utoipa::path(patch, path = "/api/v1/link/devices/{fingerprint}", request_body = LinkDevicePatch,
    params(("fingerprint" = String, Path, description = "The device's fingerprint")),
    responses((status = 200, body = LinkDeviceInfo), Gated, Sent))]
pub(crate) async fn link_device_update(
    State(app): State<App>,
    Path(fingerprint): Path<String>,
    Bounded(patch): FromOwner<LinkDevicePatch>,
) -> Answer<LinkDeviceInfo> {
    let updated = app.link()?.update(&fingerprint, &patch).await;
    Ok(Json(updated.map_err(|error| refused(&error))?))
}

/// Remove a paired device.
///
/// Its key and the downloads that wait for it are removed as well. If it is there, it learns of it.
#[utoipa::path(delete, path = "/api/v1/link/devices/{fingerprint}",
    params(("fingerprint" = String, Path, description = "The device's fingerprint")),
    responses((status = 200, body = LinkOkResponse), (status = 400, body = ResultMessage, description = "Not UTF-8"), Gated,
        (status = 503, body = ResultMessage)))]
pub(crate) async fn link_device_delete(
    State(app): State<App>,
    Path(fingerprint): Path<String>,
) -> Answer<LinkOkResponse> {
    app.link()?
        .remove(&fingerprint)
        .await
        .map_err(|error| refused(&error))?;
    Ok(Json(LinkOkResponse::OK))
}

/// Send a download to a paired device.
///
/// It is created there and now, or waits in the outbox for up to seven days if the device is away (202). `headers` and
/// `cookies` are handed over only with `shareSecrets`. 401 is also the answer if the device is not paired, or does not
/// accept this one; if the clocks differ, its time is in the message.
#[utoipa::path(post, path = "/api/v1/link/devices/{fingerprint}/tasks", request_body = LinkDeviceTaskRequest,
    params(("fingerprint" = String, Path, description = "The device's fingerprint")),
    responses((status = 200, body = CreatedTask), (status = 202, body = LinkQueued), Gated, Sent))]
pub(crate) async fn link_device_send(
    State(app): State<App>,
    Path(fingerprint): Path<String>,
    Bounded(task): FromOwner<LinkDeviceTaskRequest>,
) -> Result<Response, Problem> {
    let sent = app.link()?.dispatch(&fingerprint, task).await;
    Ok(match sent.map_err(|error| refused(&error))? {
        LinkDispatched::Created { task_id } => {
            let created = CreatedTask {
                task_id,
                ..CreatedTask::default()
            };
            Json(created).into_response()
        }
        LinkDispatched::Queued(queued) => (StatusCode::ACCEPTED, Json(queued)).into_response(),
    })
}

/// List the devices nearby.
///
/// As the search has found them so far; paired devices are not among them.
#[utoipa::path(get, path = "/api/v1/link/discovered", responses((status = 200, body = LinkDiscoveredResponse), Gated))]
pub(crate) async fn link_discovered(State(app): State<App>) -> Answer<LinkDiscoveredResponse> {
    let peers = app.link()?.discovered();
    Ok(Json(LinkDiscoveredResponse { peers }))
}

/// Search for devices nearby.
///
/// `start` begins a search, or begins it again with an empty list; `stop` ends it and keeps the list.
#[utoipa::path(post, path = "/api/v1/link/discovery", request_body = LinkDiscoveryRequest, responses(
    (status = 200, body = LinkOkResponse), Gated, Sent))]
pub(crate) async fn link_discovery(
    State(app): State<App>,
    Bounded(LinkDiscoveryRequest { action }): FromOwner<LinkDiscoveryRequest>,
) -> Answer<LinkOkResponse> {
    let link = app.link()?;
    match action.as_str() {
        "start" => link.search().await.map_err(|error| refused(&error))?,
        "stop" => link.stop_search(),
        _ => return Err(Problem::invalid("action must be start or stop")),
    }
    Ok(Json(LinkOkResponse::OK))
}

/// Ask an address which device it is.
///
/// For devices that a search does not find, in another network for example. The answer is not added to what was found.
#[utoipa::path(post, path = "/api/v1/link/probe", request_body = LinkProbeRequest, responses(
    (status = 200, body = LinkDiscoveredPeer), Gated, Sent))]
pub(crate) async fn link_probe(
    State(app): State<App>,
    Bounded(LinkProbeRequest { host, port }): FromOwner<LinkProbeRequest>,
) -> Answer<LinkDiscoveredPeer> {
    let probed = app.link()?.probe(&host, port).await;
    Ok(Json(probed.map_err(|error| refused(&error))?))
}

/// List the downloads that wait for their device.
///
/// At most 100, each for up to seven days, and those that the device refused.
#[utoipa::path(get, path = "/api/v1/link/outbox", responses(
    (status = 200, body = LinkOutboxResponse), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn link_outbox(State(app): State<App>) -> Answer<LinkOutboxResponse> {
    let entries = app.link()?.outbox().await.map_err(|error| refused(&error))?;
    Ok(Json(LinkOutboxResponse { entries }))
}

/// Remove a download that waits for its device.
///
/// It is not sent. One that is on its way already may still arrive.
#[utoipa::path(delete, path = "/api/v1/link/outbox/{id}", params(("id" = String, Path, description = "The entry's id")),
    responses((status = 200, body = LinkOkResponse), (status = 400, body = ResultMessage, description = "Not UTF-8"), Gated,
        (status = 503, body = ResultMessage)))]
pub(crate) async fn link_outbox_delete(State(app): State<App>, Path(id): Path<String>) -> Answer<LinkOkResponse> {
    app.link()?.remove_queued(&id).await.map_err(|error| refused(&error))?;
    Ok(Json(LinkOkResponse::OK))
}

/// Begin a pairing with the code that another device shows.
///
/// The response has the six digits that the other device must show as well: if it shows others, somebody is between the
/// two. `finish` ends the pairing, within three minutes.
#[utoipa::path(post, path = "/api/v1/link/pair/begin", request_body = LinkPairBeginRequest, responses(
    (status = 200, body = LinkPairBeginResponse), Gated, Sent))]
pub(crate) async fn link_pair_begin(
    State(app): State<App>,
    Bounded(LinkPairBeginRequest { host, port, code }): FromOwner<LinkPairBeginRequest>,
) -> Answer<LinkPairBeginResponse> {
    let begun = app.link()?.begin(&host, port, &code).await;
    Ok(Json(begun.map_err(|error| refused(&error))?))
}

/// End a pairing that began here.
///
/// With `accept` it waits for the other device's user, up to a minute. The token is used up in any case.
#[utoipa::path(post, path = "/api/v1/link/pair/finish", request_body = LinkPairFinishRequest, responses(
    (status = 200, body = LinkPairFinishResponse), Gated, Sent))]
pub(crate) async fn link_pair_finish(
    State(app): State<App>,
    Bounded(LinkPairFinishRequest { token, accept }): FromOwner<LinkPairFinishRequest>,
) -> Answer<LinkPairFinishResponse> {
    let finished = app.link()?.finish(&token, accept).await;
    Ok(Json(finished.map_err(|error| refused(&error))?))
}

/// Answer a device that asks to be paired.
///
/// Accept only if both devices show the same six digits.
#[utoipa::path(post, path = "/api/v1/link/pair/approve", request_body = LinkPairApproveRequest, responses(
    (status = 200, body = LinkOkResponse), Gated, Sent))]
pub(crate) async fn link_pair_approve(
    State(app): State<App>,
    Bounded(LinkPairApproveRequest { session_id, accept }): FromOwner<LinkPairApproveRequest>,
) -> Answer<LinkOkResponse> {
    let approved = app.link()?.approve(session_id, accept).await;
    approved.map_err(|error| refused(&error))?;
    Ok(Json(LinkOkResponse::OK))
}

/// List the devices that ask to be paired.
///
/// With the six digits to compare. User interfaces get the same as the event `linkPairingRequestsChanged` of `/rpc`.
#[utoipa::path(get, path = "/api/v1/link/pair/requests", responses((status = 200, body = LinkPairRequestsResponse), Gated))]
pub(crate) async fn link_pair_requests(State(app): State<App>) -> Answer<LinkPairRequestsResponse> {
    let requests = app.link()?.requests();
    Ok(Json(LinkPairRequestsResponse { requests }))
}

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
        server_time: unix_now(),
    };
    (StatusCode::UNAUTHORIZED, Json(body)).into_response()
}

fn unix_now() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(passed.as_secs()).unwrap_or(i64::MAX)
}

/// A refusal as an answer over `/rpc`.
fn refused_call(error: &LinkError) -> RpcError {
    let kind = error.kind();
    let refused = RpcError::application(kind.code, error.to_string());
    match kind.reason {
        Some(reason) => refused.with_reason(reason),
        None => refused,
    }
}

fn encode(result: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    to_raw_value(result).map_err(|error| RpcError::internal(error.to_string()))
}

/// `agent.link.*`
pub(crate) async fn call(app: &App, method: Method, request: &RpcRequest) -> Result<Box<RawValue>, RpcError> {
    let Some(link) = &app.link else {
        return Err(RpcError::method_not_found(method.name()));
    };
    let refused = |error: LinkError| refused_call(&error);
    match method {
        Method::LinkPairingCode => encode(&link.pairing_code().await.map_err(refused)?),
        Method::LinkStopPairing => {
            link.stop_announcing();
            encode(&OkResult::OK)
        }
        Method::LinkDiscoverySet => {
            let LinkDiscoveryParams { enabled } = request.params()?;
            if enabled {
                link.search().await.map_err(refused)?;
            } else {
                link.stop_search();
            }
            encode(&OkResult::OK)
        }
        Method::LinkDiscovered => encode(&link.discovered()),
        Method::LinkProbe => {
            let LinkAddressParams { address } = request.params()?;
            let (host, port) = split(&address)?;
            encode(&link.probe(&host, port).await.map_err(refused)?)
        }
        Method::LinkPairBegin => {
            let LinkPairBeginParams { address, code } = request.params()?;
            let (host, port) = split(&address)?;
            encode(&link.begin(&host, port, &code).await.map_err(refused)?)
        }
        Method::LinkPairFinish => {
            let LinkPairFinishRequest { token, accept } = request.params()?;
            encode(&link.finish(&token, accept).await.map_err(refused)?)
        }
        Method::LinkApprove => {
            let LinkPairApproveRequest { session_id, accept } = request.params()?;
            link.approve(session_id, accept).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        Method::LinkRequests => encode(&link.requests()),
        _ => call_device(link, method, request).await,
    }
}

/// Those about paired devices.
async fn call_device(link: &Link, method: Method, request: &RpcRequest) -> Result<Box<RawValue>, RpcError> {
    let refused = |error: LinkError| refused_call(&error);
    match method {
        Method::LinkRefresh => encode(&link.refresh().await.map_err(|error| refused(error.into()))?),
        Method::LinkRemove => {
            let LinkDeviceParams { fingerprint } = request.params()?;
            link.remove(&fingerprint).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        Method::LinkUpdate => {
            let LinkUpdateParams {
                fingerprint,
                accepts_tasks,
                allow_private,
                daily_tasks,
            } = request.params()?;
            let patch = LinkDevicePatch {
                accepts_tasks,
                allow_private,
                daily_tasks,
            };
            encode(&link.update(&fingerprint, &patch).await.map_err(refused)?)
        }
        Method::LinkDispatch => {
            let LinkDispatchParams { fingerprint, task } = request.params()?;
            encode(&link.dispatch(&fingerprint, task).await.map_err(refused)?)
        }
        Method::LinkOutbox => encode(&link.outbox().await.map_err(refused)?),
        Method::LinkOutboxRemove => {
            let LinkOutboxParams { id } = request.params()?;
            link.remove_queued(&id).await.map_err(refused)?;
            encode(&OkResult::OK)
        }
        _ => Err(RpcError::method_not_found(method.name())),
    }
}

fn split(address: &str) -> Result<(String, u16), RpcError> {
    link::split_address(address, DEFAULT_PORT).ok_or_else(|| {
        let message = "address must be host, host:port or http://host[:port]";
        RpcError::application(protocol::ErrorCode::InvalidArgument, message).with_field("address")
    })
}
