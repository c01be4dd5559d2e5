//! The daemon's configuration. Every value is a text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSnapshot {
    /// Increases with every change.
    pub revision: u64,
    /// The values by key. A saved password is shown as `***`.
    pub values: BTreeMap<String, String>,
}

/// Result of `daemon.config.schema`, `agent.gateway.schema` and `agent.preferences.schema`: every setting, in the order in
/// which people look for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSchema {
    /// The settings.
    pub settings: Vec<SettingDto>,
}

/// What a setting is, and what it may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SettingDto {
    /// The key, the member of `agent.gateway.patch`, or the name in `agent.preferences.patch`.
    pub key: String,
    /// The subject: `downloads`, `speed`, `torrents`, `seeding`, `network`, `plugins`, `after`, `webhooks`, `access` or
    /// `desktop`.
    pub group: String,
    /// What its text is.
    pub kind: SettingKind,
    /// The default, as the text that is set.
    pub default: String,
    /// The least of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The most of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// The texts of a choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// What a number counts: `bytesPerSecond`, `seconds`, `minutes`, `days` as bits; empty: things.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Whether it acts after the next start only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restart: bool,
    /// Whether it is shown as `***`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secret: bool,
    /// What it does, as text for users.
    pub meaning: String,
}

/// What the text of a setting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SettingKind {
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Number,
    /// A number with up to three decimals.
    Decimal,
    /// One of some texts.
    Choice,
    /// Any text of one line.
    Text,
    /// An absolute path of a directory on the service's machine, or empty.
    Directory,
    /// `off`, `auto` or the absolute path of a program.
    Program,
    /// The id of a queue.
    Queue,
    /// A time of the day as `HH:MM`, or empty.
    Time,
    /// URLs, one a line.
    Urls,
    /// JSON that other screens edit.
    Json,
}

/// Params of `daemon.config.patch`. All keys are changed, or none if one is invalid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigPatch {
    /// The revision that the change is based on.
    pub expected_revision: u64,
    /// The new values by key. A password of `***` is not changed.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// The keys that go back to their defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

/// Params of `daemon.config.proxyTest`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyTestParams {
    /// `http`, `https`, `socks4` or `socks5`.
    pub proxy_type: String,
    /// The host.
    pub host: String,
    /// The port, as text.
    pub port: String,
    /// The user name; empty: none.
    pub username: String,
    /// The password.
    pub password: String,
    /// What is requested through the proxy; empty is a page on the Internet that exists for tests.
    pub url: String,
}

/// Result of `daemon.config.proxyTest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyTestResult {
    /// Milliseconds until the response to the request that went through the proxy.
    pub latency_ms: u64,
}

/// Result of `daemon.config.connPolicy` and `clearConnPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnPolicyResult {
    /// Number of hosts whose limit of connections was learned.
    pub domain_count: u64,
}

/// Result of `daemon.config.systemProxy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemProxyResult {
    /// Whether the system has a proxy configured.
    pub detected: bool,
    /// `http`, `https`, `socks4` or `socks5`.
    pub proxy_type: String,
    /// The host.
    pub host: String,
    /// The port, as text.
    pub port: String,
    /// Hosts that are connected to directly.
    pub no_list: String,
}
