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
/// With their state, their permissions, versions that wait for consent, and their settings without the secret ones.
#[utoipa::path(get, path = "/api/v1/plugins", responses(
    (status = 200, body = Vec<PluginDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn plugin_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Projection::plugins)
}

/// Install a plugin from its ZIP archive.
///
/// The body is the archive, of at most 4 MiB; an installed plugin is replaced by this version. If it requests
/// permissions, it runs only after you consent: `pendingConsent` is their digest, the list of plugins shows them, and
/// `PUT …/enabled` takes the digest as `consent`.
#[utoipa::path(post, path = "/api/v1/plugins/install",
    request_body(content = inline(Archive), content_type = "application/zip"), responses(
    (status = 200, body = InstalledPlugin), Gated, Named, (status = 408, body = ResultMessage), Called,
    (status = 502, body = ResultMessage)))]
pub(crate) async fn plugin_install(State(app): State<App>, Archive(bytes): Archive) -> Answer<InstalledPlugin> {
    let blob_id = web::keep(&app, "plugins", bytes).await?.blob_id;
    let params = InstallPluginParams { blob_id };
    answer::call(&app, Method::PluginInstall, &params).await
}

/// Run a plugin from its author's folder.
///
/// For authors: nothing is copied, and changes in the folder are loaded while the service runs. The folder is on the
/// machine of the service. If a plugin of this identity is installed from elsewhere, that one keeps running until you
/// consent, because the folder gets its secrets, cookies, settings and stored values: `pendingConsent` is the digest to
/// consent to.
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

/// Enable or disable a plugin, or consent to its permissions.
///
/// `consent` is the digest that the list of plugins shows with the permissions (`pending.digest`), so that consent
/// covers what you have seen and no later change.
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
/// All values are saved, or none if one of them is invalid. An empty value restores the default.
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

/// Restore the previous version of a plugin.
///
/// The present version is kept as the previous one, so that a second call undoes this.
#[utoipa::path(post, path = "/api/v1/plugins/{identity}/rollback", params(("identity" = String, Path, description = "The plugin: `name@author`")), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn plugin_roll_back(State(app): State<App>, Path(identity): Path<String>) -> Ack {
    answer::done(&app, Method::PluginRollBack, &PluginParams { identity }).await
}

/// Allow or forbid a plugin an optional host.
///
/// For optional hosts that the plugin was denied: `grantableHosts` of a preview and the message of a failed download
/// name them. No choice has the effect of `never`.
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

/// Show the journal of a plugin.
///
/// Its events, log lines and requests since the start of the service; the number of each is limited, and the oldest are
/// dropped.
#[utoipa::path(get, path = "/api/v1/plugins/{identity}/journal", params(("identity" = String, Path, description = "The plugin: `name@author`")), responses(
    (status = 200, body = PluginJournalDto), Gated, Named, Called))]
pub(crate) async fn plugin_journal(State(app): State<App>, Path(identity): Path<String>) -> Answer<PluginJournalDto> {
    let params = PluginParams { identity };
    answer::call(&app, Method::PluginJournal, &params).await
}

/// Pin a plugin to its version, or unpin it.
///
/// A pinned plugin is not updated automatically, even if its version was revoked.
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
