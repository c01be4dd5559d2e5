//! Torrents: of a task, and what all have in common.

use axum::{
    extract::{Path, State},
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
};
use data_encoding::BASE64;
use protocol::{
    CreateTaskRequest, Method, RenameTorrentFileParams, SeedLimitParams, TaskIdParams, TorrentChange,
    TorrentChangeParams, TorrentDto, TorrentExport, TorrentFiles, TorrentFilesParams, TorrentPeers, TorrentPieces,
    TorrentPiecesParams, TorrentSessionDto, TorrentTrackers, TrackerListsRefreshed,
};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::{
    answer::{self, Ack, Forwarded},
    app::App,
    extract::{Body, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    route::web,
};

/// A torrent file in base64 that is longer is uploaded to the daemon: a frame of its connection has at most 1 MiB.
const MAX_INLINE: usize = 512 * 1024;

/// Replaces a long torrent file of a request by an upload of the same bytes.
pub(crate) async fn upload(app: &App, request: &mut CreateTaskRequest) -> Result<(), Problem> {
    let is_long = |text: &mut String| text.len() > MAX_INLINE;
    if request.torrent_blob_id.is_some() {
        return Ok(());
    }
    let Some(text) = request.torrent_b64.take_if(is_long) else {
        return Ok(());
    };
    let bytes = BASE64.decode(text.trim().as_bytes());
    let bytes = bytes.map_err(|_| Problem::invalid("torrentB64: the torrent file is not in base64"))?;
    request.torrent_blob_id = Some(web::keep(app, "torrents", bytes.into()).await?.blob_id);
    Ok(())
}

/// Show the torrent of a download.
///
/// Its info hash, name, size, pieces, comment, trackers and magnet link, how it is downloaded, and its swarm if it is running.
/// Of a magnet link, `hasMetadata` says whether peers have sent what is in it.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/torrent", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = TorrentDto), Gated, Named, Called))]
pub(crate) async fn torrent_view(State(app): State<App>, Path(task_id): Path<String>) -> Forwarded<TorrentDto> {
    answer::call(&app, Method::TorrentGet, &TaskIdParams { task_id }).await
}

/// Change how a torrent is downloaded.
///
/// Which files, additional trackers and web servers, the order of pieces, and limits; what is not named stays. A torrent that is
/// running goes on with it, and a complete one downloads further files that are chosen.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/torrent", params(("id" = String, Path, description = "The task's id")), request_body = TorrentChange, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn torrent_change(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(change): Body<TorrentChange>,
) -> Ack {
    let params = TorrentChangeParams { task_id, change };
    answer::done(&app, Method::TorrentChange, &params).await
}

/// Download the torrent file of a download.
///
/// Of a magnet link, once its metadata is known; 409 before.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/torrent/file", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, description = "The torrent file", content_type = "application/x-bittorrent"), Gated, Named, Called))]
pub(crate) async fn torrent_file(State(app): State<App>, Path(task_id): Path<String>) -> Result<Response, Problem> {
    let params = TaskIdParams { task_id };
    let export: TorrentExport = app.daemon.call(Method::TorrentExport, &params).await?;
    if export.torrent_b64.is_empty() {
        let message = "the metadata of the magnet link is not known yet; resume the task until it is";
        return Err(Problem::new(axum::http::StatusCode::CONFLICT, message));
    }
    let bytes = BASE64.decode(export.torrent_b64.as_bytes());
    let bytes =
        bytes.map_err(|_| Problem::new(axum::http::StatusCode::BAD_GATEWAY, "the daemon's answer is no base64"))?;
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/x-bittorrent"),
        ),
        (header::CONTENT_DISPOSITION, disposition(&export.file_name)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, bytes).into_response())
}

/// An attachment of this name (RFC 6266), which the torrent gave: everything but plain letters is escaped.
fn disposition(name: &str) -> HeaderValue {
    let escaped: String = name
        .bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    HeaderValue::try_from(format!("attachment; filename*=UTF-8''{escaped}"))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

/// List the files of a torrent.
///
/// In the order of the torrent, at most 10,000 at once: `nextOffset` is the `offset` of the next page.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/files", params(("id" = String, Path, description = "The task's id"), PlaceParams), responses(
    (status = 200, body = TorrentFiles), Gated, Named, Called))]
pub(crate) async fn torrent_files(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Params(PlaceParams { offset, limit }): Params<PlaceParams>,
) -> Forwarded<TorrentFiles> {
    let params = TorrentFilesParams { task_id, offset, limit };
    answer::call(&app, Method::TorrentFiles, &params).await
}

