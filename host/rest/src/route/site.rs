//! Logins of sites. Passwords are write-only.

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{Method, SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteParams};

use crate::{
    answer::{self, Ack, Answer, Forwarded},
    app::App,
    extract::Body,
    problem::{Called, Gated, Problem, ResultMessage, Sent},
    service::Part,
};

/// List the sites with a stored login.
///
/// With their user names. Passwords are never shown.
#[utoipa::path(get, path = "/api/v1/site-auth", responses(
    (status = 200, body = Vec<SiteAuthEntryDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn site_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Part::Sites).await
}

/// Store a login for a site.
///
/// User name and password for HTTP Basic and Digest or for FTP and SFTP, sent to exactly this scheme, host and port and nowhere else.
#[utoipa::path(put, path = "/api/v1/site-auth", request_body = SiteAuthSaveRequest, responses(
    (status = 200, body = SiteAuthEntryDto), Gated, Sent, Called))]
pub(crate) async fn site_save(
    State(app): State<App>,
    Body(request): Body<SiteAuthSaveRequest>,
) -> Forwarded<SiteAuthEntryDto> {
    answer::call(&app, Method::SiteAuthSave, &request).await
}

/// Show the stored user name of a site.
///
/// The password is never shown.
#[utoipa::path(get, path = "/api/v1/site-auth/{site}", params(("site" = String, Path, description = "Percent-encoded")), responses(
    (status = 200, body = SiteAuthEntryDto), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn site_view(State(app): State<App>, Path(site): Path<String>) -> Answer<SiteAuthEntryDto> {
    let found: Option<SiteAuthCredential> = app.daemon.call(Method::SiteAuthGet, &SiteParams { site }).await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(Json(SiteAuthEntryDto::new(found.site, found.user)))
}

/// Delete the stored login of a site.
///
/// Running downloads use it until they are started again.
#[utoipa::path(delete, path = "/api/v1/site-auth/{site}", params(("site" = String, Path, description = "Percent-encoded")), responses(
    (status = 200, body = ResultMessage), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn site_delete(State(app): State<App>, Path(site): Path<String>) -> Ack {
    let _: Vec<SiteAuthEntryDto> = app.daemon.call(Method::SiteAuthDelete, &SiteParams { site }).await?;
    Ok(answer::ok())
}
