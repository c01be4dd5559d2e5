//! The market: which plugins there are to install, and the sources that say so.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A plugin that a source offers: the newest version that can be installed here, else the newest that there is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketEntryDto {
    /// `name@author`.
    pub plugin_id: String,
    /// Which version.
    pub version: String,
    /// Its number at the source; 0 if it came with the service.
    pub sequence: u64,
    /// `sha256:` and the digest of its package.
    pub content_hash: String,
    /// The oldest host that it runs on; empty if any will do.
    pub min_app_version: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// Where more is to be read.
    pub homepage: String,
    /// Where its package is: paths of the source, or https URLs.
    pub mirrors: Vec<String>,
    /// When it was added, as RFC 3339; empty if it came with the service.
    pub publish_time: String,
    /// Why nobody shall install it any more; empty if it can be installed.
    pub yanked: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// What it asks for.
    pub permissions: Vec<String>,
    /// Which source offers it: `bundled` is the service itself.
    pub source: String,
    /// The fingerprint of the key that its author signs with; none if it came with the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// What is installed of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<MarketInstalledDto>,
    /// Whether this version would replace the installed one, perhaps once the user agrees to what it asks for.
    pub update_available: bool,
    /// When it replaces the installed one by itself, in milliseconds since the Unix epoch, unless it asks for more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates_at_ms: Option<i64>,
    /// Whether newer news may be kept from us: nothing is installed then.
    pub stale: bool,
    /// That the installed version, or else this one, is revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<RevocationDto>,
}

/// What is installed of a plugin that the market has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketInstalledDto {
    /// The version that runs, or that waits for consent if none runs.
    pub version: String,
    /// Whether it is only replaced when the user says so.
    pub pinned: bool,
}

/// A version must not be used any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevocationDto {
    /// `deprecated`: something better is there; `vulnerable`: it is not installed any more; `malicious`: it does not run.
    pub level: String,
    /// Why, for people.
    pub reason: String,
}

/// Where plugins come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketSourceDto {
    /// What it calls itself, for ever; `bundled` is the service itself.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Where it is, without a login; empty if it came with the service.
    pub url: String,
    /// The fingerprint of the key with which it was added; empty if it came with the service.
    pub fingerprint: String,
    /// `fresh`; `failing`: the last refresh failed, and what is known still counts; `stale`: it counts no more, nothing is
    /// installed or updated from it.
    pub status: String,
    /// How many plugins it offers.
    pub plugins: u32,
    /// When it was added, in milliseconds since the Unix epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added_at_ms: Option<i64>,
    /// When it was last believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refreshed_at_ms: Option<i64>,
    /// Until when what is known counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until_ms: Option<i64>,
    /// Why the last refresh failed, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same for programs: `marketUnreachable`, `marketIndexInvalid` or `marketIndexRollback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<String>,
}

/// Params of `daemon.plugin.marketInstall`, and the body of `POST /market/install`: installs or updates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketInstallRequest {
    /// `name@author`.
    pub plugin_id: String,
    /// The version that the user was shown; another one is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// From which source; must be said if several have the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The permissions that the user was shown and agrees to. The version runs at once if it asks for no others and its
    /// author is the one of the version before; else it waits for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Vec<String>>,
}

/// Params of `daemon.plugin.marketRefresh`: looks for news now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MarketRefreshRequest {
    /// At which source; at all of them if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Params of `daemon.plugin.marketSourceAdd`. Without the fingerprint nothing is added and the answer shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketSourceAddRequest {
    /// `svc://market?url=…&key=…`.
    pub link: String,
    /// The fingerprint that the user was shown and believes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What a link to a source says, and the source once it is added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarketSourceAddResponse {
    /// Where the source is, without a login.
    pub url: String,
    /// The fingerprint of its key, for the user to compare with what the source's maintainer tells.
    pub fingerprint: String,
    /// The source; none while the user has not said that the fingerprint is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<MarketSourceDto>,
}

/// Params of `daemon.plugin.marketSourceRemove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarketSourceParams {
    /// Which source.
    pub source: String,
}

/// Params of `daemon.plugin.setPinned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPluginPinnedParams {
    /// `name@author`.
    pub identity: String,
    /// Whether it is only replaced when the user says so.
    pub pinned: bool,
}

/// Whether a plugin is only replaced when the user says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetPluginPinnedRequest {
    /// Whether.
    pub pinned: bool,
}
