//! Sums, directories and diagnostics.

use serde::{Deserialize, Serialize};

/// Sums over the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeStats {
    /// Tasks in the states preparing and downloading.
    pub active_tasks: u64,
    /// Tasks in the state pending.
    pub pending_tasks: u64,
    /// Finished torrents that upload to others.
    pub seeding_tasks: u64,
    /// Download speed in bytes per second.
    pub total_download_bps: u64,
    /// Upload speed in bytes per second.
    pub total_upload_bps: u64,
    /// The limit of all downloads together that is in force, in bytes per second; 0: none.
    pub download_limit_bps: u64,
    /// The limit of all uploads together that is in force, in bytes per second; 0: none.
    pub upload_limit_bps: u64,
    /// Whether these are the limits of the turtle.
    pub turtle: bool,
    /// Free bytes in the default directory.
    pub disk_free_bytes: Option<u64>,
    /// The default directory.
    pub save_dir: String,
}

/// Params of `daemon.fs.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FsListParams {
    /// The directory; empty: the default directory.
    pub path: String,
}

/// Result of `daemon.fs.list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FsListResult {
    /// The directory that was listed.
    pub path: String,
    /// The parent directory; `null` at the root.
    pub parent: Option<String>,
    /// The subdirectories, sorted by name.
    pub entries: Vec<FsEntry>,
    /// Whether the list is incomplete because there are too many.
    pub truncated: bool,
}

/// A subdirectory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FsEntry {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
}

/// A program that the user may have installed and that the service can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Component {
    /// `ffmpeg`.
    Ffmpeg,
    /// `yt-dlp`.
    YtDlp,
}

/// Params of `daemon.component.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentParams {
    /// Which one.
    pub component: Component,
}

/// Result of `daemon.component.get`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentDto {
    /// Which one.
    pub component: Component,
    /// Whether the user allows it.
    pub enabled: bool,
    /// Whether it can be used: it is allowed, starts, and is recent enough.
    pub available: bool,
    /// Its version.
    pub version: Option<String>,
    /// Where it is from.
    pub source: ComponentSource,
    /// Its path.
    pub path: Option<String>,
    /// Why it cannot be used although it is allowed.
    pub problem: Option<String>,
    /// Whether it has a network and a table of processes of its own while it runs; `null` if it did not start.
    pub isolated: Option<bool>,
    /// Why it has none: the error of the system.
    pub isolation_problem: Option<String>,
}

/// Where a program is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentSource {
    /// The user gave its path.
    Manual,
    /// It is in `PATH`.
    System,
    /// There is none.
    None,
}

/// Result of `daemon.diagnostics.describe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticsResult {
    /// The name of the service.
    pub service: String,
    /// The version of the service.
    pub version: String,
    /// Identifies this start of the service.
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
    /// The directory of the log files; empty if logs go to standard error.
    pub log_dir: String,
    /// Open connections.
    pub connections: u64,
    /// Calls of plugins since the start.
    #[serde(default)]
    pub plugin_calls: u64,
    /// Calls of plugins that failed.
    #[serde(default)]
    pub plugin_faults: u64,
    /// Total duration of these calls.
    #[serde(default)]
    pub plugin_call_ms: u64,
    /// Resident memory of the process; `null` if the system does not report it.
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

/// The end of a log file, in an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogFile {
    /// The name of the file.
    pub name: String,
    /// Its last lines.
    pub text: String,
}

/// The answer to `daemon.vault.rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultRotated {
    /// How many values were sealed with the new key.
    pub values: usize,
}
