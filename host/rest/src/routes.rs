//! The routes, each with its handler and its part of the `OpenAPI` description.

mod description;

use axum::{Router, routing::MethodFilter};
use utoipa::openapi::OpenApi;
use utoipa_axum::{PathItemExt as _, router::OpenApiRouter};

use crate::{
    app::App,
    route::{cookies, docs, group, market, page, plugin, post, queue, rss, setup, site, status, task, torrent, web},
};

/// Lists handlers of a state once, for the router (`HANDLERS`) and for the description (`DESCRIBED`). The service itself
/// never makes the description, which is half a megabyte of code: it sends the committed one, and a test compares the two.
#[macro_export]
macro_rules! handlers {
    ($state:ty: $($module:ident::$handler:ident,)+) => {
        $crate::paste! {
            /// Each handler with its path. In a table, because every inlined registration costs two kilobytes of code.
            const HANDLERS: &[fn() -> (String, axum::routing::MethodRouter<$state>)] = &[$(
                || (
                    $crate::path_of::<$module::[<__path_ $handler>]>(),
                    axum::routing::on(
                        $crate::methods_of::<$module::[<__path_ $handler>]>(),
                        $module::$handler,
                    ),
                ),
            )+];
        }

        const DESCRIBED: &[fn() -> utoipa_axum::router::UtoipaMethodRouter<$state>] =
            &[$(|| utoipa_axum::routes!($module::$handler),)+];
    };
}

handlers! {
    App:
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
    task::task_set_tags,
    task::task_move,
    task::task_ignore_plugin_retry,
    torrent::torrent_view,
    torrent::torrent_change,
    torrent::torrent_file,
    torrent::torrent_files,
    torrent::torrent_rename_file,
    torrent::torrent_peers,
    torrent::torrent_trackers,
    torrent::torrent_pieces,
    torrent::torrent_recheck,
    torrent::torrent_reannounce,
    torrent::torrent_seeding,
    torrent::session_view,
    torrent::tracker_lists_refresh,
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
    plugin::plugin_auth,
    market::market_list,
    market::market_install,
    market::market_refresh,
    market::source_list,
    market::source_create,
    market::source_delete,
    post::post_list,
    post::post_start,
    post::post_clear,
    post::post_set_passwords,
    post::post_cancel,
    post::post_retry,
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
    cookies::cookies_list,
    cookies::cookies_import,
    cookies::cookies_view,
    cookies::cookies_delete,
    web::blob_create,
    web::ticket_create,
    web::file_view,
    web::export_view,
}

/// The path of a described handler.
pub fn path_of<P: utoipa::Path>() -> String {
    P::path()
}

/// The methods of a described handler.
pub fn methods_of<P: utoipa::Path>() -> MethodFilter {
    let methods = P::methods().into_iter().map(|method| method.to_method_filter());
    methods.reduce(MethodFilter::or).expect("every operation has a method")
}

/// Makes the `OpenAPI` description from the handlers here and from the described routes of the program's other interfaces.
/// The committed `openapi.json`, which the service sends, must equal it.
pub fn openapi(others: OpenApi) -> String {
    let router = OpenApiRouter::with_openapi(description::frame());
    let router = DESCRIBED
        .iter()
        .fold(router, |router, described| router.routes(described()));
    let (_, mut api) = router.split_for_parts();
    api.merge(others);
    description::complete(&mut api);
    let mut text = api.to_pretty_json().expect("a description has text keys only");
    text.push('\n');
    text
}

/// The routes of the API. A program adds its other routes, its authorization and its answer to unknown paths.
pub fn router(app: App) -> Router {
    let routes = HANDLERS.iter().map(|handler| handler());
    routes
        .chain(page::routes())
        .fold(Router::new(), |router, (path, handler)| router.route(&path, handler))
        .with_state(app)
}
