//! The routes: each with its handler, all of them in the `OpenAPI` description that is made from them.

mod description;
mod docs;
pub(crate) mod extract;
mod group;
mod market;
mod page;
mod plugin;
mod queue;
mod setup;
mod site;
mod status;
mod task;
mod web;

use std::{convert::Infallible, sync::Arc};

use axum::{
    Json, Router,
    body::Body,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    aria2::{self, Dialect},
    budget::Budget,
    daemon::Daemon,
    gate::{self, Gate},
    key::SetupCode,
    mcp, metrics,
    problem::{Problem, ResultMessage},
    projection::Listing,
    rpc,
    settings::Listening,
    takeover,
};

/// The largest body of any route.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;

/// What handlers work with.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) gate: Arc<Gate>,
    pub(crate) daemon: Daemon,
    pub(crate) pending: Arc<takeover::Pending>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) aria2: Arc<Dialect>,
    pub(crate) setup_code: Option<SetupCode>,
    pub(crate) listening: Listening,
    pub(crate) version: Arc<str>,
    pub(crate) language: Option<Arc<str>>,
    /// Cancelled when the agent ends.
    pub(crate) stop: CancellationToken,
    /// Cancelled to cut off who does not go.
    pub(crate) cut: CancellationToken,
    /// Owns the connections of `/rpc`.
    pub(crate) tracker: TaskTracker,
}

fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(description::frame())
        .routes(routes!(page::page_view))
        .routes(routes!(status::ping))
        .routes(routes!(status::openapi_view))
        .routes(routes!(docs::docs_view))
        .routes(routes!(docs::docs_asset))
        .routes(routes!(status::info_view))
        .routes(routes!(setup::setup_status))
        .routes(routes!(setup::setup_create))
        .routes(routes!(queue::queue_list))
        .routes(routes!(task::task_list, task::task_create))
        .routes(routes!(task::task_pause_all))
        .routes(routes!(task::task_continue_all))
        .routes(routes!(task::task_view, task::task_delete))
        .routes(routes!(task::task_pause))
        .routes(routes!(task::task_continue))
        .routes(routes!(task::task_rename))
        .routes(routes!(task::task_change_url))
        .routes(routes!(task::task_ignore_plugin_retry))
        .routes(routes!(group::group_list, group::group_create))
        .routes(routes!(group::group_delete))
        .routes(routes!(group::group_pause))
        .routes(routes!(group::group_continue))
        .routes(routes!(group::preview_create))
        .routes(routes!(plugin::plugin_list))
        .routes(routes!(plugin::plugin_install))
        .routes(routes!(plugin::plugin_install_dev))
        .routes(routes!(plugin::plugin_delete))
        .routes(routes!(plugin::plugin_set_enabled))
        .routes(routes!(plugin::plugin_update_settings))
        .routes(routes!(plugin::plugin_roll_back))
        .routes(routes!(plugin::plugin_choose_host))
        .routes(routes!(plugin::plugin_journal))
        .routes(routes!(plugin::plugin_set_pinned))
        .routes(routes!(market::market_list))
        .routes(routes!(market::market_install))
        .routes(routes!(market::market_refresh))
        .routes(routes!(market::source_list, market::source_create))
        .routes(routes!(market::source_delete))
        .routes(routes!(site::site_list, site::site_save))
        .routes(routes!(site::site_view, site::site_delete))
        .routes(routes!(web::blob_create))
        .routes(routes!(web::ticket_create))
        .routes(routes!(web::file_view))
        .routes(routes!(web::export_view))
        .routes(routes!(rpc::connect, aria2::xml_call))
        .routes(routes!(aria2::json_connect, aria2::json_call))
        .routes(routes!(mcp::message))
        .routes(routes!(metrics::metrics_view))
        .routes(routes!(takeover::download_create))
        .routes(routes!(takeover::download_batch))
}

/// The interface's description, as `GET /api/v1/openapi.json` gives it.
pub fn openapi() -> String {
    let (_, mut api) = described().split_for_parts();
    description::complete(&mut api);
    let mut text = api.to_pretty_json().expect("a description has text keys only");
    text.push('\n');
    text
}

/// Every route, behind the gate.
pub(crate) fn router(app: App) -> Router {
    let (router, _) = described().split_for_parts();
    let gate = Arc::clone(&app.gate);
    router
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, gate::UNKNOWN_ENDPOINT))
        .layer(middleware::from_fn_with_state(gate, gate::pass))
        .with_state(app)
}

/// It is done.
pub(crate) fn ok() -> Json<ResultMessage> {
    Json(ResultMessage {
        success: true,
        message: "ok".to_owned(),
    })
}

/// Text that is JSON already.
pub(crate) fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A list, written while it is sent; a short one at once.
pub(crate) fn list(mut pieces: Listing) -> Response {
    let first = pieces.next().unwrap_or_default();
    let body = match pieces.next() {
        None => Body::from(first),
        Some(second) => {
            let all = [first, second].into_iter().chain(pieces).map(Ok::<_, Infallible>);
            Body::from_stream(stream::iter(all))
        }
    };
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
