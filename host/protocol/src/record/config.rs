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