/// Give a file of a torrent another path.
///
/// In the directory of the torrent, with `/` between names. The directory itself is renamed like every download.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/files/{index}/rename", params(
    ("id" = String, Path, description = "The task's id"), ("index" = u32, Path, description = "The file's place in the torrent")),
    request_body = PathBody, responses((status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn torrent_rename_file(
    State(app): State<App>,
    Path((task_id, index)): Path<(String, String)>,
    Body(PathBody { path }): Body<PathBody>,
) -> Ack {
    // Text that is no number names no file.
    let index = index.parse().unwrap_or(u32::MAX);
    let params = RenameTorrentFileParams { task_id, index, path };
    answer::done(&app, Method::TorrentRenameFile, &params).await
}

/// List the connected peers of a torrent.
///
/// None if it is not running.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/peers", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = TorrentPeers), Gated, Named, Called))]
pub(crate) async fn torrent_peers(State(app): State<App>, Path(task_id): Path<String>) -> Forwarded<TorrentPeers> {
    answer::call(&app, Method::TorrentPeers, &TaskIdParams { task_id }).await
}

/// List the trackers of a torrent.
///
/// With what each answered last, and when it is asked next.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/trackers", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = TorrentTrackers), Gated, Named, Called))]
pub(crate) async fn torrent_trackers(
    State(app): State<App>,
    Path(task_id): Path<String>,
) -> Forwarded<TorrentTrackers> {
    answer::call(&app, Method::TorrentTrackers, &TaskIdParams { task_id }).await
}

/// Show the pieces of a torrent.
///
/// Which are there, and how many connected peers have each: at most 65,536 of the latter at once, from `offset` on.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/pieces", params(("id" = String, Path, description = "The task's id"), PlaceParams), responses(
    (status = 200, body = TorrentPieces), Gated, Named, Called))]
pub(crate) async fn torrent_pieces(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Params(PlaceParams { offset, limit }): Params<PlaceParams>,
) -> Forwarded<TorrentPieces> {
    let params = TorrentPiecesParams { task_id, offset, limit };
    answer::call(&app, Method::TorrentPieces, &params).await
}

/// Check everything that a torrent has on the disk.
///
/// What is wrong is downloaded again. A download that is not complete must be running; a complete one is checked whether it
/// is seeded or not.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/recheck", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn torrent_recheck(State(app): State<App>, Path(task_id): Path<String>) -> Ack {
    answer::done(&app, Method::TorrentRecheck, &TaskIdParams { task_id }).await
}

/// Ask the trackers of a torrent for peers now.
///
/// Each as soon as it allows. The download must be running.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/reannounce", params(("id" = String, Path, description = "The task's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn torrent_reannounce(State(app): State<App>, Path(task_id): Path<String>) -> Ack {
    answer::done(&app, Method::TorrentReannounce, &TaskIdParams { task_id }).await
}

/// Limit the seeding of a torrent.
///
/// Takes effect at once. Of each limit that ends it, -2 is the one in the settings, and -1 none.
#[utoipa::path(put, path = "/api/v1/tasks/{id}/seeding", params(("id" = String, Path, description = "The task's id")), request_body = SeedingBody, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn torrent_seeding(
    State(app): State<App>,
    Path(task_id): Path<String>,
    Body(body): Body<SeedingBody>,
) -> Ack {
    let params = SeedLimitParams {
        task_id,
        ratio_limit_milli: body.ratio_limit_milli,
        post_ratio_limit_milli: body.post_ratio_limit_milli,
        seed_time_limit_minutes: body.seed_time_limit_minutes,
        seed_time_limit_secs: None,
        inactive_time_limit_minutes: body.inactive_time_limit_minutes,
        upload_limit_bps: body.upload_limit_bps,
    };
    answer::done(&app, Method::TaskSetSeedLimits, &params).await
}

/// Show what all torrents have in common.
///
/// The port that accepts peers, our nodes of the distributed hash table, and the port that the router opened. All of it begins
/// with the first torrent.
#[utoipa::path(get, path = "/api/v1/torrents/session", responses(
    (status = 200, body = TorrentSessionDto), Gated, Called))]
pub(crate) async fn session_view(State(app): State<App>) -> Forwarded<TorrentSessionDto> {
    answer::call(&app, Method::TorrentSession, &serde_json::Map::new()).await
}

/// Read the lists of trackers now.
///
/// Those of the setting `bt_tracker_sub_urls`, which are also read once a day. `success` is false if one of them was not read.
#[utoipa::path(post, path = "/api/v1/torrents/tracker-lists/refresh", responses(
    (status = 200, body = TrackerListsRefreshed), Gated, Called))]
pub(crate) async fn tracker_lists_refresh(State(app): State<App>) -> Forwarded<TrackerListsRefreshed> {
    answer::call(&app, Method::TorrentRefreshTrackerLists, &serde_json::Map::new()).await
}

/// Which of many entries.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlaceParams {
    /// The place of the first one.
    #[serde(default)]
    offset: usize,
    /// At most so many; the most that is allowed by default.
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct PathBody {
    /// The new path in the torrent's directory, with `/` between names.
    path: String,
}

/// Limits of a task's seeding. Of those that end it, -2 is the one in the settings and -1 none.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SeedingBody {
    /// Uploaded bytes by the torrent's size, in thousandths.
    ratio_limit_milli: i64,
    /// The same of what is uploaded after completion.
    post_ratio_limit_milli: i64,
    /// Minutes of seeding.
    seed_time_limit_minutes: i64,
    /// Minutes without an upload.
    inactive_time_limit_minutes: i64,
    /// Upload limit in bytes per second; 0: none.
    upload_limit_bps: u64,
}

impl Default for SeedingBody {
    /// As in the settings.
    fn default() -> Self {
        Self {
            ratio_limit_milli: -2,
            post_ratio_limit_milli: -2,
            seed_time_limit_minutes: -2,
            inactive_time_limit_minutes: -2,
            upload_limit_bps: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_add_to_a_header() {
        let header = disposition("a\"b\r\nü.torrent");
        assert_eq!(header, "attachment; filename*=UTF-8''a%22b%0D%0A%C3%BC.torrent");
    }
}
