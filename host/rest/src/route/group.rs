//! Groups of downloads, and previews, from which groups are created.

use axum::{
    extract::{Path, State},
    response::Response,
};
use protocol::{
    CreateGroupRequest, CreateGroupResponse, GroupDeleteParams, GroupDto, GroupIdParams, Method, ResolvePreviewRequest,
    ResolvePreviewResponse,
};

use super::task::DeleteParams;
use crate::{
    answer::{self, Ack, Forwarded},
    app::App,
    extract::{Body, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    service::Part,
};

/// List groups of downloads.
///
/// A group holds the downloads that were created together, usually from one URL with several files, and their
/// directory.
#[utoipa::path(get, path = "/api/v1/groups", responses(
    (status = 200, body = Vec<GroupDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn group_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Part::Groups).await
}

/// Download items of a preview.
///
/// Each item becomes a task of a new group; all of them are on disk before the response. A task requests its link when
/// it starts, so the link has not expired by then.
#[utoipa::path(post, path = "/api/v1/groups", request_body = CreateGroupRequest, responses(
    (status = 200, body = CreateGroupResponse), Gated, Sent, Named, Called))]
pub(crate) async fn group_create(
    State(app): State<App>,
    Body(request): Body<CreateGroupRequest>,
) -> Forwarded<CreateGroupResponse> {
    answer::call(&app, Method::GroupCreate, &request).await
}

/// List the files that a URL leads to.
///
/// As a plugin lists them; nothing is downloaded or stored. `plugin` is the one that claims the URL, and `error` says
/// why there is no list. Without items and error, `message` says how the URL would be downloaded: as a plain file if no
/// plugin claims it.
#[utoipa::path(post, path = "/api/v1/resolve/preview", request_body = ResolvePreviewRequest, responses(
    (status = 200, body = ResolvePreviewResponse), Gated, Sent, Called))]
pub(crate) async fn preview_create(
    State(app): State<App>,
    Body(request): Body<ResolvePreviewRequest>,
) -> Forwarded<ResolvePreviewResponse> {
    answer::call(&app, Method::GroupResolvePreview, &request).await
}

/// Remove a group with its downloads.
///
/// With `deleteFiles=true` the files that they made are deleted, too.
#[utoipa::path(delete, path = "/api/v1/groups/{id}", params(("id" = String, Path, description = "The group's id"), DeleteParams), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn group_delete(
    State(app): State<App>,
    Path(group_id): Path<String>,
    Params(DeleteParams { delete_files }): Params<DeleteParams>,
) -> Ack {
    let params = GroupDeleteParams { group_id, delete_files };
    answer::done(&app, Method::GroupDelete, &params).await
}

/// Pause the downloads of a group.
///
/// The received bytes are kept, and used when they continue.
#[utoipa::path(put, path = "/api/v1/groups/{id}/pause", params(("id" = String, Path, description = "The group's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn group_pause(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    answer::done(&app, Method::GroupPause, &GroupIdParams { group_id }).await
}

/// Continue the downloads of a group.
///
/// The paused and the failed ones. They start as far as their queue has room; the others wait for their turn.
#[utoipa::path(put, path = "/api/v1/groups/{id}/continue", params(("id" = String, Path, description = "The group's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn group_continue(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    answer::done(&app, Method::GroupResume, &GroupIdParams { group_id }).await
}
