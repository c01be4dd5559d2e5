//! Tasks.

use axum::{
    extract::{Path, State},
    response::Response,
};
use protocol::{
    ChangeUrlParams, ChangedTask, CreateTaskParams, CreateTaskRequest, CreatedTask, DeleteTaskParams, Method,
    MoveTaskParams, RenameTaskParams, SpeedLimitParams, TaskDto, TaskIdParams, TaskStatus, TaskTagsParams,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    answer::{self, Ack, Forwarded},
    app::App,
    extract::{Body, PageParams, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    route::torrent,
    service::{Filter, Page, PageError},
};

/// List downloads, newest first.
///
/// All of them, or those of one status, queue, group or tag. With `limit` it is a page: the header `X-Total-Count` has the
/// number of all, and `X-Next-Cursor` the `cursor` of the next page; without that header there is none.
#[utoipa::path(get, path = "/api/v1/tasks", params(ListParams, PageParams), responses(
    (status = 200, body = Vec<TaskDto>, headers(
        ("X-Next-Cursor" = String, description = "Where the next page begins, if there is one"),
        ("X-Total-Count" = usize, description = "How many all pages have together; only with `limit`"))),
    (status = 400, body = ResultMessage), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn task_list(
    State(app): State<App>,
    Params(params): Params<ListParams>,
    Params(part): Params<PageParams>,
) -> Result<Response, Problem> {
    let (filter, limit) = (params.filter()?, part.limit()?);
    let page = app.daemon.tasks(filter, limit, part.cursor.as_deref()).await;
    let Page { tasks, next, total } = page.map_err(|error| match error {
        PageError::Call(error) => error.into(),
        PageError::BadCursor => PageParams::bad_cursor(),
    })?;
    Ok(answer::page(answer::list(tasks), next, total))
}

/// Add a download.
///
/// Only `url` is required: http, https, ftp, ftps, ftpes or a magnet link. A torrent file is given in `torrentB64`, or uploaded
/// first and named in `torrentBlobId`; then `url` may be empty. The task is on disk before the response; it starts when its
/// queue has room. A URL that a plugin claims is resolved at the start, and its task may become a group of several downloads;
/// a link to a torrent file becomes a download of the torrent, unless `followTorrent` is false. A torrent that another task
/// has is refused with 409 and the code `torrent-exists`.
#[utoipa::path(post, path = "/api/v1/tasks", request_body = CreateTaskRequest, responses(
    (status = 200, body = CreatedTask), Gated, Sent, Named, Called))]
pub(crate) async fn task_create(
    State(app): State<App>,
    Body(mut request): Body<CreateTaskRequest>,
) -> Forwarded<CreatedTask> {
    let has_file = request.metalink_b64.is_some() || request.torrent_b64.is_some() || request.torrent_blob_id.is_some();
    if request.url.trim().is_empty() && !has_file {
        return Err(Problem::invalid("url is required"));
    }
    torrent::upload(&app, &mut request).await?;
    let params = CreateTaskParams {
        request,
        ..CreateTaskParams::default()
    };
    answer::call(&app, Method::TaskCreate, &params).await
}

/// Pause all downloads.
///
/// The received bytes are kept, and used when they continue.
#[utoipa::path(put, path = "/api/v1/tasks/pause", responses(
    (status = 200, body = ResultMessage), Gated, Called))]
pub(crate) async fn task_pause_all(State(app): State<App>) -> Ack {
    answer::done(&app, Method::TaskPauseAll, &serde_json::Map::new()).await
}

/// Continue all paused downloads.
///
/// They start as far as their queues have room; the others wait for their turn. Those of a stopped queue stay paused, and
/// failed downloads are continued one by one or by their group.
#[utoipa::path(put, path = "/api/v1/tasks/continue", responses(
    (status = 200, body = ResultMessage), Gated, Called))]
pub(crate) async fn task_continue_all(State(app): State<App>) -> Ack {
    answer::done(&app, Method::TaskResumeAll, &serde_json::Map::new()).await
}

/// Show one download.
///
/// Its status, its bytes, its file, and why it failed if it did.
#[utoipa::path(get, path = "/api/v1/tasks/{id}", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = TaskDto), Gated, (status = 400, body = ResultMessage), (status = 503, body = ResultMessage)))]
pub(crate) async fn task_view(State(app): State<App>, Path(id): Path<String>) -> Result<Response, Problem> {
    app.daemon
        .task(&id)
        .await?
        .map(answer::json)
        .ok_or_else(Problem::not_found)
}

/// Remove a download.
///
/// With `deleteFiles=true` the files that it made are deleted, too; nothing else on the disk is touched.
#[utoipa::path(delete, path = "/api/v1/tasks/{id}", params(("id" = String, Path, description = "The task's id"), DeleteParams), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn task_delete(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Params(DeleteParams { delete_files }): Params<DeleteParams>,
) -> Ack {
    let params = DeleteTaskParams { task_id, delete_files };
    answer::done(&app, Method::TaskDelete, &params).await
}

/// Pause a download.
///
/// The received bytes are kept, and used when it continues.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/pause", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn task_pause(State(app): State<App>, Path(task_id): Path<String>) -> Ack {
    answer::done(&app, Method::TaskPause, &TaskIdParams { task_id }).await
}

