//! Plugins.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{
    ChoosePluginHostParams, ChoosePluginHostRequest, InstallPluginDevRequest, InstallPluginParams, InstalledPlugin,
    Method, OkResult, PluginDto, PluginJournalDto, PluginParams, SetPluginEnabledParams, SetPluginEnabledRequest,
    UpdatePluginSettingsParams,
};

use super::{
    App,
    extract::{Archive, Body},
    web,
};
use crate::problem::{Called, Gated, Named, Problem, ResultMessage, Sent};

type Ack = Result<Json<ResultMessage>, Problem>;

/// All plugins.
#[utoipa::path(get, path = "/api/v1/plugins", responses(
    (status = 200, body = Vec<PluginDto>), Gated, (status = 503, body = ResultMessage)))]
pub(super) async fn plugin_list(State(app): State<App>) -> Result<Response, Problem> {
    Ok(super::json(
        app.daemon.known()?.look(|daemon| daemon.plugins().to_owned()),
    ))
}

/// Install a plugin, or another version of one, from its ZIP archive of at most 4 MiB.
#[utoipa::path(post, path = "/api/v1/plugins/install",
    request_body(content = Vec<u8>, content_type = "application/zip"), responses(
    (status = 200, body = InstalledPlugin), Gated, Named, (status = 408, body = ResultMessage), Called,
    (status = 502, body = ResultMessage)))]
pub(super) async fn plugin_install(
    State(app): State<App>,
    Archive(bytes): Archive,
) -> Result<Json<InstalledPlugin>, Problem> {
    let blob_id = web::keep(&app, "plugins", bytes).await?.blob_id;
    let params = InstallPluginParams { blob_id };
    Ok(Json(app.daemon.call(Method::PluginInstall, &params).await?))
}

/// Use a plugin in its author's folder on this machine.
#[utoipa::path(post, path = "/api/v1/plugins/install-dev", request_body = InstallPluginDevRequest, responses(
    (status = 200, body = InstalledPlugin), Gated, Sent, Named, Called))]
pub(super) async fn plugin_install_dev(
    State(app): State<App>,
    Body(request): Body<InstallPluginDevRequest>,
) -> Result<Json<InstalledPlugin>, Problem> {
    Ok(Json(app.daemon.call(Method::PluginInstallDev, &request).await?))
}

/// Remove a plugin with its settings. One that is not there is removed already.
#[utoipa::path(delete, path = "/api/v1/plugins/{identity}", params(("identity" = String, Path)), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(super) async fn plugin_delete(State(app): State<App>, Path(identity): Path<String>) -> Ack {
    let _: OkResult = app
        .daemon
        .call(Method::PluginUninstall, &PluginParams { identity })
        .await?;
    Ok(super::ok())
}

/// Switch a plugin on or off, and agree to what it asks for.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/enabled", params(("identity" = String, Path)),
    request_body = SetPluginEnabledRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(super) async fn plugin_set_enabled(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(SetPluginEnabledRequest { enabled, consent }): Body<SetPluginEnabledRequest>,
) -> Ack {
    let params = SetPluginEnabledParams {
        identity,
        enabled,
        consent,
    };
    let _: OkResult = app.daemon.call(Method::PluginSetEnabled, &params).await?;
    Ok(super::ok())
}

/// Set values of a plugin's settings, all of them or none; an empty one goes back to the default.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/settings", params(("identity" = String, Path)),
    request_body = BTreeMap<String, String>, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(super) async fn plugin_update_settings(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(entries): Body<BTreeMap<String, String>>,
) -> Ack {
    let params = UpdatePluginSettingsParams { identity, entries };
    let _: OkResult = app.daemon.call(Method::PluginUpdateSettings, &params).await?;
    Ok(super::ok())
}

/// Go back to the version of a plugin that ran before.
#[utoipa::path(post, path = "/api/v1/plugins/{identity}/rollback", params(("identity" = String, Path)), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(super) async fn plugin_roll_back(State(app): State<App>, Path(identity): Path<String>) -> Ack {
    let _: OkResult = app
        .daemon
        .call(Method::PluginRollBack, &PluginParams { identity })
        .await?;
    Ok(super::ok())
}

/// Choose whether a plugin may reach a host that it can do without. Nothing chosen is as `never`.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/hosts", params(("identity" = String, Path)),
    request_body = ChoosePluginHostRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(super) async fn plugin_choose_host(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(ChoosePluginHostRequest { host, choice }): Body<ChoosePluginHostRequest>,
) -> Ack {
    let params = ChoosePluginHostParams { identity, host, choice };
    let _: OkResult = app.daemon.call(Method::PluginChooseHost, &params).await?;
    Ok(super::ok())
}

/// What a plugin did: what happened to it, what it wrote, and which requests it sent.
#[utoipa::path(get, path = "/api/v1/plugins/{identity}/journal", params(("identity" = String, Path)), responses(
    (status = 200, body = PluginJournalDto), Gated, Named, Called))]
pub(super) async fn plugin_journal(
    State(app): State<App>,
    Path(identity): Path<String>,
) -> Result<Json<PluginJournalDto>, Problem> {
    let params = PluginParams { identity };
    Ok(Json(app.daemon.call(Method::PluginJournal, &params).await?))
}
