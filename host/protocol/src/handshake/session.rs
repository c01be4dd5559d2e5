//! The begin and end of a session: hello and shutdown.

use serde::{Deserialize, Serialize};

/// The one version of the protocol so far.
pub const PROTOCOL_VERSION: u32 = 1;

/// The role of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// The process that clients talk to.
    Agent,
    /// The process that owns the tasks.
    Daemon,
}

/// Params of `system.hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloParams {
    /// Who calls.
    pub client_name: String,
    /// Of which version.
    pub client_version: String,
    /// The oldest protocol it speaks.
    pub min_protocol_version: u32,
    /// The newest protocol it speaks.
    pub max_protocol_version: u32,
    /// Whom it wants to talk to.
    pub requested_role: Role,
    /// What it can do beyond the version: see [`crate::handshake::capability`].
    #[serde(default)]
    pub capabilities: Vec<String>,
}

/// Result of `system.hello`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HelloResult {
    /// Who answers.
    pub role: Role,
    /// Its name.
    pub service_name: String,
    /// Its version.
    pub service_version: String,
    /// The protocol of this connection.
    pub protocol_version: u32,
    /// Names this start of the service.
    pub instance_id: String,
    /// What it can do beyond the version.
    pub capabilities: Vec<String>,
}

/// `{ok: true}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OkResult {
    /// Always true: what failed is an error.
    pub ok: bool,
}

impl OkResult {
    /// The one value.
    pub const OK: Self = Self { ok: true };
}
