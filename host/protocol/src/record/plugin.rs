//! Plugins, and what they make of a URL.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    RevocationDto,
    record::{left_out::LeftOutDto, thunder},
};

/// Why an installed plugin is disabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisabledReason {
    /// It is enabled, or waits for consent.
    #[default]
    None,
    /// The user disabled it.
    Manual,
    /// It failed too often in a row.
    CircuitBreaker,
    /// Its market source revoked it as malicious.
    Revoked,
}

/// An installed plugin. Contains no credentials.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the wire's")]
pub struct PluginDto {
    /// `name@author`.
    pub identity: String,
    /// The display name.
    pub name: String,
    /// The version; empty if the manifest could not be read.
    pub version: String,
    /// The description.
    pub description: String,
    /// The URL of the home page.
    pub homepage: String,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether it is loaded from a development folder.
    pub dev_mode: bool,
    /// `None`, `Manual`, `CircuitBreaker` after too many faults, or `Revoked`.
    #[schema(value_type = String, default = "")]
    pub disabled_reason: DisabledReason,
    /// The definitions of its settings.
    pub settings: Vec<SettingFieldDto>,
    /// The values of its settings, with defaults and without secrets.
    pub settings_values: BTreeMap<String, String>,
    /// Its permissions, derived from the imports of its code.
    pub permissions: Vec<String>,
    /// Optional hosts, with the user's choice for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub optional_hosts: Vec<OptionalHostDto>,
    /// Whether it supports logging in to its site.
    pub auth_supported: bool,
    /// Its identity, if it reads feeds: a subscription's `providerId`.
    pub subscription_provider_ids: Vec<String>,
    /// The definitions of the fields of a subscription's `providerConfig`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscription_fields: Vec<SettingFieldDto>,
    /// `Loaded`; `Loading`, after which it is `Loaded` or `Failed`; `PendingConsent`; or `Revoked`.
    pub load_status: String,
    /// Why loading failed.
    pub load_error: String,
    /// SHA-256 of the active code in hexadecimal; empty if none is active.
    pub code_digest: String,
    /// Why the current content of the development folder could not be loaded. The previous version stays active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_error: Option<DevErrorDto>,
    /// A version that waits for consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingVersionDto>,
    /// Its roles: `resolver`, `preview`, …
    pub capabilities: Vec<String>,
    /// Its origin: `file`, `development`, `bundled`, or the id of a market source.
    pub source: String,
    /// The fingerprint of the author's signing key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Whether automatic updates are off for this plugin.
    pub pinned: bool,
    /// The previous version, if a rollback is possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<String>,
    /// The revocation of the active version, if its market source revoked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<RevocationDto>,
    /// How its calls went since the service started.
    pub health: PluginHealthDto,
}

/// How the calls of a plugin went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PluginHealthDto {
    /// `ok`; `degraded`: it failed several times by its own fault, and calls pause; or `siteBroken`: several pages of its
    /// site could not be read, so the site seems to have changed.
    pub state: String,
    /// Since when, in Unix milliseconds; 0: always.
    pub since_ms: i64,
    /// What to do about it, as text for users; empty if it is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
}

/// An optional host of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionalHostDto {
    /// The host: `https://name` or `https://*.name`.
    pub host: String,
    /// `always` or `never`; empty before the user has chosen, with the effect of `never`.
    pub choice: String,
}

/// Params of `daemon.plugin.chooseHost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoosePluginHostParams {
    /// `name@author`.
    pub identity: String,
    /// The host, as in the manifest.
    pub host: String,
    /// `once`, `always` or `never`.
    pub choice: String,
}

/// The user's choice about an optional host of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChoosePluginHostRequest {
    /// The host, as in the manifest.
    pub host: String,
    /// `once` (for its next call), `always` or `never`.
    pub choice: String,
}

/// Params of `daemon.plugin.installFile`: a ZIP on the service's own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPluginFileParams {
    /// The absolute path of the file.
    pub path: String,
}

/// The journal of a plugin since the start of the service, oldest entries first. Its length is limited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginJournalDto {
    /// Events and calls.
    pub events: Vec<PluginEventDto>,
    /// Log lines.
    pub lines: Vec<PluginLineDto>,
    /// Requests that it sent.
    pub requests: Vec<PluginRequestDto>,
}

