//! Queues.

use axum::{extract::State, response::Response};
use protocol::QueueDto;

use super::App;
use crate::problem::{Problem, ResultMessage};

/// All queues.
#[utoipa::path(get, path = "/api/v1/queues", responses(
    (status = 200, body = Vec<QueueDto>), (status = 401, body = ResultMessage), (status = 403, body = ResultMessage),
    (status = 429, body = ResultMessage), (status = 503, body = ResultMessage)))]
pub(super) async fn queue_list(State(app): State<App>) -> Result<Response, Problem> {
    app.need_daemon()?;
    Ok(super::json(app.daemon.hub.look(|daemon| daemon.queues().to_owned())))
}
