//! All routes, each with its handler and its part of the `OpenAPI` description.

mod description;

use std::sync::{Arc, LazyLock};

use axum::{
    Router,
    body::Bytes,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse as _, Response},
};
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouter},
    routes,
};

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

type Route = UtoipaMethodRouter<App>;

fn of_service() -> [Route; 9] {
    [
        routes!(page::page_view),
        routes!(status::ping),
        routes!(openapi_view),
        routes!(docs::docs_view),
        routes!(docs::docs_asset),
        routes!(status::info_view),
        routes!(setup::setup_status),
        routes!(setup::setup_create),
        routes!(queue::queue_list),
    ]
}

fn of_tasks() -> [Route; 16] {
    [
        routes!(task::task_list, task::task_create),
        routes!(task::task_pause_all),
        routes!(task::task_continue_all),
        routes!(task::task_rescan),
        routes!(task::task_view, task::task_delete),
        routes!(task::task_pause),
        routes!(task::task_continue),
        routes!(task::task_rename),
        routes!(task::task_change_url),
        routes!(task::task_set_limit),
        routes!(task::task_move),
        routes!(task::task_ignore_plugin_retry),
        routes!(group::group_list, group::group_create),
        routes!(group::group_delete),
        routes!(group::group_pause),
        routes!(group::group_continue),
    ]
}

fn of_plugins() -> [Route; 16] {
    [
        routes!(group::preview_create),
        routes!(plugin::plugin_list),
        routes!(plugin::plugin_install),
        routes!(plugin::plugin_install_dev),
        routes!(plugin::plugin_delete),
        routes!(plugin::plugin_set_enabled),
        routes!(plugin::plugin_update_settings),
        routes!(plugin::plugin_roll_back),
        routes!(plugin::plugin_choose_host),
        routes!(plugin::plugin_journal),
        routes!(plugin::plugin_set_pinned),
        routes!(market::market_list),
        routes!(market::market_install),
        routes!(market::market_refresh),
        routes!(market::source_list, market::source_create),
        routes!(market::source_delete),
    ]
}

fn of_others() -> [Route; 12] {
    [
        routes!(site::site_list, site::site_save),
        routes!(site::site_view, site::site_delete),
        routes!(web::blob_create),
        routes!(web::ticket_create),
        routes!(web::file_view),
        routes!(web::export_view),
        routes!(rpc::connect, aria2::xml_call),
        routes!(aria2::json_connect, aria2::json_call),
        routes!(mcp::message),
        routes!(metrics::metrics_view),
        routes!(takeover::download_create),
        routes!(takeover::download_batch),
    ]
}

/// In the order of the description.
fn described() -> OpenApiRouter<App> {
    let mut router = OpenApiRouter::with_openapi(description::frame());
    // In a loop, because every inlined registration costs two kilobytes of code.
    let routes: [fn() -> Vec<Route>; 4] = [
        || of_service().into(),
        || of_tasks().into(),
        || of_plugins().into(),
        || of_others().into(),
    ];
    for route in routes.into_iter().flat_map(|some| some()) {
        router = router.routes(route);
    }
    router
}

/// The `OpenAPI` description, as served at `GET /api/v1/openapi.json`.
pub fn openapi() -> String {
    let (_, mut api) = described().split_for_parts();
    description::complete(&mut api);
    let mut text = api.to_pretty_json().expect("a description has text keys only");
    text.push('\n');
    text
}

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
    /// Serialized once: the route needs no key, and the text has a quarter of a mebibyte.
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}
