//! Paired devices: what their owner manages them with, and the messages of pairing.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

/// An acknowledgement of the device link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkOkResponse {
    /// Always true.
    pub ok: bool,
}

impl LinkOkResponse {
    /// The only value.
    pub const OK: Self = Self { ok: true };
}

/// A pairing code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkCodeResponse {
    /// Six digits, for one pairing.
    pub code: String,
    /// How long it can be used.
    pub ttl_seconds: u64,
}

impl fmt::Debug for LinkCodeResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkCodeResponse(***)")
    }
}

/// Result of `agent.link.pairingCode`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairingCode {
    /// Six digits, for one pairing.
    pub code: String,
    /// Until when it can be used.
    pub expires_at_unix_ms: i64,
    /// Where this device can be reached, as `address:port`; empty if only this machine can connect.
    pub addresses: Vec<String>,
    /// This device's fingerprint.
    pub fingerprint: String,
    /// This device's name.
    pub device_name: String,
}

impl fmt::Debug for LinkPairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkPairingCode(***)")
    }
}

/// All paired devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkDevicesResponse {
    /// Without those that ended the pairing.
    pub devices: Vec<LinkDeviceInfo>,
}

/// A paired device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct LinkDeviceInfo {
    /// SHA-256 of its public key, 64 hexadecimal digits.
    pub fingerprint: String,
    /// The name that it gives itself.
    pub name: String,
    /// `linux`, `macos`, `windows`, `server`, or another word of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Whether it answered when it was last asked.
    pub online: bool,
    /// When it was paired, in Unix seconds.
    pub paired_at: i64,
    /// When it last answered or called, in Unix seconds.
    pub last_seen_at: i64,
    /// Its default download directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_save_dir: Option<String>,
    /// `posix` or `windows`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_style: Option<String>,
    /// Whether downloads that it sends are taken.
    pub accepts_tasks: bool,
    /// Whether URLs that it sends may lead to private addresses.
    pub allow_private: bool,
    /// How many downloads of it are taken within 24 hours.
    pub daily_tasks: u32,
    /// How many were taken within the last 24 hours.
    pub tasks_today: u32,
    /// Downloads that wait for it.
    pub queued: u32,
}

/// Changes of a paired device; what is absent stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkDevicePatch {
    /// Take downloads that it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts_tasks: Option<bool>,
    /// Let URLs that it sends lead to private addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_private: Option<bool>,
    /// Take at most this many downloads of it within 24 hours, up to 4,096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_tasks: Option<u32>,
}

/// Params of `agent.link.update`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkUpdateParams {
    /// The device.
    pub fingerprint: String,
    /// Take downloads that it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts_tasks: Option<bool>,
    /// Let URLs that it sends lead to private addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_private: Option<bool>,
    /// Take at most this many downloads of it within 24 hours, up to 4,096.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub daily_tasks: Option<u32>,
}

/// A download for another device.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkDeviceTaskRequest {
    /// An `http`, `https`, `ftp`, `sftp` or `magnet` URL of at most 8,192 characters. If a plugin claims it, it is resolved
    /// there.
    #[schema(required)]
    pub url: String,
    /// A directory of that device; empty: its default one.
    pub save_dir: String,
    /// The file name; empty: the server's, else the URL's.
    pub file_name: String,
    /// Extra request headers. Sent only with `shareSecrets`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// The `Cookie` header. Sent only with `shareSecrets`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cookies: String,
    /// The expected checksum, as `algorithm=hex`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub checksum: String,
    /// The sender agrees that `headers` and `cookies`, which may hold logins, are handed to the other device.
    #[serde(skip_serializing_if = "is_false")]
    pub share_secrets: bool,
}

