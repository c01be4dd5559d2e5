//! Queues.

use serde::{Deserialize, Serialize};

use crate::record::post::PostStep;

/// A queue as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueDto {
    /// Its id.
    pub queue_id: String,
    /// Its name.
    pub name: String,
    /// Download limit in KiB per second; 0: none.
    pub speed_limit_kbps: u64,
    /// Upload limit in KiB per second; 0: none.
    pub upload_limit_kbps: u64,
    /// Maximum number of running tasks; 0: only the global limit applies.
    pub max_concurrent: u32,
    /// Directory of its tasks; empty: the global one.
    pub default_save_dir: String,
    /// Its place.
    pub position: u32,
    /// Segments of its tasks; 0: as in the settings.
    pub default_segments: u16,
    /// `User-Agent` of its tasks; empty: as in the settings.
    pub default_user_agent: String,
    /// What follows its downloads; none: as in the setting `post_chain`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub post_chain: Vec<PostStep>,
    /// Whether the queue is running: a stopped queue starts no tasks.
    pub is_running: bool,
    /// Whether the schedule is enabled.
    pub schedule_enabled: bool,
    /// Local time as `HH:MM`; empty: never.
    pub schedule_start: String,
    /// Local time as `HH:MM`; empty: never.
    pub schedule_stop: String,
    /// Days as bits, bit 0 for Monday; 127: every day.
    pub schedule_days: u8,
}

/// Params of `daemon.queue.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueFields {
    /// Its name.
    pub name: String,
    /// Download limit in KiB per second; 0: none.
    #[serde(default)]
    pub speed_limit_kbps: u64,
    /// Upload limit in KiB per second; 0: none.
    #[serde(default)]
    pub upload_limit_kbps: u64,
    /// Maximum number of running tasks; 0: only the global limit applies.
    #[serde(default)]
    pub max_concurrent: u32,
    /// Directory of its tasks; empty: the global one.
    #[serde(default)]
    pub default_save_dir: String,
    /// Segments of its tasks; 0: as in the settings.
    #[serde(default)]
    pub default_segments: u16,
    /// `User-Agent` of its tasks; empty: as in the settings.
    #[serde(default)]
    pub default_user_agent: String,
    /// What follows its downloads; none: as in the setting `post_chain`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_chain: Vec<PostStep>,
}

/// Params of `daemon.queue.update`. The daemon reads its two halves, so that an error names the field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateQueueParams {
    /// The queue.
    pub queue_id: String,
    /// All of them; what is missing takes its default.
    #[serde(flatten)]
    pub fields: QueueFields,
}

/// Names a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueIdParams {
    /// The queue.
    #[serde(rename = "queueId", alias = "id")]
    pub queue_id: String,
}

/// Params of `daemon.queue.schedule`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleParams {
    /// The queue.
    #[serde(alias = "id")]
    pub queue_id: String,
    /// Whether the schedule is enabled.
    pub enabled: bool,
    /// Local time as `HH:MM`; empty: never.
    #[serde(default)]
    pub start_time: String,
    /// Local time as `HH:MM`; empty: never.
    #[serde(default)]
    pub stop_time: String,
    /// Days as bits, bit 0 for Monday; 0: every day.
    #[serde(default)]
    pub days: u8,
}

/// Params of `daemon.queue.reorder`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReorderParams {
    /// The queue.
    #[serde(alias = "id")]
    pub queue_id: String,
    /// Its tasks in their new order.
    pub task_ids: Vec<String>,
}

/// Params of `daemon.queue.moveTask`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MoveTaskParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The queue; empty: the default queue.
    #[serde(default)]
    pub queue_id: String,
}

/// Params of `daemon.queue.boost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoostParams {
    /// The task.
    #[serde(rename = "id", alias = "taskId")]
    pub id: String,
}
