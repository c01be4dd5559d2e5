//! Sums, directories and diagnostics.

use serde::{Deserialize, Serialize};

/// Sums over the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeStats {
    /// Tasks that prepare or download.
    pub active_tasks: u64,
    /// Tasks that wait.
    pub pending_tasks: u64,
    /// Bytes per second received.
    pub total_download_bps: u64,
    /// Bytes per second sent.
    pub total_upload_bps: u64,
    /// Free bytes where new files go.
    pub disk_free_bytes: Option<u64>,
    /// Where new files go.
    pub save_dir: String,
}

/// Params of `daemon.fs.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FsListParams {
    /// The directory; empty is where new files go.
    pub path: String,
}

/// Result of `daemon.fs.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsListResult {
    /// The directory that was listed.
    pub path: String,
    /// The directory above; none at the root.
    pub parent: Option<String>,
    /// Its sub-directories, by name.
    pub entries: Vec<FsEntry>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}

/// A sub-directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsEntry {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// Result of `daemon.diagnostics.describe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsResult {
    /// Which service.
    pub service: String,
    /// Of which version.
    pub version: String,
    /// Names this start of it.
    pub instance_id: String,
    /// Seconds since it started.
    pub uptime_secs: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of queues.
    pub queues: u64,
    /// Number of groups.
    pub groups: u64,
    /// Revision of the configuration.
    pub config_revision: u64,
    /// Where logs are; empty if they go to standard error.
    pub log_dir: String,
    /// Connections open now.
    pub connections: u64,
    /// Calls of plugins since it started.
    #[serde(default)]
    pub plugin_calls: u64,
    /// How many of them gave nothing.
    #[serde(default)]
    pub plugin_faults: u64,
    /// How long they took together.
    #[serde(default)]
    pub plugin_call_ms: u64,
    /// Memory of its process; none where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// Helper programs.
    pub components: Vec<serde_json::Value>,
}

/// Result of `daemon.diagnostics.prepareLogExport`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExportResult {
    /// Fetch it with `GET /exports/{id}`, once.
    pub export_id: String,
}
