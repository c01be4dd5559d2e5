//! Snapshots, as of one event.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    handshake::session::Role,
    record::config::ConfigSnapshot,
    record::group::GroupDto,
    record::queue::QueueDto,
    record::runtime::RuntimeStats,
    record::selection::SelectionDto,
    record::site::SiteAuthEntryDto,
    record::task::{TaskDto, TaskRuntimeDto},
    record::webhook::WebhookDeliveryDto,
};

/// Result of `system.snapshot`: an agent answers with an [`crate::agent::AgentSnapshot`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotResult<S = DaemonSnapshot> {
    /// In which epoch the sequence counts.
    pub epoch: String,
    /// The last event that the body holds.
    pub sequence: u64,
    /// Everything.
    pub body: SnapshotBody<S>,
}

/// Whose snapshot, and the snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SnapshotBody<S = DaemonSnapshot> {
    /// Whose.
    pub role: Role,
    /// The snapshot.
    pub snapshot: S,
}

/// The daemon's state. Lists of parts that a daemon does not have are empty.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSnapshot {
    /// How the live runs are doing, by task.
    pub task_runtime: BTreeMap<String, TaskRuntimeDto>,
    /// All tasks, oldest first.
    pub tasks: Vec<TaskDto>,
    /// All queues, in order.
    pub queues: Vec<QueueDto>,
    /// The place of every queue among the queues.
    pub queue_positions: BTreeMap<String, u32>,
    /// All groups, oldest first.
    pub groups: Vec<GroupDto>,
    /// The configuration.
    pub config: ConfigSnapshot,
    /// The sites that have credentials.
    pub site_auth: Vec<SiteAuthEntryDto>,
    /// Feeds.
    pub rss_sources: Vec<crate::record::rss::RssSourceDto>,
    /// Revisions of the feeds' items.
    pub rss_item_revisions: BTreeMap<String, u64>,
    /// Plugins.
    pub plugins: Vec<crate::record::plugin::PluginDto>,
    /// Components.
    pub components: Vec<serde_json::Value>,
    /// Deliveries of webhooks since the daemon's start, newest first.
    pub webhook_deliveries: Vec<WebhookDeliveryDto>,
    /// The task that runs alone, if one does.
    pub priority: Vec<String>,
    /// Sums over the tasks.
    pub runtime_stats: RuntimeStats,
    /// Questions that tasks ask their user.
    pub pending_selections: Vec<SelectionDto>,
}