/// Continue a paused or failed download.
///
/// Continues from the bytes on the disk, if the server still has the same file.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/continue", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn task_continue(State(app): State<App>, Path(task_id): Path<String>) -> Ack {
    answer::done(&app, Method::TaskResume, &TaskIdParams { task_id }).await
}

/// Give a download's file another name.
///
/// Before it began, while it is paused, and when it is finished: the files on the disk are renamed, too. `code` tells why
/// not: `task-active` while it downloads (pause it first), `target-exists` if the name is taken, `invalid-name`.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/rename", params(("id" = String, Path, description = "The task's id")), request_body = RenameBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn task_rename(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(RenameBody { file_name }): Body<RenameBody>,
) -> Ack {
    let params = RenameTaskParams { task_id, file_name };
    answer::done(&app, Method::TaskRename, &params).await
}

/// Give a download another URL.
///
/// For links that have expired: received bytes are kept if the new URL leads to the same file. The login, cookies,
/// headers and form that were given for the old URL are removed if the new one has another origin (scheme, host and
/// port); the message in the response then says so.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/url", params(("id" = String, Path, description = "The task's id")), request_body = UrlBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn task_change_url(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(UrlBody { url }): Body<UrlBody>,
) -> Ack {
    let changed: ChangedTask = app
        .daemon
        .call(Method::TaskChangeUrl, &ChangeUrlParams { task_id, url })
        .await?;
    let mut answer = answer::ok();
    if let Some(notice) = changed.notice {
        answer.0.message = notice;
    }
    Ok(answer)
}

/// Limit the rate of a download.
///
/// Takes effect at once, also while it runs; the limits of its queue and of the service stay above it.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/limit", params(("id" = String, Path, description = "The task's id")), request_body = LimitBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn task_set_limit(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(LimitBody { speed_limit_bytes }): Body<LimitBody>,
) -> Ack {
    let params = SpeedLimitParams {
        task_id,
        speed_limit_bytes,
    };
    answer::done(&app, Method::TaskSetSpeedLimit, &params).await
}

/// Set the tags of a download.
///
/// Words by which downloads are found; they replace those that it has. Also for one that is complete.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/tags", params(("id" = String, Path, description = "The task's id")), request_body = TagsBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn task_set_tags(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(TagsBody { tags }): Body<TagsBody>,
) -> Ack {
    answer::done(&app, Method::TaskSetTags, &TaskTagsParams { task_id, tags }).await
}

/// Move a download to a queue.
///
/// There it has the place of its age. If it runs, it waits for its turn and goes on from the bytes on the disk.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/queue", params(("id" = String, Path, description = "The task's id")), request_body = QueueBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn task_move(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(QueueBody { queue_id }): Body<QueueBody>,
) -> Ack {
    let params = MoveTaskParams { task_id, queue_id };
    answer::done(&app, Method::QueueMoveTask, &params).await
}

/// Look now whether the files of finished downloads are still there.
///
/// The service looks by itself every few minutes; `fileMissing` of a download says what was found.
#[utoipa::path(put, path = "/api/v1/tasks/rescan", responses(
    (status = 200, body = ResultMessage), Gated, Called))]
pub(crate) async fn task_rescan(State(app): State<App>) -> Ack {
    answer::done(&app, Method::TaskRescan, &serde_json::Map::new()).await
}

/// Download a URL as it is, without its plugin.
///
/// For a URL whose plugin fails: the response to the URL itself becomes the file.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/ignore-plugin-retry", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn task_ignore_plugin_retry(State(app): State<App>, Path(task_id): Path<String>) -> Ack {
    let params = TaskIdParams { task_id };
    answer::done(&app, Method::PluginIgnoreRetry, &params).await
}

/// Which tasks.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// A status by number or name; `all` is no filter.
    status: Option<String>,
    /// Tasks of this queue.
    queue_id: Option<String>,
    /// Tasks of this group.
    group_id: Option<String>,
    /// Tasks with this tag.
    tag: Option<String>,
}

impl ListParams {
    fn filter(&self) -> Result<Filter, Problem> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let status = match text(&self.status).as_deref() {
            None | Some("all") => None,
            Some(name) => {
                let is = |status: &TaskStatus| status.name() == name || (*status as u8).to_string() == name;
                let found = TaskStatus::ALL.into_iter().find(is);
                Some(found.ok_or_else(|| Problem::invalid("status must be 0 to 5, a name of one, or all"))?)
            }
        };
        Ok(Filter {
            status,
            queue: text(&self.queue_id),
            group: text(&self.group_id),
            tag: text(&self.tag),
        })
    }
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteParams {
    /// Delete the downloaded files, too.
    #[serde(default)]
    pub(crate) delete_files: bool,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenameBody {
    file_name: String,
}

#[derive(Deserialize, ToSchema)]
pub(crate) struct UrlBody {
    #[schema(min_length = 1, example = "https://example.com/file.zip")]
    url: String,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct TagsBody {
    /// At most 32, of at most 64 bytes each.
    tags: Vec<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LimitBody {
    /// Bytes per second; 0 is no limit.
    speed_limit_bytes: u64,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QueueBody {
    /// The queue; empty: the default queue.
    queue_id: String,
}
