//! Queues.

use axum::{extract::State, response::Response};
use protocol::QueueDto;

use crate::{
    answer,
    app::App,
    problem::{Gated, Problem, ResultMessage},
    service::Part,
};

/// List queues.
///
/// All of them with their settings: how many of their downloads run at once, how fast, when, and where files are saved.
/// A new task goes to the queue that `queueId` names, or to the default one.
#[utoipa::path(get, path = "/api/v1/queues", responses(
    (status = 200, body = Vec<QueueDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn queue_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Part::Queues).await
}
