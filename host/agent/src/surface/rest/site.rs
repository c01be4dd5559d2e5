//! Logins of sites. Passwords are write-only.

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{Method, SiteAuthCredential, SiteAuthEntryDto, SiteAuthSaveRequest, SiteParams};

use crate::{
    problem::{Called, Gated, Problem, ResultMessage, Sent},
    surface::{
        http::{answer, extract::Body},
        state::App,
    },
};

/// List the sites that a login is kept for.
///
/// With their user names. Passwords are never shown.
#[utoipa::path(get, path = "/api/v1/site-auth", responses(
    (status = 200, body = Vec<SiteAuthEntryDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn site_list(State(app): State<App>) -> Result<Response, Problem> {
    Ok(answer::json(
        app.daemon.known()?.with_tasks(|daemon| daemon.sites().to_owned()),
    ))
}

/// Keep a login for a site.
///
/// User name and password for HTTP Basic, sent to exactly this scheme, host and port and to nobody else.
#[utoipa::path(put, path = "/api/v1/site-auth", request_body = SiteAuthSaveRequest, responses(
    (status = 200, body = SiteAuthEntryDto), Gated, Sent, Called))]
pub(crate) async fn site_save(
    State(app): State<App>,
    Body(request): Body<SiteAuthSaveRequest>,
) -> Result<Json<SiteAuthEntryDto>, Problem> {
    Ok(Json(app.daemon.call(Method::SiteAuthSave, &request).await?))
}

/// Show the user name kept for a site.
///
/// The password is never shown.
#[utoipa::path(get, path = "/api/v1/site-auth/{site}", params(("site" = String, Path, description = "Percent-encoded")), responses(
    (status = 200, body = SiteAuthEntryDto), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn site_view(
    State(app): State<App>,
    Path(site): Path<String>,
) -> Result<Json<SiteAuthEntryDto>, Problem> {
    let found: Option<SiteAuthCredential> = app.daemon.call(Method::SiteAuthGet, &SiteParams { site }).await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(Json(SiteAuthEntryDto::new(found.site, found.user)))
}

/// Forget the login kept for a site.
///
/// Downloads that run go on with it until they are started again.
#[utoipa::path(delete, path = "/api/v1/site-auth/{site}", params(("site" = String, Path, description = "Percent-encoded")), responses(
    (status = 200, body = ResultMessage), Gated, (status = 400, body = ResultMessage), Called))]
pub(crate) async fn site_delete(
    State(app): State<App>,
    Path(site): Path<String>,
) -> Result<Json<ResultMessage>, Problem> {
    let _: Vec<SiteAuthEntryDto> = app.daemon.call(Method::SiteAuthDelete, &SiteParams { site }).await?;
    Ok(answer::ok())
}
