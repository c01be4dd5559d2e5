//! What the owner of this device does over HTTP.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use link::constants::MAX_BODY_BYTES;
use protocol::{
    CreatedTask, LinkCodeResponse, LinkDeviceInfo, LinkDevicePatch, LinkDeviceTaskRequest, LinkDevicesResponse,
    LinkDiscoveredPeer, LinkDiscoveredResponse, LinkDiscoveryRequest, LinkDispatched, LinkOkResponse,
    LinkOutboxResponse, LinkPairApproveRequest, LinkPairBeginRequest, LinkPairBeginResponse, LinkPairFinishRequest,
    LinkPairFinishResponse, LinkPairRequestsResponse, LinkProbeRequest, LinkQueued,
};
use rest::{Answer, Bounded, Gated, Problem, ResultMessage, Sent};

use super::answer::refused;
use crate::surface::state::App;

/// The body of an owner's request: no larger than what is sent to a device.
type FromOwner<T> = Bounded<T, MAX_BODY_BYTES>;

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
/// The response has the six digits that the other device must show as well: if it shows others, a third device is in the
/// middle. `finish` ends the pairing, within three minutes.
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
