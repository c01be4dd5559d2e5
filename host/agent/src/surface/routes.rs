//! All routes, each with its handler and its part of the `OpenAPI` description.

mod description;

use std::sync::Arc;

use axum::{
    Router,
    http::StatusCode,
    middleware,
    routing::{MethodFilter, MethodRouter, on},
};
use utoipa::Path as _;
use utoipa_axum::{
    PathItemExt as _,
    router::{OpenApiRouter, UtoipaMethodRouter},
};

use super::{
    aria2, mcp,
    rest::{docs, group, market, metrics, page, plugin, queue, rss, setup, site, status, task, web},
    rpc,
    state::App,
    takeover,
};
use crate::{
    gate,
    problem::{Problem, UNKNOWN_ENDPOINT},
};

/// Lists the handlers once, for the router and for the description. The service itself never makes the description, which
/// is half a megabyte of code: it sends the committed one, and a test compares the two.
macro_rules! handlers {
    ($($module:ident::$handler:ident,)+) => {
        pastey::paste! {
            /// Each handler with its path. In a table, because every inlined registration costs two kilobytes of code.
            const HANDLERS: &[fn() -> (String, MethodRouter<App>)] = &[$(
                || (
                    $module::[<__path_ $handler>]::path(),
                    on(methods::<$module::[<__path_ $handler>]>(), $module::$handler),
                ),
            )+];
        }

        const DESCRIBED: &[fn() -> UtoipaMethodRouter<App>] = &[$(|| utoipa_axum::routes!($module::$handler),)+];
    };
}

handlers! {
    page::page_view,
    status::ping,
    docs::openapi_view,
    docs::docs_view,
    docs::docs_asset,
    status::info_view,
    setup::setup_status,
    setup::setup_create,
    queue::queue_list,
    task::task_list,
    task::task_create,
    task::task_pause_all,
    task::task_continue_all,
    task::task_rescan,
    task::task_view,
    task::task_delete,
    task::task_pause,
    task::task_continue,
    task::task_rename,
    task::task_change_url,
    task::task_set_limit,
    task::task_move,
    task::task_ignore_plugin_retry,
    group::group_list,
    group::group_create,
    group::group_delete,
    group::group_pause,
    group::group_continue,
    group::preview_create,
    plugin::plugin_list,
    plugin::plugin_install,
    plugin::plugin_install_dev,
    plugin::plugin_delete,
    plugin::plugin_set_enabled,
    plugin::plugin_update_settings,
    plugin::plugin_roll_back,
    plugin::plugin_choose_host,
    plugin::plugin_journal,
    plugin::plugin_set_pinned,
    market::market_list,
    market::market_install,
    market::market_refresh,
    market::source_list,
    market::source_create,
    market::source_delete,
    rss::rss_list,
    rss::rss_create,
    rss::rss_validate,
    rss::rss_import,
    rss::rss_export,
    rss::rss_update,
    rss::rss_delete,
    rss::rss_refresh,
    rss::rss_items,
    rss::rss_item_action,
    site::site_list,
    site::site_save,
    site::site_view,
    site::site_delete,
    web::blob_create,
    web::ticket_create,
    web::file_view,
    web::export_view,
    rpc::connect,
    aria2::xml_call,
    aria2::json_connect,
    aria2::json_call,
    mcp::message,
    metrics::metrics_view,
    takeover::download_create,
    takeover::download_batch,
}

fn methods<P: utoipa::Path>() -> MethodFilter {
    let methods = P::methods().into_iter().map(|method| method.to_method_filter());
    methods.reduce(MethodFilter::or).expect("every operation has a method")
}

/// Makes the `OpenAPI` description from the handlers. The committed `openapi.json`, which the service sends, must equal it.
pub fn openapi() -> String {
    let router = OpenApiRouter::with_openapi(description::frame());
    let router = DESCRIBED
        .iter()
        .fold(router, |router, described| router.routes(described()));
    let (_, mut api) = router.split_for_parts();
    description::complete(&mut api);
    let mut text = api.to_pretty_json().expect("a description has text keys only");
    text.push('\n');
    text
}

pub(crate) fn router(app: App) -> Router {
    let gate = Arc::clone(&app.gate);
    let routes = HANDLERS.iter().map(|handler| handler());
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(&path, handler))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT))
        .layer(middleware::from_fn_with_state(gate, gate::pass))
        .with_state(app)
}
