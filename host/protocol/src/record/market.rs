//! The market: which plugins there are to install, and the sources that say so.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A plugin offered by a market source: the newest version that this host can install, else the newest one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketEntryDto {
    /// `name@author`.
    pub plugin_id: String,
    /// The version.
    pub version: String,
    /// The sequence number of the version at the source; 0 for bundled plugins.
    pub sequence: u64,
    /// The digest of the package, as `sha256:hex`.
    pub content_hash: String,
    /// The minimum version of the host; empty: any.
    pub min_app_version: String,
    /// The display name.
    pub name: String,
    /// The description.
    pub description: String,
    /// The author's name.
    pub author: String,
    /// The URL of the home page.
    pub homepage: String,
    /// Locations of the package: paths relative to the source, or https URLs.
    pub mirrors: Vec<String>,
    /// The time of publication (RFC 3339); empty for bundled plugins.
    pub publish_time: String,
    /// Why this version was withdrawn; empty if it can be installed.
    pub yanked: String,
    /// Search keywords.
    pub tags: Vec<String>,
    /// The permissions that it requests.
    pub permissions: Vec<String>,
    /// The id of the source; `bundled` for plugins that are part of the service.
    pub source: String,
    /// The fingerprint of the author's signing key; `null` for bundled plugins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// The installed version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<MarketInstalledDto>,
    /// Whether this version is an update of the installed one. It may need the user's consent to new permissions.
    pub update_available: bool,
    /// The time of the automatic update in Unix milliseconds. Updates that request more permissions are not automatic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates_at_ms: Option<i64>,
    /// Whether the index has expired, so that newer entries may be missing. Nothing is installed from it then.
    pub stale: bool,
    /// The revocation of the installed version, or of this one if none is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<RevocationDto>,
}

/// The installed version of a plugin of the market.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketInstalledDto {
    /// The active version, or the one that waits for consent if none is active.
    pub version: String,
    /// Whether automatic updates are off for this plugin.
    pub pinned: bool,
}

/// The revocation of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevocationDto {
    /// `deprecated`: there is a replacement; `vulnerable`: cannot be installed; `malicious`: is not run.
    pub level: String,
    /// The reason, as text for users.
    pub reason: String,
}

/// A market source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketSourceDto {
    /// The permanent id of the source; `bundled` for the plugins that are part of the service.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The URL without user name and password; empty for bundled plugins.
    pub url: String,
    /// The fingerprint of the key that the user accepted; empty for bundled plugins.
    pub fingerprint: String,
    /// `fresh`; `failing`: the last refresh failed, the index is still valid; `stale`: the index has expired, and
    /// nothing is installed or updated from it.
    pub status: String,
    /// The number of plugins.
    pub plugins: u32,
    /// The time when the user added it, in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_at_ms: Option<i64>,
    /// The time of the last successful refresh in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreshed_at_ms: Option<i64>,
    /// The expiry of the index in Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until_ms: Option<i64>,
    /// Why the last refresh failed, as text for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The code of that failure: `marketUnreachable`, `marketIndexInvalid` or `marketIndexRollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
}

/// Params of `daemon.plugin.marketInstall`, and the body of `POST /market/install`: installs or updates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketInstallRequest {
    /// `name@author`.
    pub plugin_id: String,
    /// The version to install; the call fails if the source offers another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The id of the source; required if several offer the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The permissions that the user was shown and agrees to. The version runs at once if it asks for no others and its
    /// author is the one of the version before; else it waits for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Vec<String>>,
}

/// Params of `daemon.plugin.marketRefresh`: fetches the indexes now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketRefreshRequest {
    /// The id of the source; `null`: all sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Params of `daemon.plugin.marketSourceAdd`. Without the fingerprint nothing is added; the answer contains it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketSourceAddRequest {
    /// `svc://market?url=…&key=…`.
    pub link: String,
    /// The fingerprint that the user has confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// The content of a link to a market source, and the source once it was added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketSourceAddResponse {
    /// The URL of the source, without user name and password.
    pub url: String,
    /// The fingerprint of its key. Users compare it with the one that the maintainer publishes.
    pub fingerprint: String,
    /// The source; `null` if the call had no fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MarketSourceDto>,
}

/// Params of `daemon.plugin.marketSourceRemove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketSourceParams {
    /// The id of the source.
    pub source: String,
}

/// Params of `daemon.plugin.setPinned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPluginPinnedParams {
    /// `name@author`.
    pub identity: String,
    /// Whether automatic updates are off for this plugin.
    pub pinned: bool,
}

/// The body of a request to switch automatic updates of a plugin off or on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetPluginPinnedRequest {
    /// Whether automatic updates are off.
    pub pinned: bool,
}
