//! Methods that the agent answers itself: its switches, and its snapshot for clients.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    LinkDeviceInfo, LinkDiscoveredPeer, LinkPairingRequestDto, event::EventBody, record::capture::PendingCaptureDto,
    snapshot::DaemonSnapshot,
};

/// The name under which the agent says hello to its daemon.
pub const CLIENT_NAME: &str = "svc-agent";

/// The agent's switches as clients see them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "a list of switches")]
pub struct GatewayStatusDto {
    /// Anybody is served. Off: only the commands of the service's own user, over loopback.
    pub enabled: bool,
    /// Scripts may hand over downloads.
    pub takeover_enabled: bool,
    /// aria2 clients are served.
    pub jsonrpc_enabled: bool,
    /// The management API is served.
    pub api_enabled: bool,
    /// AI clients are served.
    pub mcp_enabled: bool,
    /// Any web page may call.
    pub cors_enabled: bool,
    /// Paired devices may call, and new ones may be paired.
    #[serde(default)]
    pub link_enabled: bool,
    /// Whether there is an access key.
    pub user_token_configured: bool,
    /// The port: on a desktop the stored one, on a server the one that it listens on.
    pub port: u16,
    /// Whether the port can be set here.
    pub port_editable: bool,
    /// Other devices may connect.
    pub lan_enabled: bool,
    /// Port or network settings take effect at the next start.
    #[serde(default)]
    pub restart_required: bool,
}

/// Params of `agent.gateway.patch`: all of it or nothing.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayPatch {
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takeover_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jsonrpc_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lan_enabled: Option<bool>,
    /// See [`GatewayStatusDto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_enabled: Option<bool>,
    /// 1024 to 65535.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// The access key; empty clears it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_token: Option<String>,
    /// Make a new access key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regenerate_user_token: Option<bool>,
}

impl std::fmt::Debug for GatewayPatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GatewayPatch(***)")
    }
}

/// Result of `agent.gateway.revealToken`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevealedToken {
    /// The access key.
    pub user_token: String,
}

impl std::fmt::Debug for RevealedToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RevealedToken(***)")
    }
}

/// Result of `agent.page.ticket`: put behind the page's address as `#open=`, the page exchanges it for a session with
/// `POST /api/web/session`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenTicket {
    /// Good once.
    pub ticket: String,
    /// How long it is good.
    pub expires_in_secs: u64,
}

impl std::fmt::Debug for OpenTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OpenTicket(***)")
    }
}

/// Params of `agent.preferences.patch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreferencesPatch {
    /// The preferences that change.
    pub values: BTreeMap<String, serde_json::Value>,
    /// Whether they are to be shared between devices.
    #[serde(default = "default_true")]
    pub sync: bool,
}

fn default_true() -> bool {
    true
}

/// Result of `agent.preferences.patch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreferencesPatched {
    /// Always true.
    pub ok: bool,
    /// Grows with every change.
    pub revision: u64,
}

/// The preferences of the user interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Preferences {
    /// Grows with every change.
    pub revision: u64,
    /// The preferences.
    pub values: BTreeMap<String, serde_json::Value>,
}

/// The agent's snapshot. Lists of parts that an agent does not have are empty.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSnapshot {
    /// The daemon's snapshot as far as the agent has it.
    pub daemon: DaemonSnapshot,
    /// Whether the daemon answers.
    pub daemon_connected: bool,
    /// The preferences.
    pub preferences: Preferences,
    /// The switches.
    pub gateway: GatewayStatusDto,
    /// Paired devices.
    pub linked_devices: Vec<LinkDeviceInfo>,
    /// Captured downloads that wait for the user's confirmation.
    pub pending_captures: Vec<PendingCaptureDto>,
    /// Devices that ask to be paired.
    pub link_pairing_requests: Vec<LinkPairingRequestDto>,
    /// Devices seen nearby.
    pub link_discovered: Vec<LinkDiscoveredPeer>,
}

/// An event of the agent, as it is written: what it holds may be borrowed, or JSON that is passed on as it is.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "camelCase")]
pub enum AgentEvent<'a> {
    /// An event of the daemon, as it is.
    Daemon(&'a EventBody),
    /// The daemon's state anew, after a reconnect: a [`DaemonSnapshot`].
    DaemonSnapshotReplaced(&'a RawValue),
    /// Whether the daemon answers.
    DaemonConnectionChanged(bool),
    /// The switches.
    GatewayChanged(&'a GatewayStatusDto),
    /// The preferences.
    PreferencesChanged(&'a Preferences),
    /// The captured downloads that wait for the user's confirmation.
    PendingCapturesChanged(&'a [PendingCaptureDto]),
    /// These tasks were made of a download that a browser handed over.
    CaptureTasksStarted(&'a [String]),
    /// The paired devices.
    LinkedDevicesChanged(&'a [LinkDeviceInfo]),
    /// The devices that ask to be paired, and those that this one asked.
    LinkPairingRequestsChanged(&'a [LinkPairingRequestDto]),
    /// The devices that announce themselves in this network.
    LinkDiscoveredChanged(&'a [LinkDiscoveredPeer]),
}
