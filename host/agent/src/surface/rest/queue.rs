//! Queues.

use axum::{extract::State, response::Response};
use protocol::QueueDto;

use crate::{
    problem::{Gated, Problem, ResultMessage},
    projection::tasks::Projection,
    surface::{http::answer, state::App},
};

/// All queues with their settings.
///
/// A queue says how many of its downloads run at once, how fast, when, and where their files go. A new task goes to the
/// one that it names in `queueId`, or to the default one.
#[utoipa::path(get, path = "/api/v1/queues", responses(
    (status = 200, body = Vec<QueueDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn queue_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Projection::queues)
}