impl fmt::Debug for LinkDeviceTaskRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkDeviceTaskRequest(***)")
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Params of `agent.link.dispatch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkDispatchParams {
    /// The device.
    pub fingerprint: String,
    /// The download.
    #[serde(flatten)]
    pub task: LinkDeviceTaskRequest,
}

/// A download that waits until its device answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkQueued {
    /// Always true.
    pub queued: bool,
    /// Its id in the outbox.
    pub id: String,
}

/// Result of `agent.link.dispatch`: one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LinkDispatched {
    /// The other device has created the task.
    Created {
        /// Its id there.
        #[serde(rename = "taskId")]
        task_id: String,
    },
    /// It waits in the outbox.
    Queued(LinkQueued),
}

/// A download in the outbox. Its headers and cookies are not shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkOutboxEntry {
    /// Its id.
    pub id: String,
    /// The device that it is for.
    pub fingerprint: String,
    /// That device's name.
    pub device_name: String,
    /// The URL, without user name and password.
    pub url: String,
    /// The file name; empty: the server's.
    pub file_name: String,
    /// When it was added, in Unix seconds.
    pub created_at: i64,
    /// When it is given up, in Unix seconds.
    pub expires_at: i64,
    /// Attempts so far.
    pub attempts: u32,
    /// Why the last attempt failed; empty: there was none yet.
    pub last_error: String,
    /// Why the other device refused it; it is then not sent again. Empty: it waits.
    pub error: String,
}

/// The outbox, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkOutboxResponse {
    /// What waits, and what was refused.
    pub entries: Vec<LinkOutboxEntry>,
}

/// Where an address of a device is from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkPeerSource {
    /// It announces itself.
    #[default]
    Mdns,
    /// A user gave the address.
    Manual,
}

/// A device nearby that is not paired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkDiscoveredPeer {
    /// Its fingerprint, as it says itself: unproved until it is paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The name that it gives itself.
    pub name: String,
    /// Its platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// Its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// How it was found.
    pub source: LinkPeerSource,
}

/// The devices nearby that are not paired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkDiscoveredResponse {
    /// Since the search began.
    pub peers: Vec<LinkDiscoveredPeer>,
}

/// Begins or ends a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkDiscoveryRequest {
    /// `start` or `stop`.
    pub action: String,
}

/// Params of `agent.link.discovery.set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDiscoveryParams {
    /// Search, or stop searching.
    pub enabled: bool,
}

/// Params of `agent.link.probe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkAddressParams {
    /// `host`, `host:port`, or `http://host[:port]`.
    pub address: String,
}

/// An address to ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkProbeRequest {
    /// A name or an IP address.
    pub host: String,
    /// The port of its API.
    pub port: u16,
}

/// Begins a pairing from this side.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkPairBeginRequest {
    /// A name or an IP address.
    pub host: String,
    /// The port of its API.
    pub port: u16,
    /// The six digits that the other device shows.
    pub code: String,
}

impl fmt::Debug for LinkPairBeginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkPairBeginRequest(***)")
    }
}

/// Params of `agent.link.pairBegin`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkPairBeginParams {
    /// `host`, `host:port`, or `http://host[:port]`.
    pub address: String,
    /// The six digits that the other device shows.
    pub code: String,
}

impl fmt::Debug for LinkPairBeginParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkPairBeginParams(***)")
    }
}

/// A pairing that waits until this side's user has compared the digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairBeginResponse {
    /// For `finish`.
    pub token: String,
    /// Six digits, to be compared with those that the other device shows.
    pub sas: String,
    /// The other device's name.
    pub peer_name: String,
    /// The other device's fingerprint.
    pub peer_fingerprint: String,
}

/// Ends a pairing that began on this side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkPairFinishRequest {
    /// From `begin`.
    pub token: String,
    /// Whether both devices show the same digits.
    pub accept: bool,
}

/// The end of a pairing that began on this side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkPairFinishResponse {
    /// Whether both sides agreed.
    pub paired: bool,
    /// The device, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<LinkDeviceInfo>,
}

/// Answers a device that asks to be paired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairApproveRequest {
    /// From the request.
    pub session_id: String,
    /// Whether both devices show the same digits.
    pub accept: bool,
}

