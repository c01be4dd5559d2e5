//! The plugin market: installable plugins, and the sources that offer them.

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use protocol::{
    InstalledPlugin, MarketEntryDto, MarketInstallRequest, MarketRefreshRequest, MarketSourceAddRequest,
    MarketSourceAddResponse, MarketSourceDto, MarketSourceParams, Method, client::CallError,
};
use serde_json::{Map, value::RawValue};

use crate::{
    answer::{self, Ack, Answer, Forwarded},
    app::App,
    extract::{Body, PageParams, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
};

/// List what can be installed.
///
/// From all sources, those that came with the service first; with what is installed, what is revoked, and whether a source
/// is stale. Sources that were not asked for some minutes are asked first. With `limit` it is a page: the header
/// `X-Total-Count` has the number of all, and `X-Next-Cursor` the `cursor` of the next page; without that header there is
/// none. What was withdrawn meanwhile cannot be continued from.
#[utoipa::path(get, path = "/api/v1/market", params(PageParams), responses(
    (status = 200, body = Vec<MarketEntryDto>, headers(
        ("X-Next-Cursor" = String, description = "Where the next page begins, if there is one"),
        ("X-Total-Count" = usize, description = "How many all pages have together; only with `limit`"))),
    (status = 400, body = ResultMessage), Gated, Called))]
pub(crate) async fn market_list(State(app): State<App>, Params(part): Params<PageParams>) -> Result<Response, Problem> {
    let limit = part.limit()?;
    // The list is long, so the daemon's JSON is passed on unparsed.
    let list: Box<RawValue> = app.daemon.call(Method::PluginMarketList, &Map::new()).await?;
    if limit.is_none() && part.cursor.is_none() {
        return Ok(answer::json(String::from(Box::<str>::from(list))));
    }
    let entries: Vec<MarketEntryDto> = serde_json::from_str(list.get()).map_err(|_| CallError::Unreadable)?;
    let (page, next) = answer::cut(&entries, limit, part.cursor.as_deref(), place)?;
    let total = limit.map(|_| entries.len());
    Ok(answer::page(Json(page).into_response(), next, total))
}

/// Names an entry: a source lists a plugin once.
fn place(entry: &MarketEntryDto) -> String {
    format!("{}/{}", entry.source, entry.plugin_id)
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
) -> Forwarded<Vec<MarketSourceDto>> {
    answer::call(&app, Method::PluginMarketRefresh, &request).await
}

/// List the sources of plugins.
///
/// With the fingerprints of their keys, the expiry of their indexes, and why the last refresh failed. The plugins that
/// are part of the service are the source `bundled`.
#[utoipa::path(get, path = "/api/v1/market/sources", responses(
    (status = 200, body = Vec<MarketSourceDto>), Gated, Called))]
pub(crate) async fn source_list(State(app): State<App>) -> Forwarded<Vec<MarketSourceDto>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_every_entry_once() {
        let entry = |number: u32, source: &str| MarketEntryDto {
            plugin_id: format!("p{number}@acme"),
            source: source.to_owned(),
            ..MarketEntryDto::default()
        };
        // One plugin is offered by two sources.
        let entries = [entry(1, "bundled"), entry(1, "acme"), entry(2, "acme")];
        let cut = |entries, limit, cursor| answer::cut(entries, limit, cursor, place);
        let (first, next) = cut(&entries[..], Some(2), None).unwrap();
        assert_eq!((first, next.as_deref()), (&entries[..2], Some("acme/p1@acme")));
        assert_eq!(
            cut(&entries[..], Some(2), next.as_deref()).unwrap(),
            (&entries[2..], None)
        );
        assert_eq!(
            cut(&entries[..], None, Some("bundled/p1@acme")).unwrap(),
            (&entries[1..], None)
        );
        assert!(
            cut(&entries[..1], Some(1), next.as_deref()).is_err(),
            "it was withdrawn"
        );
        assert_eq!(cut(&[][..], Some(1), None).unwrap(), (&[][..], None));
    }
}
