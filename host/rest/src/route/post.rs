//! What follows finished downloads.

use axum::extract::{Path, State};
use protocol::{Method, PostCleared, PostJobParams, PostJobs, PostPasswords, PostStartRequest, PostStarted};

use crate::{
    answer::{self, Ack, Forwarded},
    app::App,
    extract::Body,
    problem::{Called, Gated, Named, ResultMessage, Sent},
};

/// List what follows finished downloads.
///
/// The jobs, newest first: unpacking, renaming, checksums and so on. The event `postJobsChanged` on `/rpc` says when to
/// read them again. Passwords are counted and never shown.
#[utoipa::path(get, path = "/api/v1/post", responses(
    (status = 200, body = PostJobs), Gated, Called))]
pub(crate) async fn post_list(State(app): State<App>) -> Forwarded<PostJobs> {
    answer::call(&app, Method::PostList, &serde_json::Map::new()).await
}

/// Take steps with the files of a finished task or group.
///
/// Without `steps` those of the task's queue, or of the setting `post_chain`. Answers when the job is saved.
#[utoipa::path(post, path = "/api/v1/post", request_body = PostStartRequest, responses(
    (status = 200, body = PostStarted), Gated, Sent, Named, Called))]
pub(crate) async fn post_start(
    State(app): State<App>,
    Body(request): Body<PostStartRequest>,
) -> Forwarded<PostStarted> {
    answer::call(&app, Method::PostStart, &request).await
}

/// Forget all jobs that have ended.
///
/// Files are left as they are. Jobs that wait or run stay.
#[utoipa::path(delete, path = "/api/v1/post", responses(
    (status = 200, body = PostCleared), Gated, Called))]
pub(crate) async fn post_clear(State(app): State<App>) -> Forwarded<PostCleared> {
    answer::call(&app, Method::PostClear, &serde_json::Map::new()).await
}

/// Replace the passwords that are tried on archives.
///
/// They are sealed in the database, and no answer shows them again.
#[utoipa::path(put, path = "/api/v1/post/passwords", request_body = PostPasswords, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Called))]
pub(crate) async fn post_set_passwords(State(app): State<App>, Body(passwords): Body<PostPasswords>) -> Ack {
    answer::done(&app, Method::PostSetPasswords, &passwords).await
}

/// End a job that waits or runs.
///
/// What was unpacked of an archive so far is removed, and the archive is kept.
#[utoipa::path(post, path = "/api/v1/post/{id}/cancel", params(("id" = u64, Path, description = "The job's number")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn post_cancel(State(app): State<App>, Path(id): Path<String>) -> Ack {
    answer::done(&app, Method::PostCancel, &job(&id)).await
}

/// Take the failed or cancelled step of a job again.
///
/// Steps that were done are not repeated. Passwords that were added since are tried, too.
#[utoipa::path(post, path = "/api/v1/post/{id}/retry", params(("id" = u64, Path, description = "The job's number")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn post_retry(State(app): State<App>, Path(id): Path<String>) -> Ack {
    answer::done(&app, Method::PostRetry, &job(&id)).await
}

/// Text that is no number names no job.
fn job(id: &str) -> PostJobParams {
    let job_id = id.parse().unwrap_or(u64::MAX);
    PostJobParams { job_id }
}