/// A device that asks to be paired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkPairingRequestDto {
    /// For the answer.
    pub session_id: String,
    /// Six digits, to be compared with those that the other device shows.
    pub sas: String,
    /// The other device's name.
    pub peer_name: String,
    /// The other device's platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_platform: Option<String>,
    /// The other device's fingerprint.
    pub peer_fingerprint: String,
    /// Until when it can be answered.
    pub expires_at_unix_ms: i64,
}

/// The devices that ask to be paired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkPairRequestsResponse {
    /// Oldest first.
    pub requests: Vec<LinkPairingRequestDto>,
}

/// Params of methods that name one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkDeviceParams {
    /// The device.
    pub fingerprint: String,
}

/// Params of `agent.link.outboxRemove`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkOutboxParams {
    /// Of the entry.
    pub id: String,
}

/// The first message of a pairing. Binary values are in padded base64.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairHelloRequest {
    /// 2.
    pub protocol_version: i64,
    /// Six digits.
    pub code: String,
    /// Ed25519 public key of the sender, 32 bytes.
    pub initiator_id_pub: String,
    /// SHA-256 over label, ephemeral key and nonce.
    pub initiator_commit: String,
    /// Signature over the message, 64 bytes.
    pub initiator_sig: String,
    /// Up to 64 bytes without control characters.
    pub name: String,
    /// Up to 32 bytes; may be empty.
    #[serde(default)]
    pub platform: String,
    /// Up to 32 bytes; may be empty.
    #[serde(default)]
    pub app_version: String,
    /// Up to four of `ip:port`.
    #[serde(default)]
    pub initiator_addrs: Vec<String>,
}

impl fmt::Debug for LinkPairHelloRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LinkPairHelloRequest(***)")
    }
}

/// The answer to the first message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairHelloResponse {
    /// 2.
    #[serde(default)]
    pub protocol_version: i64,
    /// For the next messages.
    pub session_id: String,
    /// X25519 public key, 32 bytes.
    pub responder_eph_pub: String,
    /// 32 bytes.
    pub responder_nonce: String,
    /// Ed25519 public key of this device, 32 bytes.
    pub responder_id_pub: String,
    /// This device's name.
    pub name: String,
    /// This device's platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// This device's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
}

/// The second message of a pairing: what the first one committed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairRevealRequest {
    /// From the answer to the first message.
    pub session_id: String,
    /// X25519 public key, 32 bytes.
    pub initiator_eph_pub: String,
    /// 32 bytes.
    pub initiator_nonce: String,
}

/// The answer to the second message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairRevealResponse {
    /// Signature over the transcript, 64 bytes.
    pub responder_sig: String,
}

/// The third message of a pairing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkPairConfirmRequest {
    /// From the answer to the first message.
    pub session_id: String,
    /// Whether the sender's user found the same digits on both devices.
    pub confirm: bool,
}

/// The answer to the third message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LinkPairConfirmResponse {
    /// Always true.
    pub success: bool,
    /// Whether both sides agreed.
    pub paired: bool,
    /// `rejected` or `timeout` if this side did not agree, else `null`.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Body of a 401 on the data plane. Not authenticated: a hint for people, and nothing to act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkUnauthorized {
    /// `notPaired`, `clockSkew` or `unauthorized`.
    pub reason: String,
    /// Unix seconds of the answering device.
    pub server_time: i64,
}

/// A stored value of the device link. Only agent and daemon exchange these.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// What it is.
    pub kind: String,
    /// Which one.
    pub key: String,
    /// The value; `None` removes the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// From when on it is not needed, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
}

impl fmt::Debug for LinkRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LinkRow({})", self.kind)
    }
}

/// Result of `daemon.link.load`, and params of `daemon.link.commit`: all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkRows {
    /// The rows.
    pub rows: Vec<LinkRow>,
    /// Rows that are not needed at this time are removed, in Unix seconds.
    pub now: i64,
}
