//! Installed plugins.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State},
    response::Response,
};
use protocol::{
    ChoosePluginHostParams, ChoosePluginHostRequest, InstallPluginDevRequest, InstallPluginParams, InstalledPlugin,
    Method, PluginAuthAction, PluginAuthRequest, PluginAuthResponse, PluginAuthStatus, PluginDto, PluginJournalDto,
    PluginParams, SetPluginEnabledParams, SetPluginEnabledRequest, SetPluginPinnedParams, SetPluginPinnedRequest,
    UninstallPluginParams, UpdatePluginSettingsParams,
};
use serde::Deserialize;

use super::web;
use crate::{
    answer::{self, Ack, Answer, Forwarded},
    app::App,
    extract::{Archive, Body, Params},
    problem::{Called, Gated, Named, Problem, ResultMessage, Sent},
    service::Part,
};

/// List plugins.
///
/// With their state, their permissions, versions that wait for consent, and their settings without the secret ones.
#[utoipa::path(get, path = "/api/v1/plugins", responses(
    (status = 200, body = Vec<PluginDto>), Gated, (status = 503, body = ResultMessage)))]
pub(crate) async fn plugin_list(State(app): State<App>) -> Result<Response, Problem> {
    answer::part(&app, Part::Plugins).await
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
pub(crate) async fn plugin_install(State(app): State<App>, Archive(bytes): Archive) -> Forwarded<InstalledPlugin> {
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
) -> Forwarded<InstalledPlugin> {
    answer::call(&app, Method::PluginInstallDev, &request).await
}

/// Remove a plugin with its settings.
///
/// Succeeds also if it is not installed. Afterwards no plugin claims its URLs. With `keepAccounts=true` its logins stay until
/// it is installed again, which is refused for a plugin that is not signed.
#[utoipa::path(delete, path = "/api/v1/plugins/{identity}", params(("identity" = String, Path, description = "The plugin: `name@author`"), KeepParams), responses(
    (status = 200, body = ResultMessage), Gated, Named, Called))]
pub(crate) async fn plugin_delete(
    State(app): State<App>,
    Path(identity): Path<String>,
    Params(KeepParams { keep_accounts }): Params<KeepParams>,
) -> Ack {
    let params = UninstallPluginParams {
        identity,
        keep_accounts,
    };
    answer::done(&app, Method::PluginUninstall, &params).await
}

/// What is kept of a removed plugin.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct KeepParams {
    /// Keep its logins for another installation.
    #[serde(default)]
    keep_accounts: bool,
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
pub(crate) async fn plugin_journal(
    State(app): State<App>,
    Path(identity): Path<String>,
) -> Forwarded<PluginJournalDto> {
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

/// Log in to an account of a plugin, or out of it.
///
/// `begin` answers with a `sessionId` and the first screen: a text, a QR code, fields, a page for the browser. While the
/// `status` is `pending`, show the screen; `poll` after its `pollAfterMs`, and `answer` with `values` once the user has
/// filled in its fields. A poll without news answers with the screen as it was. Afterwards the `status` is `success`, with
/// the account's slot as `authRef`, or `error`, with the reason. A login that nobody asks about for 5 minutes, or that
/// takes 15 minutes, is over; its end can be read for 5 more minutes. A plugin has two logins at once at most: another
/// one cancels the oldest.
///
/// `status` without a session lists the slots of the plugin and the accounts in them. `logout` deletes an account, also of
/// a disabled plugin.
///
/// What is typed into secret fields, and what the site answers with, goes to the service's vault: neither the plugin nor
/// any answer contains it. A refused request, and a `begin` or an `answer` that ends the login without an account, is
/// answered with 400 and the reason; so is a login beyond those that the service can have at once.
#[utoipa::path(post, path = "/api/v1/plugins/{identity}/auth", params(("identity" = String, Path, description = "The plugin: `name@author`")),
    request_body = PluginAuthRequest, responses(
    (status = 200, body = PluginAuthResponse), Gated, Sent, Called))]
pub(crate) async fn plugin_auth(
    State(app): State<App>,
    Path(identity): Path<String>,
    Body(request): Body<PluginAuthRequest>,
) -> Answer<PluginAuthResponse> {
    let action = request.action;
    let params = PluginAuthRequest {
        identity: Some(identity),
        ..request
    };
    let answered = app.daemon.call(Method::PluginAuth, &params).await;
    outcome(action, answered.map_err(Problem::login)?).map(Json)
}

/// A login that fails while the user waits for the answer is a failed request; a poll reports a failure as a state.
fn outcome(action: PluginAuthAction, answered: PluginAuthResponse) -> Result<PluginAuthResponse, Problem> {
    let is_attempt = matches!(action, PluginAuthAction::Begin | PluginAuthAction::Answer);
    if is_attempt && answered.status == PluginAuthStatus::Error {
        return Err(Problem::invalid(answered.message));
    }
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use axum::{http::StatusCode, response::IntoResponse as _};
    use protocol::{ErrorCode, RpcError, client::CallError};

    use super::*;

    #[test]
    fn an_attempt_that_fails_is_400_and_a_poll_says_how_it_is() {
        let failed = || PluginAuthResponse {
            status: PluginAuthStatus::Error,
            message: "the site is closed".to_owned(),
            ..PluginAuthResponse::default()
        };
        for action in [PluginAuthAction::Begin, PluginAuthAction::Answer] {
            let refused = outcome(action, failed()).unwrap_err();
            assert_eq!(refused.into_response().status(), StatusCode::BAD_REQUEST, "{action:?}");
        }
        for action in [
            PluginAuthAction::Poll,
            PluginAuthAction::Cancel,
            PluginAuthAction::Status,
        ] {
            assert_eq!(outcome(action, failed()).unwrap(), failed(), "{action:?}");
        }
    }

    #[test]
    fn a_refused_login_is_400_and_an_unknown_plugin_404() {
        for (code, status) in [
            (ErrorCode::InvalidArgument, 400),
            (ErrorCode::Unsupported, 400),
            (ErrorCode::Conflict, 400),
            (ErrorCode::NotFound, 404),
            (ErrorCode::Unavailable, 503),
            (ErrorCode::Timeout, 504),
        ] {
            let refused = Problem::login(CallError::Refused(RpcError::application(code, "no")));
            assert_eq!(refused.into_response().status().as_u16(), status, "{code:?}");
        }
    }
}
