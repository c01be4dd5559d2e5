//! The daemon's configuration. Every value is a text.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All keys and their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSnapshot {
    /// Grows with every change.
    pub revision: u64,
    /// The values. A stored password shows as `***`.
    pub values: BTreeMap<String, String>,
}

/// Params of `daemon.config.patch`: all of it or nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigPatch {
    /// The revision that the change is based on.
    pub expected_revision: u64,
    /// The keys that change. A password of `***` stays as it is.
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
    /// The user; empty is none.
    pub username: String,
    /// The password.
    pub password: String,
}

/// Result of `daemon.config.proxyTest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyTestResult {
    /// How long the proxy took.
    pub latency_ms: u64,
}

/// Result of `daemon.config.connPolicy` and `clearConnPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnPolicyResult {
    /// Hosts whose limit of connections was learned.
    pub domain_count: u64,
}

/// Result of `daemon.config.systemProxy`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SystemProxyResult {
    /// Whether the system names one.
    pub detected: bool,
    /// `http`, `https`, `socks4` or `socks5`.
    pub proxy_type: String,
    /// The host.
    pub host: String,
    /// The port, as text.
    pub port: String,
    /// Hosts to reach directly.
    pub no_list: String,
}
