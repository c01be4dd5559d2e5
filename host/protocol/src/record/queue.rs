//! Queues.

use serde::{Deserialize, Serialize};

/// A queue as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueDto {
    /// Its id.
    pub queue_id: String,
    /// Its name.
    pub name: String,
    /// KiB per second received; 0 is no limit.
    pub speed_limit_kbps: u64,
    /// KiB per second sent; 0 is no limit.
    pub upload_limit_kbps: u64,
    /// Tasks at once; 0 is the global limit only.
    pub max_concurrent: u32,
    /// Where its tasks go; empty is the global directory.
    pub default_save_dir: String,
    /// Its place.
    pub position: u32,
    /// Segments of its tasks; 0 is the global number.
    pub default_segments: u16,
    /// User agent of its tasks; empty is the global one.
    pub default_user_agent: String,
    /// Whether it starts tasks.
    pub is_running: bool,
    /// Whether the schedule acts.
    pub schedule_enabled: bool,
    /// `HH:MM`; empty is never.
    pub schedule_start: String,
    /// `HH:MM`; empty is never.
    pub schedule_stop: String,
    /// Bit 0 is Monday; 127 is every day.
    pub schedule_days: u8,
}

/// Params of `daemon.queue.create`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueFields {
    /// Its name.
    pub name: String,
    /// KiB per second received; 0 is no limit.
    #[serde(default)]
    pub speed_limit_kbps: u64,
    /// KiB per second sent; 0 is no limit.
    #[serde(default)]
    pub upload_limit_kbps: u64,
    /// Tasks at once; 0 is the global limit only.
    #[serde(default)]
    pub max_concurrent: u32,
    /// Where its tasks go; empty is the global directory.
    #[serde(default)]
    pub default_save_dir: String,
    /// Segments of its tasks; 0 is the global number.
    #[serde(default)]
    pub default_segments: u16,
    /// User agent of its tasks; empty is the global one.
    #[serde(default)]
    pub default_user_agent: String,
}

/// Params of `daemon.queue.update`: all of [`QueueFields`]; what is missing takes its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateQueueParams {
    /// The queue.
    #[serde(alias = "id")]
    pub queue_id: String,
    /// Its name.
    pub name: String,
    /// KiB per second received; 0 is no limit.
    #[serde(default)]
    pub speed_limit_kbps: u64,
    /// KiB per second sent; 0 is no limit.
    #[serde(default)]
    pub upload_limit_kbps: u64,
    /// Tasks at once; 0 is the global limit only.
    #[serde(default)]
    pub max_concurrent: u32,
    /// Where its tasks go; empty is the global directory.
    #[serde(default)]
    pub default_save_dir: String,
    /// Segments of its tasks; 0 is the global number.
    #[serde(default)]
    pub default_segments: u16,
    /// User agent of its tasks; empty is the global one.
    #[serde(default)]
    pub default_user_agent: String,
}

impl UpdateQueueParams {
    /// Which queue, and what it becomes.
    pub fn split(self) -> (String, QueueFields) {
        let fields = QueueFields {
            name: self.name,
            speed_limit_kbps: self.speed_limit_kbps,
            upload_limit_kbps: self.upload_limit_kbps,
            max_concurrent: self.max_concurrent,
            default_save_dir: self.default_save_dir,
            default_segments: self.default_segments,
            default_user_agent: self.default_user_agent,
        };
        (self.queue_id, fields)
    }
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
    /// Whether the schedule acts.
    pub enabled: bool,
    /// `HH:MM`; empty is never.
    #[serde(default)]
    pub start_time: String,
    /// `HH:MM`; empty is never.
    #[serde(default)]
    pub stop_time: String,
    /// Bit 0 is Monday; 0 is every day.
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
    /// The queue; empty is the default one.
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
