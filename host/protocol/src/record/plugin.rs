//! Plugins, and what they make of a URL.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RevocationDto, record::thunder};

/// Why a plugin is not called although it is installed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DisabledReason {
    /// It is called, or waits for consent.
    #[default]
    None,
    /// The user switched it off.
    Manual,
    /// It failed too often.
    CircuitBreaker,
    /// Its source says that it is malicious.
    Revoked,
}

/// A plugin as clients see it. No field can hold a credential.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the wire's")]
pub struct PluginDto {
    /// `name@author`.
    pub identity: String,
    /// Its name for people.
    pub name: String,
    /// Its version; empty if nothing of it could be read.
    pub version: String,
    /// What it does.
    pub description: String,
    /// Where more is to be read.
    pub homepage: String,
    /// Whether it is called.
    pub enabled: bool,
    /// Whether it runs from its author's folder.
    pub dev_mode: bool,
    /// `None`, `Manual`, `CircuitBreaker` after too many faults, or `Revoked`.
    #[schema(value_type = String, default = "")]
    pub disabled_reason: DisabledReason,
    /// What can be set.
    pub settings: Vec<SettingFieldDto>,
    /// What is set, defaults included, secrets excluded.
    pub settings_values: BTreeMap<String, String>,
    /// What its code can do, as its imports show.
    pub permissions: Vec<String>,
    /// Hosts that it can do without, and what the user chose about each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub optional_hosts: Vec<OptionalHostDto>,
    /// Whether one can log in through it.
    pub auth_supported: bool,
    /// Feeds that it can read.
    pub subscription_provider_ids: Vec<String>,
    /// `Loaded`; `Loading`, after which it is `Loaded` or `Failed`; `PendingConsent`; or `Revoked`.
    pub load_status: String,
    /// Why it is not loaded.
    pub load_error: String,
    /// SHA-256 of the code that runs, in hexadecimal; empty if none does.
    pub code_digest: String,
    /// Why the present state of its author's folder does not run; what ran before goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dev_error: Option<DevErrorDto>,
    /// A version that waits for consent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingVersionDto>,
    /// What it is for: `resolver`, `preview`, …
    pub capabilities: Vec<String>,
    /// `file`, `development`, `bundled`, or the market source it came from.
    pub source: String,
    /// The fingerprint of the key of the author who signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Whether it is only replaced when the user says so.
    pub pinned: bool,
    /// The version that can be gone back to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_version: Option<String>,
    /// That its market warns of the version that runs, or has stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<RevocationDto>,
}

/// A host that a plugin can do without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OptionalHostDto {
    /// Which: `https://name` or `https://*.name`.
    pub host: String,
    /// `always` or `never`; empty while nothing is chosen, which is as `never`.
    pub choice: String,
}

/// Params of `daemon.plugin.chooseHost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChoosePluginHostParams {
    /// `name@author`.
    pub identity: String,
    /// The host, as the plugin asks for it.
    pub host: String,
    /// `once`, `always` or `never`.
    pub choice: String,
}

/// Whether a plugin may reach a host that it can do without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChoosePluginHostRequest {
    /// The host, as the plugin asks for it.
    pub host: String,
    /// `once`, for its next call; `always`; or `never`.
    pub choice: String,
}

/// Params of `daemon.plugin.installFile`: a ZIP on the service's own machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstallPluginFileParams {
    /// The file; absolute.
    pub path: String,
}

/// What a plugin did since the service started, as far as it is kept; the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PluginJournalDto {
    /// What happened to it, its calls among that.
    pub events: Vec<PluginEventDto>,
    /// What it wrote.
    pub lines: Vec<PluginLineDto>,
    /// The requests that it sent.
    pub requests: Vec<PluginRequestDto>,
}

/// Something that happened to a plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginEventDto {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// `installed`, `loaded`, `called`, `denied`, …
    pub event: String,
    /// More of it, for people.
    pub detail: String,
    /// What a call took, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<PluginCallDto>,
}

/// What a call of a plugin took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginCallDto {
    /// Names the call in lines and requests.
    pub id: u64,
    /// `resolve`, `more`, `linkFor` or `preview`.
    pub action: String,
    /// `ok`, or the code of its failure.
    pub code: String,
    /// Until its instance was there.
    pub instantiate_micros: u64,
    /// How long it computed.
    pub cpu_ms: u64,
    /// From start to end.
    pub wall_ms: u64,
    /// Requests that it sent.
    pub requests: u32,
    /// Bytes that came in.
    pub received_bytes: u64,
    /// The most memory it had.
    pub peak_memory_bytes: u64,
    /// Lines that were too many to be kept.
    pub lost_lines: u32,
}

/// A line that a plugin wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginLineDto {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// In which call.
    pub call: u64,
    /// `trace`, `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// What, with control characters escaped.
    pub text: String,
}

/// A request that a plugin sent: neither query nor fields nor body are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginRequestDto {
    /// When the answer was there, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// In which call.
    pub call: u64,
    /// The method.
    pub method: String,
    /// Scheme, host and path.
    pub address: String,
    /// The status of the answer; none if there was no answer.
    pub status: Option<u16>,
    /// Bytes of the answer.
    pub received_bytes: u64,
    /// How long it took.
    pub elapsed_ms: u64,
}