/// An event in the journal of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginEventDto {
    /// The time in Unix milliseconds.
    pub at_ms: i64,
    /// `installed`, `loaded`, `called`, `denied`, …
    pub event: String,
    /// Details, as text for users.
    pub detail: String,
    /// The cost of a call; `null` for other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PluginCallDto>,
}

/// The cost of a call of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCallDto {
    /// The number of the call in log lines and requests.
    pub id: u64,
    /// `resolve`, `more`, `linkFor` or `preview`.
    pub action: String,
    /// `ok`, or the code of its failure.
    pub code: String,
    /// Time to create the instance.
    pub instantiate_micros: u64,
    /// Processor time.
    pub cpu_ms: u64,
    /// Total time.
    pub wall_ms: u64,
    /// Requests that it sent.
    pub requests: u32,
    /// Bytes received.
    pub received_bytes: u64,
    /// Peak memory.
    pub peak_memory_bytes: u64,
    /// Log lines that were dropped because there were too many.
    pub lost_lines: u32,
}

/// A log line of a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginLineDto {
    /// The time in Unix milliseconds.
    pub at_ms: i64,
    /// The number of the call.
    pub call: u64,
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The message, with control characters escaped.
    pub text: String,
}

/// A request that a plugin sent, without query, headers and body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginRequestDto {
    /// The time of the response in Unix milliseconds.
    pub at_ms: i64,
    /// The number of the call.
    pub call: u64,
    /// The method.
    pub method: String,
    /// The URL's scheme, host and path.
    pub address: String,
    /// The status of the response; `null` without one.
    pub status: Option<u16>,
    /// Bytes of the response.
    pub received_bytes: u64,
    /// Duration of the request.
    pub elapsed_ms: u64,
}

/// Why a development folder could not be loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DevErrorDto {
    /// The step that failed.
    pub step: String,
    /// The reason, as text for users.
    pub message: String,
}

/// A version that waits for consent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingVersionDto {
    /// The version.
    pub version: String,
    /// The permissions that the user has not granted yet.
    pub added: Vec<String>,
    /// The fingerprint of the author's signing key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Whether it may be by another author than the active version. With the consent, the new author gets all grants
    /// and secrets of the plugin.
    #[serde(default)]
    pub author_changed: bool,
    /// The development folder to load the plugin from. With the consent, any future content of the folder gets all
    /// grants and secrets of the plugin, and every permission that it will request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The digest of all of these; the consent must repeat it.
    pub digest: String,
}

/// The definition of a setting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingFieldDto {
    /// The key.
    pub key: String,
    /// The display name.
    pub title: String,
    /// The description.
    pub description: String,
    /// `string`, `number` or `boolean`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// `text`, `password`, `textarea`, `select`, `toggle`, `number` or `folder`.
    pub widget: String,
    /// The choices of a `select`.
    pub options: Vec<SettingOptionDto>,
    /// The default value.
    pub default: Option<String>,
    /// Whether a value is required.
    pub required: bool,
    /// The minimum of a number.
    pub min: Option<f64>,
    /// The maximum of a number.
    pub max: Option<f64>,
    /// The regular expression that a text must match.
    pub pattern: Option<String>,
    /// Not used; clients expect it.
    pub helper_script: Option<String>,
    /// Not used; clients expect it.
    pub helper_label: Option<String>,
}

/// A choice of a setting.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingOptionDto {
    /// The value.
    pub value: String,
    /// The display name.
    pub label: String,
}

/// The result of an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledPlugin {
    /// The plugin.
    pub identity: String,
    /// The version.
    #[serde(default)]
    pub version: String,
    /// Programs that it uses and that are not installed.
    pub missing_components: Vec<String>,
    /// The digest of the permissions that the user must agree to before this version becomes active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_consent: Option<String>,
    /// Its origin: `file`, `development`, `bundled`, or the id of a market source.
    #[serde(default)]
    pub source: String,
    /// The fingerprint of the author's signing key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
}

/// Params of `daemon.plugin.install`: a ZIP that was uploaded as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallPluginParams {
    /// The blob.
    pub blob_id: String,
}

/// A development folder on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallPluginDevRequest {
    /// The absolute path of the folder.
    pub dir_path: String,
}

