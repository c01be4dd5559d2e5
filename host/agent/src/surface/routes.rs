//! The routes: each with its handler, all of them in the `OpenAPI` description that is made from them.

mod description;

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    aria2, mcp,
    rest::{docs, group, market, metrics, page, plugin, queue, setup, site, status, task, web},
    rpc,
    state::App,
    takeover,
};
use crate::{
    gate,
    problem::{Problem, ResultMessage, UNKNOWN_ENDPOINT},
};

fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(description::frame())
        .routes(routes!(page::page_view))
        .routes(routes!(status::ping))
        .routes(routes!(openapi_view))
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
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT))
        .layer(middleware::from_fn_with_state(gate, gate::pass))
        .with_state(app)
}

/// This description, as `OpenAPI` 3.1.
///
/// Needs no key. It is made from the routes of the running version, so it is never out of date.
#[utoipa::path(get, path = "/api/v1/openapi.json", responses(
    (status = 200, description = "OpenAPI 3.1", content_type = "application/json"),
    (status = 403, body = ResultMessage),
    (status = 404, body = ResultMessage, description = "The management API is off")))]
async fn openapi_view() -> Response {
    /// Made once: everybody may ask for it, and it has a quarter of a mebibyte.
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
