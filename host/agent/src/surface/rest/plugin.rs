//! Installed plugins.

use std::collections::BTreeMap;

use axum::{
    extract::{Path, State},
    response::Response,
};
use protocol::{
    ChoosePluginHostParams, ChoosePluginHostRequest, InstallPluginDevRequest, InstallPluginParams, InstalledPlugin,
    Method, PluginDto, PluginJournalDto, PluginParams, SetPluginEnabledParams, SetPluginEnabledRequest,
    SetPluginPinnedParams, SetPluginPinnedRequest, UpdatePluginSettingsParams,
};

use super::web;
use crate::{
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    projection::tasks::Projection,
    surface::{
        http::{
            answer::{self, Ack, Answer},
            extract::{Archive, Body},
        },
        state::App,
    },
};

/// List plugins.
///
/// What each does and may do, how it is, what it waits for, and its settings without their secrets.
#[utoipa::path(get, path = "/api/v1/plugins", responses(
    (status = 200, body = Vec<PluginDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn plugin_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Projection::plugins)
}

/// Install a plugin from its ZIP archive.
///
/// The body is the archive, of at most 4 MiB; a plugin that is there already gets this version. If it asks for
/// anything, it runs only after you agree: `pendingConsent` names what is asked, the list of plugins shows it, and `PUT
/// …/enabled` takes it as `consent`.
#[utoipa::path(post, path = "/api/v1/plugins/install",
    request_body(content = inline(Archive), content_type = "application/zip"), responses(
    (status = 200, body = InstalledPlugin), Gated, Named, (status = 408, body = ResultMessage), Called,
    (status = 502, body = ResultMessage)))]
pub(crate) async fn plugin_install(State(app): State<App>, Archive(bytes): Archive) -> Answer<InstalledPlugin> {
    let blob_id = web::keep(&app, "plugins", bytes).await?.blob_id;
    let params = InstallPluginParams { blob_id };
    answer::call(&app, Method::PluginInstall, &params).await
}

/// Use a plugin in its author's folder.
///
/// For authors: nothing is copied, and changes of the folder are taken over while the service runs. The folder is one
/// of the machine that the service runs on. If a plugin of this identity is installed from elsewhere, that one is used
/// until you agree, because the folder gets its secrets, cookies, settings and memory: `pendingConsent` names what is
/// asked.
#[utoipa::path(post, path = "/api/v1/plugins/install-dev", request_body = InstallPluginDevRequest, responses(
    (status = 200, body = InstalledPlugin), Gated, Sent, Named, Called))]
pub(crate) async fn plugin_install_dev(
    State(app): State<App>,
    Body(request): Body<InstallPluginDevRequest>,
) -> Answer<InstalledPlugin> {
    answer::call(&app, Method::PluginInstallDev, &request).await
}

/// Remove a plugin with its settings.
///
/// Succeeds also if it is not installed. Afterwards no plugin claims its URLs.
#[utoipa::path(delete, path = "/api/v1/plugins/{identity}", params(("identity" = String, Path, description = "The plugin: `name@author`")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn plugin_delete(State(app): State<App>, Path(identity): Path<String>) -> Ack {
    answer::done(&app, Method::PluginUninstall, &PluginParams { identity }).await
}

/// Switch a plugin on or off, or agree to what it asks for.
///
/// `consent` is the digest that stands beside what is asked (`pending.digest` in the list of plugins): so you agree to
/// what you have seen, and not to what is asked by now.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/enabled", params(("identity" = String, Path, description = "The plugin: `name@author`")),
    request_body = SetPluginEnabledRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn plugin_set_enabled(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(SetPluginEnabledRequest { enabled, consent }): Body<SetPluginEnabledRequest>,
) -> Ack {
    let params = SetPluginEnabledParams {
        identity,
        enabled,
        consent,
    };
    answer::done(&app, Method::PluginSetEnabled, &params).await
}

/// Change settings of a plugin.
///
/// All of the values are set, or none if one of them does not fit. An empty one goes back to the default.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/settings", params(("identity" = String, Path, description = "The plugin: `name@author`")),
    request_body = BTreeMap<String, String>, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn plugin_update_settings(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(entries): Body<BTreeMap<String, String>>,
) -> Ack {
    let params = UpdatePluginSettingsParams { identity, entries };
    answer::done(&app, Method::PluginUpdateSettings, &params).await
}

/// Go back to the version of a plugin before.
///
/// The one that runs now is kept in its place, so that this can be undone by doing it again.
#[utoipa::path(post, path = "/api/v1/plugins/{identity}/rollback", params(("identity" = String, Path, description = "The plugin: `name@author`")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn plugin_roll_back(State(app): State<App>, Path(identity): Path<String>) -> Ack {
    answer::done(&app, Method::PluginRollBack, &PluginParams { identity }).await
}

/// Let a plugin contact another host, or do not.
///
/// For hosts that it can do without and was refused: `grantableHosts` of a preview and the message of a failed download
/// name them. Nothing chosen is as `never`.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/hosts", params(("identity" = String, Path, description = "The plugin: `name@author`")),
    request_body = ChoosePluginHostRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn plugin_choose_host(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(ChoosePluginHostRequest { host, choice }): Body<ChoosePluginHostRequest>,
) -> Ack {
    let params = ChoosePluginHostParams { identity, host, choice };
    answer::done(&app, Method::PluginChooseHost, &params).await
}

/// Show what a plugin did.
///
/// What happened to it, what it wrote, and which requests it sent, since the service started and as far as it is kept.
#[utoipa::path(get, path = "/api/v1/plugins/{identity}/journal", params(("identity" = String, Path, description = "The plugin: `name@author`")), responses(
    (status = 200, body = PluginJournalDto), Gated, Named, Called))]
pub(crate) async fn plugin_journal(State(app): State<App>, Path(identity): Path<String>) -> Answer<PluginJournalDto> {
    let params = PluginParams { identity };
    answer::call(&app, Method::PluginJournal, &params).await
}

/// Keep a plugin at its version, or do not.
///
/// A pinned plugin is only replaced when you say so, also by a version that repairs a revoked one.
#[utoipa::path(put, path = "/api/v1/plugins/{identity}/pinned", params(("identity" = String, Path, description = "The plugin: `name@author`")),
    request_body = SetPluginPinnedRequest, responses(
    (status = 200, body = ResultMessage), Gated, Sent, Named, Called))]
pub(crate) async fn plugin_set_pinned(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(SetPluginPinnedRequest { pinned }): Body<SetPluginPinnedRequest>,
) -> Ack {
    let params = SetPluginPinnedParams { identity, pinned };
    answer::done(&app, Method::PluginSetPinned, &params).await
}