/// Where loading an author's folder failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DevErrorDto {
    /// The step.
    pub step: String,
    /// What is wrong.
    pub message: String,
}

/// A version that waits for consent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingVersionDto {
    /// Which one.
    pub version: String,
    /// What it could do that is not allowed yet.
    pub added: Vec<String>,
    /// The fingerprint of the key of the author who signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<String>,
    /// Whether it may be another author's than the version that runs. Who agrees gives this author what was given to that
    /// one, secrets among it.
    #[serde(default)]
    pub author_changed: bool,
    /// The author's folder that the plugin is to run from, whatever will be in it. Who agrees gives it what was given to the
    /// plugin until now, secrets among it, and all that it will ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Names all of that, for the consent.
    pub digest: String,
}

/// A value that can be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingFieldDto {
    /// Its key.
    pub key: String,
    /// Its name for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// `string`, `number` or `boolean`.
    #[serde(rename = "type")]
    pub value_type: String,
    /// `text`, `password`, `textarea`, `select`, `toggle`, `number` or `folder`.
    pub widget: String,
    /// The values to choose from.
    pub options: Vec<SettingOptionDto>,
    /// The value while none is set.
    pub default: Option<String>,
    /// Whether it needs a value.
    pub required: bool,
    /// The least number.
    pub min: Option<f64>,
    /// The largest number.
    pub max: Option<f64>,
    /// What a text must match.
    pub pattern: Option<String>,
    /// Not used; clients expect it.
    pub helper_script: Option<String>,
    /// Not used; clients expect it.
    pub helper_label: Option<String>,
}

/// A value to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingOptionDto {
    /// The value.
    pub value: String,
    /// Its name for people.
    pub label: String,
}

/// What an installation did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstalledPlugin {
    /// Which plugin it is.
    pub identity: String,
    /// Which version.
    #[serde(default)]
    pub version: String,
    /// Programs that it would use and that are not there.
    pub missing_components: Vec<String>,
    /// Names what the user has to agree to before this version runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_consent: Option<String>,
    /// Where it came from: `file`, `development`, `bundled`, or a market source.
    #[serde(default)]
    pub source: String,
    /// The fingerprint of the key of the author who signed it.
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

/// A plugin's folder on this machine, to be used in place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallPluginDevRequest {
    /// The folder; absolute.
    pub dir_path: String,
}

/// Names a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginParams {
    /// `name@author`.
    pub identity: String,
}

/// Params of `daemon.plugin.setEnabled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetPluginEnabledParams {
    /// `name@author`.
    pub identity: String,
    /// Whether it is called from now on.
    pub enabled: bool,
    /// The digest of the permissions that the user was shown and agrees to, if any are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
}

/// Whether a plugin is called from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetPluginEnabledRequest {
    /// Whether.
    pub enabled: bool,
    /// The digest of the permissions that the user was shown and agrees to, if any are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<String>,
}

/// Params of `daemon.plugin.updateSettings`: all are set or none.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdatePluginSettingsParams {
    /// `name@author`.
    pub identity: String,
    /// The values by key; an empty one goes back to the default.
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

/// What is behind a URL? Nothing is stored.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolvePreviewRequest {
    /// The URL.
    #[schema(required, example = "https://example.com/folder")]
    #[serde(deserialize_with = "thunder::deserialize")]
    pub url: String,
    /// A `Cookie` value.
    pub cookies: String,
    /// The `Referer`.
    pub referrer: String,
    /// The `User-Agent`.
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

/// What is behind a URL. Neither items nor an error: no plugin has a list of it, and `message` says what becomes of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResolvePreviewResponse {
    /// What it is as a whole.
    pub name: String,
    /// The URL.
    pub source_url: String,
    /// The plugin whose URL it is; empty if no plugin claims it.
    pub plugin: String,
    /// Why there is no list, for people.
    pub error: String,
    /// What becomes of the URL without a list, for people: a plugin's file, or a plain file because no plugin claims it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether there might be one if the user allowed the plugin another host: one of `grantableHosts`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub grantable: bool,
    /// The hosts that the plugin was refused and that the user could allow.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grantable_hosts: Vec<String>,
    /// The files.
    pub items: Vec<PreviewItemDto>,
}

/// A file behind a URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewItemDto {
    /// The plugin's name for it.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its directory within the list.
    pub path: String,
    /// Its size in bytes; 0 is unknown.
    pub size: u64,
    /// What it must hash to, as `algo=hex`; empty is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// Qualities and formats.
    pub variants: Vec<PreviewVariantDto>,
}

/// A quality or format of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewVariantDto {
    /// The plugin's name for it.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// Its size in bytes; 0 is unknown.
    pub size: u64,
    /// What it must hash to, as `algo=hex`; empty is unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}

/// An item of a preview that becomes a task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupItemDto {
    /// `id` or `id@variant` of the preview's item.
    pub resolver_item: String,
    /// The name of its file.
    pub file_name: String,
    /// Its directory below the group's.
    pub rel_path: String,
    /// Its size in bytes; 0 is unknown.
    pub size: u64,
    /// What its file must hash to: the `checksum` of the preview's item or variant; empty is unknown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}
