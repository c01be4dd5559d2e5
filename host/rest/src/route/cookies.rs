//! Cookies of sites, from a browser's export. They are write-only.

use axum::{
    Json,
    extract::{Path, State},
};
use protocol::{Method, SiteCookiesDto, SiteCookiesImportRequest, SiteParams};
use serde_json::Map;

use crate::{
    answer::{self, Ack, Answer, Forwarded},
    app::App,
    extract::Body,
    problem::{Called, Gated, Problem, ResultMessage, Sent},
};

/// List the sites with stored cookies.
///
/// With their number and expiry. Names and values are never shown.
#[utoipa::path(get, path = "/api/v1/site-cookies", responses(
    (status = 200, body = Vec<SiteCookiesDto>), Gated, Called))]
pub(crate) async fn cookies_list(State(app): State<App>) -> Forwarded<Vec<SiteCookiesDto>> {
    answer::call(&app, Method::SiteCookiesList, &Map::new()).await
}

/// Store the cookies of a browser's export.
///
/// They replace those that their sites had, and are sent with plain downloads from these sites, as a browser sends them
/// (by domain, path and `Secure`), and nowhere else. A download's own cookies of the same name take precedence. Expired
/// cookies are left out. The answer lists the sites that were stored.
#[utoipa::path(put, path = "/api/v1/site-cookies", request_body = SiteCookiesImportRequest, responses(
    (status = 200, body = Vec<SiteCookiesDto>), Gated, Sent, Called))]
pub(crate) async fn cookies_import(
    State(app): State<App>,
    Body(request): Body<SiteCookiesImportRequest>,
) -> Forwarded<Vec<SiteCookiesDto>> {
    answer::call(&app, Method::SiteCookiesImport, &request).await
}

/// Show how many cookies of a site are stored.
///
/// Names and values are never shown.
#[utoipa::path(get, path = "/api/v1/site-cookies/{site}", params(("site" = String, Path, description = "As the list shows it")), responses(
    (status = 200, body = SiteCookiesDto), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn cookies_view(State(app): State<App>, Path(site): Path<String>) -> Answer<SiteCookiesDto> {
    let sites: Vec<SiteCookiesDto> = app.daemon.call(Method::SiteCookiesList, &Map::new()).await?;
    let found = sites.into_iter().find(|entry| entry.site == site);
    found.map(Json).ok_or_else(Problem::not_found)
}

/// Delete the stored cookies of a site.
///
/// Running downloads use them until they are started again.
#[utoipa::path(delete, path = "/api/v1/site-cookies/{site}", params(("site" = String, Path, description = "As the list shows it")), responses(
    (status = 200, body = ResultMessage), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn cookies_delete(State(app): State<App>, Path(site): Path<String>) -> Ack {
    answer::done(&app, Method::SiteCookiesDelete, &SiteParams { site }).await
}
