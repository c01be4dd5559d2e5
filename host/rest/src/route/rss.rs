//! Subscriptions to feeds, and their items.

use axum::{
    Json,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use data_encoding::BASE64URL_NOPAD;
use protocol::{
    Method, RssCreatedSource, RssExportResponse, RssImportRequest, RssImportResponse, RssItemActionParams,
    RssItemActionRequest, RssItemDto, RssSourceDto, RssSourceParams, RssValidateRequest, RssValidateResponse,
};

use crate::{
    answer::{self, Ack, Forwarded},
    app::App,
    extract::{Body, PageParams, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
};

/// List subscriptions to feeds.
///
/// With the state of each: when it was fetched, when it is fetched next, and why the last fetch failed. Cookies and
/// passwords are shown as `***`.
#[utoipa::path(get, path = "/api/v1/rss", responses(
    (status = 200, body = Vec<RssSourceDto>), Gated, Called))]
pub(crate) async fn rss_list(State(app): State<App>) -> Forwarded<Vec<RssSourceDto>> {
    answer::call(&app, Method::RssListSources, &serde_json::Map::new()).await
}

/// Subscribe to a feed.
///
/// `url` is a feed or a web page that names one. It is fetched at once; what it contains then is not downloaded, only what
/// is added later. A subscription that downloads by itself (`autoDownload`) needs an `includePattern`, or the confirmation
/// `downloadAll` that everything is wanted.
#[utoipa::path(post, path = "/api/v1/rss", request_body = RssSourceDto, responses(
    (status = 200, body = RssCreatedSource), Gated, Sent, Called))]
pub(crate) async fn rss_create(
    State(app): State<App>,
    Body(source): Body<RssSourceDto>,
) -> Forwarded<RssCreatedSource> {
    answer::call(&app, Method::RssCreateSource, &source).await
}

/// Try a feed and rules without subscribing.
///
/// Shows for each item whether it would be downloaded and why. Without `url`, and with the `sourceId` of a subscription
/// in `source`, the rules are tried on the stored items. A feed that cannot be fetched is not an HTTP error: `error` says
/// why.
#[utoipa::path(post, path = "/api/v1/rss/validate", request_body = RssValidateRequest, responses(
    (status = 200, body = RssValidateResponse), Gated, Sent, Named, Called))]
pub(crate) async fn rss_validate(
    State(app): State<App>,
    Body(request): Body<RssValidateRequest>,
) -> Forwarded<RssValidateResponse> {
    answer::call(&app, Method::RssValidate, &request).await
}

/// Subscribe to the feeds of an OPML document.
///
/// Feeds that are subscribed to already are left as they are. New ones do not download by themselves until they are
/// told to.
#[utoipa::path(post, path = "/api/v1/rss/import", request_body = RssImportRequest, responses(
    (status = 200, body = RssImportResponse), Gated, Sent, Called))]
pub(crate) async fn rss_import(
    State(app): State<App>,
    Body(request): Body<RssImportRequest>,
) -> Forwarded<RssImportResponse> {
    answer::call(&app, Method::RssImport, &request).await
}

/// Export all subscriptions as an OPML document.
///
/// Other feed readers read it. It contains no cookies and passwords.
#[utoipa::path(get, path = "/api/v1/rss/export", responses(
    (status = 200, body = RssExportResponse), Gated, Called))]
pub(crate) async fn rss_export(State(app): State<App>) -> Forwarded<RssExportResponse> {
    answer::call(&app, Method::RssExport, &serde_json::Map::new()).await
}

/// Change a subscription.
///
/// The whole record is replaced. Changed rules judge new items and those that still wait; items with a verdict keep it.
/// Runtime fields such as `lastFetchAt` and `failCount` are ignored, and a `***` keeps the
/// stored secret.
#[utoipa::path(put, path = "/api/v1/rss/{id}", params(("id" = String, Path, description = "The subscription's id")),
    request_body = RssSourceDto, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn rss_update(
    State(app): State<App>,
    Path(source_id): Path<String>,
    Body(source): Body<RssSourceDto>,
) -> Ack {
    let source = RssSourceDto { source_id, ..source };
    answer::done(&app, Method::RssUpdateSource, &source).await
}

/// Delete a subscription with its items.
///
/// The downloads that it created are kept.
#[utoipa::path(delete, path = "/api/v1/rss/{id}", params(("id" = String, Path, description = "The subscription's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn rss_delete(State(app): State<App>, Path(source_id): Path<String>) -> Ack {
    answer::done(&app, Method::RssDeleteSource, &RssSourceParams { source_id }).await
}

/// Fetch a feed now.
///
/// Answers at once, also if the feed is being fetched already; the events `rssSourcesChanged` and `rssItemsChanged` follow
/// on `/rpc`.
#[utoipa::path(post, path = "/api/v1/rss/{id}/refresh", params(("id" = String, Path, description = "The subscription's id")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn rss_refresh(State(app): State<App>, Path(source_id): Path<String>) -> Ack {
    answer::done(&app, Method::RssRefreshSource, &RssSourceParams { source_id }).await
}

/// List the items of a subscription, newest first.
///
/// With `limit` it is a page: `X-Total-Count` says how many items there are, and `X-Next-Cursor` has the `cursor` of the
/// next page; without that header there is none.
#[utoipa::path(get, path = "/api/v1/rss/{id}/items", params(("id" = String, Path, description = "The subscription's id"), PageParams), responses(
    (status = 200, body = Vec<RssItemDto>, headers(
        ("X-Next-Cursor" = String, description = "Where the next page begins, if there is one"),
        ("X-Total-Count" = u64, description = "How many items there are, with limit"))),
    Gated, Named, Called))]
pub(crate) async fn rss_items(
    State(app): State<App>,
    Path(source_id): Path<String>,
    Params(params): Params<PageParams>,
) -> Result<Response, Problem> {
    let limit = params.limit()?;
    let items: Vec<RssItemDto> = app
        .daemon
        .call(Method::RssGetItems, &RssSourceParams { source_id })
        .await?;
    // A guid is any text, a header is not.
    let name = |item: &RssItemDto| BASE64URL_NOPAD.encode(item.guid.as_bytes());
    let (page, next) = answer::cut(&items, limit, params.cursor.as_deref(), name)?;
    let total = limit.map(|_| items.len());
    Ok(answer::page(Json(page).into_response(), next, total))
}

/// Download an item, ignore it, or mark items as read.
///
/// `action` is `download` (whatever became of the item before), `ignore`, `read`, or `readAll` for all new items of the
/// subscription. What is read and still waits to be downloaded is not downloaded then. The item is named by its `guid`.
#[utoipa::path(post, path = "/api/v1/rss/{id}/items/action", params(("id" = String, Path, description = "The subscription's id")),
    request_body = RssItemActionRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn rss_item_action(
    State(app): State<App>,
    Path(source_id): Path<String>,
    Body(RssItemActionRequest { guid, action }): Body<RssItemActionRequest>,
) -> Ack {
    let params = RssItemActionParams {
        source_id,
        guid,
        action,
    };
    answer::done(&app, Method::RssItemAction, &params).await
}
