//! Groups, and the previews that they are made of.

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{
    CreateGroupRequest, CreateGroupResponse, GroupDeleteParams, GroupDto, GroupIdParams, Method, OkResult,
    ResolvePreviewRequest, ResolvePreviewResponse,
};

use super::{
    App,
    extract::{Body, Params},
    task::DeleteParams,
};
use crate::problem::{Called, Gated, Named, Problem, ResultMessage, Sent};

type Ack = Result<Json<ResultMessage>, Problem>;

/// All groups.
#[utoipa::path(get, path = "/api/v1/groups", responses(
    (status = 200, body = Vec<GroupDto>), Gated, (status = 503, body = ResultMessage)))]
pub(super) async fn group_list(State(app): State<App>) -> Result<Response, Problem> {
    Ok(super::json(
        app.daemon.known()?.look(|daemon| daemon.groups().to_owned()),
    ))
}

/// Make tasks of items of a preview. They are on the disk when this is answered.
#[utoipa::path(post, path = "/api/v1/groups", request_body = CreateGroupRequest, responses(
    (status = 200, body = CreateGroupResponse), Gated, Sent, Named, Called))]
pub(super) async fn group_create(
    State(app): State<App>,
    Body(request): Body<CreateGroupRequest>,
) -> Result<Json<CreateGroupResponse>, Problem> {
    Ok(Json(app.daemon.call(Method::GroupCreate, &request).await?))
}

/// Show what is behind a URL, if a plugin has a list of it. Nothing is stored; why there is no list is in `error`.
#[utoipa::path(post, path = "/api/v1/resolve/preview", request_body = ResolvePreviewRequest, responses(
    (status = 200, body = ResolvePreviewResponse), Gated, Sent, Called))]
pub(super) async fn preview_create(
    State(app): State<App>,
    Body(request): Body<ResolvePreviewRequest>,
) -> Result<Json<ResolvePreviewResponse>, Problem> {
    Ok(Json(app.daemon.call(Method::GroupResolvePreview, &request).await?))
}

/// Delete a group with its tasks, and their files if asked to.
#[utoipa::path(delete, path = "/api/v1/groups/{id}", params(("id" = String, Path), DeleteParams), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(super) async fn group_delete(
    State(app): State<App>,
    Path(group_id): Path<String>,
    Params(DeleteParams { delete_files }): Params<DeleteParams>,
) -> Ack {
    let params = GroupDeleteParams { group_id, delete_files };
    let _: OkResult = app.daemon.call(Method::GroupDelete, &params).await?;
    Ok(super::ok())
}

/// Pause a group's tasks.
#[utoipa::path(put, path = "/api/v1/groups/{id}/pause", params(("id" = String, Path)), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(super) async fn group_pause(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    let _: OkResult = app.daemon.call(Method::GroupPause, &GroupIdParams { group_id }).await?;
    Ok(super::ok())
}

/// Continue a group's tasks.
#[utoipa::path(put, path = "/api/v1/groups/{id}/continue", params(("id" = String, Path)), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(super) async fn group_continue(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    let _: OkResult = app
        .daemon
        .call(Method::GroupResume, &GroupIdParams { group_id })
        .await?;
    Ok(super::ok())
}