/// Names a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginParams {
    /// `name@author`.
    pub identity: String,
}

/// Params of `daemon.plugin.uninstall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UninstallPluginParams {
    /// `name@author`.
    pub identity: String,
    /// Keep its accounts until it is installed again. Refused for a plugin that is not signed.
    #[serde(default)]
    pub keep_accounts: bool,
}

/// Params of `daemon.plugin.setEnabled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPluginEnabledParams {
    /// `name@author`.
    pub identity: String,
    /// Whether to enable it.
    pub enabled: bool,
    /// The digest of the permissions that the user agrees to; required if it requests any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
}

/// The body of a request to enable or disable a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetPluginEnabledRequest {
    /// Whether to enable it.
    pub enabled: bool,
    /// The digest of the permissions that the user agrees to; required if it requests any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
}

/// Params of `daemon.plugin.updateSettings`. All values are set, or none if one is invalid.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePluginSettingsParams {
    /// `name@author`.
    pub identity: String,
    /// The values by key; an empty one restores the default.
    pub entries: BTreeMap<String, String>,
}

impl std::fmt::Debug for UpdatePluginSettingsParams {
    /// A value may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpdatePluginSettingsParams")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// A request to list the files that a URL leads to. Nothing is stored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolvePreviewRequest {
    /// The URL.
    #[schema(required, example = "https://example.com/folder")]
    #[serde(deserialize_with = "thunder::deserialize")]
    pub url: String,
    /// The `Cookie` header.
    pub cookies: String,
    /// The `Referer` header.
    pub referrer: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Extra request headers.
    pub extra_headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for ResolvePreviewRequest {
    /// Almost every field may hold a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResolvePreviewRequest(***)")
    }
}

/// The files that a URL leads to. Without items and error no plugin lists it; `message` says how it is downloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolvePreviewResponse {
    /// The title of the list.
    pub name: String,
    /// The URL.
    pub source_url: String,
    /// The plugin that claims the URL; empty if none does.
    pub plugin: String,
    /// Why there is no list, as text for users.
    pub error: String,
    /// If there is no list and no error: how the URL would be downloaded, as text for users.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether the plugin failed because it may not reach one of `grantableHosts`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grantable: bool,
    /// Hosts that the plugin was denied and that the user can allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grantable_hosts: Vec<String>,
    /// The files.
    pub items: Vec<PreviewItemDto>,
    /// What the list leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutDto>,
    /// The sizes of the files that are selected, as far as they are known, in bytes.
    pub total_bytes: u64,
    /// How many of the selected files have no known size.
    pub unknown_sizes: u64,
}

/// A file of a preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewItemDto {
    /// The plugin's id for it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The directory, relative to the list.
    pub path: String,
    /// `file`, `folder`, `videoStream`, `audioStream`, `subtitle` or `image`; a folder is not downloaded.
    pub kind: String,
    /// Whether it is downloaded unless the user selects otherwise.
    pub selected: bool,
    /// The size in bytes; 0: unknown.
    pub size: u64,
    /// Whether the server of the file told the size when it was asked, because the plugin does not tell it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub size_from_server: bool,
    /// The expected checksum, as `algorithm=hex`; empty: unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// The available qualities and formats.
    pub variants: Vec<PreviewVariantDto>,
}

/// A quality or format of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewVariantDto {
    /// The plugin's id for it.
    pub id: String,
    /// The display name.
    pub label: String,
    /// The size in bytes; 0: unknown.
    pub size: u64,
    /// Whether the server of the file told the size when it was asked, because the plugin does not tell it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub size_from_server: bool,
    /// The expected checksum, as `algorithm=hex`; empty: unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}

/// An item of a preview that becomes a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupItemDto {
    /// `id@variant` of the preview's item; without a variant `id@`, or `id` if it contains no `@`.
    pub resolver_item: String,
    /// The file name.
    pub file_name: String,
    /// The directory, relative to the group's.
    pub rel_path: String,
    /// The size in bytes that the plugin tells; 0: unknown. A file of another size is refused, so a size with
    /// `sizeFromServer` is better left out: the file may have changed since.
    pub size: u64,
    /// The expected checksum: that of the preview's item or variant; empty: unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}
