//! The plugin market: installable plugins, and the sources that offer them.

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{
    InstalledPlugin, MarketEntryDto, MarketInstallRequest, MarketRefreshRequest, MarketSourceAddRequest,
    MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, Method,
};
use serde_json::{Map, value::RawValue};

use crate::{
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    surface::{
        http::{
            answer::{self, Ack, Answer},
            extract::Body,
        },
        state::App,
    },
};

/// List what can be installed.
///
/// From all sources, those that came with the service first; with what is installed, what is revoked, and whether a source
/// is stale. Sources that were not asked for some minutes are asked first.
#[utoipa::path(get, path = "/api/v1/market", responses(
    (status = 200, body = Vec<MarketEntryDto>), Gated, Called))]
pub(crate) async fn market_list(State(app): State<App>) -> Result<Response, Problem> {
    // The list is long, so the daemon's JSON is passed on unparsed.
    let list: Box<RawValue> = app.daemon.call(Method::PluginMarketList, &Map::new()).await?;
    Ok(answer::json(String::from(Box::<str>::from(list))))
}

/// Install or update a plugin from the market.
///
/// Installs the newest version that this host can run, after its signature and its fixtures were checked; with
/// `version`, only if it is that one. A version that requests permissions beyond `agreed` runs only after you consent:
/// `pendingConsent` is the digest of the permissions, the list of plugins shows them, and `PUT …/enabled` takes the
/// digest as `consent`. Until then, the previous version of an updated plugin keeps running. A failed download, check
/// or installation is answered with 400 and the reason.
#[utoipa::path(post, path = "/api/v1/market/install", request_body = MarketInstallRequest, responses(
    (status = 200, body = InstalledPlugin), Gated, Sent, Called))]
pub(crate) async fn market_install(
    State(app): State<App>,
    Body(request): Body<MarketInstallRequest>,
) -> Answer<InstalledPlugin> {
    let installed = app.daemon.call(Method::PluginMarketInstall, &request).await;
    installed.map(Json).map_err(Problem::refused)
}

/// Refresh sources of plugins now.
///
/// One of them, or all. What fails verification changes nothing; `error` of the source has the reason.
#[utoipa::path(post, path = "/api/v1/market/refresh", request_body = MarketRefreshRequest, responses(
    (status = 200, body = Vec<MarketSourceDto>), Gated, Sent, Called))]
pub(crate) async fn market_refresh(
    State(app): State<App>,
    Body(request): Body<MarketRefreshRequest>,
) -> Answer<Vec<MarketSourceDto>> {
    answer::call(&app, Method::PluginMarketRefresh, &request).await
}

/// List the sources of plugins.
///
/// With the fingerprints of their keys, the expiry of their indexes, and why the last refresh failed. The plugins that
/// are part of the service are the source `bundled`.
#[utoipa::path(get, path = "/api/v1/market/sources", responses(
    (status = 200, body = Vec<MarketSourceDto>), Gated, Called))]
pub(crate) async fn source_list(State(app): State<App>) -> Answer<Vec<MarketSourceDto>> {
    answer::call(&app, Method::PluginMarketSourceList, &Map::new()).await
}

/// Add a source of plugins.
///
/// In two steps. Without `fingerprint` nothing is added: the response has the fingerprint of the key in the link, which
/// users compare with the one that the maintainer publishes elsewhere. With `fingerprint`, the source is fetched,
/// verified and added.
#[utoipa::path(post, path = "/api/v1/market/sources", request_body = MarketSourceAddRequest, responses(
    (status = 200, body = MarketSourceAddResponse), Gated, Sent, Called))]
pub(crate) async fn source_create(
    State(app): State<App>,
    Body(request): Body<MarketSourceAddRequest>,
) -> Answer<MarketSourceAddResponse> {
    let added = app.daemon.call(Method::PluginMarketSourceAdd, &request).await;
    added.map(Json).map_err(Problem::refused)
}

/// Remove a source of plugins.
///
/// Refused while plugins from it are installed, because revocations of them would no longer arrive.
#[utoipa::path(delete, path = "/api/v1/market/sources/{source}", params(("source" = String, Path, description = "The id of the source")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn source_delete(State(app): State<App>, Path(source): Path<String>) -> Ack {
    let params = MarketSourceParams { source };
    answer::done(&app, Method::PluginMarketSourceRemove, &params).await
}
