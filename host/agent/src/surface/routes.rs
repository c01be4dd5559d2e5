//! All routes: those of the management API, which are in the crate `rest`, and those of the other interfaces.

use std::sync::Arc;

use axum::{Router, http::StatusCode, middleware};
use rest::{About, Problem, UNKNOWN_ENDPOINT};
use utoipa_axum::router::OpenApiRouter;

use super::{
    aria2,
    link::{device, owner},
    mcp, metrics, rpc, session,
    state::App,
    takeover,
};
use crate::{access::key::MIN_KEY_CHARS, gate, settings::config::Edition};

rest::handlers! {
    App:
    rpc::connect,
    aria2::xml_call,
    aria2::json_connect,
    aria2::json_call,
    mcp::message,
    metrics::metrics_view,
    session::web_session_view,
    session::web_session_create,
    takeover::download_create,
    takeover::download_batch,
    owner::link_code_create,
    owner::link_code_delete,
    owner::link_device_list,
    owner::link_device_update,
    owner::link_device_delete,
    owner::link_device_send,
    owner::link_discovered,
    owner::link_discovery,
    owner::link_probe,
    owner::link_outbox,
    owner::link_outbox_delete,
    owner::link_pair_begin,
    owner::link_pair_finish,
    owner::link_pair_approve,
    owner::link_pair_requests,
    device::link_pair_hello,
    device::link_pair_reveal,
    device::link_pair_confirm,
    device::link_task_receive,
    device::link_info_receive,
    device::link_unpair_receive,
}

/// Makes the `OpenAPI` description of all interfaces from their handlers.
pub fn openapi() -> String {
    let router = DESCRIBED
        .iter()
        .fold(OpenApiRouter::default(), |router, described| router.routes(described()));
    rest::openapi(router.into_openapi())
}

pub(crate) fn router(app: App) -> Router {
    let gate = Arc::clone(&app.gate);
    let api = rest::App {
        budget: app.budget.clone(),
        about: Arc::new(About {
            version: Arc::clone(&app.version),
            language: app.language.clone(),
            port: app.listening.address.port(),
            min_key_chars: MIN_KEY_CHARS,
            is_server: app.listening.edition == Edition::Headless,
        }),
        daemon: Arc::new(app.clone()),
    };
    let routes = HANDLERS.iter().map(|handler| handler());
    routes
        .fold(Router::new(), |router, (path, handler)| router.route(&path, handler))
        .with_state(app)
        .merge(rest::router(api))
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, UNKNOWN_ENDPOINT))
        .layer(middleware::from_fn_with_state(gate, gate::pass))
}
