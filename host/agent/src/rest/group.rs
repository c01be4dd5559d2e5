//! Groups.

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{GroupDeleteParams, GroupDto, GroupIdParams, Method, OkResult};

use super::{App, extract::Params, task::DeleteParams};
use crate::problem::{Problem, ResultMessage};

type Ack = Result<Json<ResultMessage>, Problem>;

/// All groups.
#[utoipa::path(get, path = "/api/v1/groups", responses(
    (status = 200, body = Vec<GroupDto>), (status = 401, body = ResultMessage),
    (status = 403, body = ResultMessage), (status = 429, body = ResultMessage),
    (status = 500, body = ResultMessage), (status = 503, body = ResultMessage),
    (status = 504, body = ResultMessage)))]
pub(super) async fn group_list(State(app): State<App>) -> Result<Response, Problem> {
    app.need_daemon()?;
    Ok(super::json(app.daemon.hub.look(|daemon| daemon.groups().to_owned())))
}

/// Delete a group with its tasks, and their files if asked to.
#[utoipa::path(delete, path = "/api/v1/groups/{id}", params(("id" = String, Path), DeleteParams), responses(
    (status = 200, body = ResultMessage), (status = 400, body = ResultMessage),
    (status = 401, body = ResultMessage), (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage), (status = 409, body = ResultMessage),
    (status = 429, body = ResultMessage), (status = 500, body = ResultMessage),
    (status = 503, body = ResultMessage), (status = 504, body = ResultMessage)))]
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
    (status = 200, body = ResultMessage), (status = 401, body = ResultMessage),
    (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 409, body = ResultMessage), (status = 429, body = ResultMessage),
    (status = 500, body = ResultMessage), (status = 503, body = ResultMessage),
    (status = 504, body = ResultMessage)))]
pub(super) async fn group_pause(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    let _: OkResult = app.daemon.call(Method::GroupPause, &GroupIdParams { group_id }).await?;
    Ok(super::ok())
}

/// Continue a group's tasks.
#[utoipa::path(put, path = "/api/v1/groups/{id}/continue", params(("id" = String, Path)), responses(
    (status = 200, body = ResultMessage), (status = 401, body = ResultMessage),
    (status = 403, body = ResultMessage), (status = 404, body = ResultMessage),
    (status = 409, body = ResultMessage), (status = 429, body = ResultMessage),
    (status = 500, body = ResultMessage), (status = 503, body = ResultMessage),
    (status = 504, body = ResultMessage)))]
pub(super) async fn group_continue(State(app): State<App>, Path(group_id): Path<String>) -> Ack {
    let _: OkResult = app
        .daemon
        .call(Method::GroupResume, &GroupIdParams { group_id })
        .await?;
    Ok(super::ok())
}
