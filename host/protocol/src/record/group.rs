//! Groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{record::plugin::GroupItemDto, record::task::CreateTaskRequest, record::thunder};

/// A group as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupDto {
    /// Its id.
    pub group_id: String,
    /// Its name.
    pub name: String,
    /// Where its tasks came from.
    pub source_url: String,
    /// Where its tasks go.
    pub save_dir: String,
    /// When it was made: Unix seconds.
    pub created_at: String,
}

/// Params of `daemon.group.create`: items of a preview become tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateGroupRequest {
    /// What the preview was made of.
    #[serde(deserialize_with = "thunder::deserialize")]
    pub source_url: String,
    /// The group's name.
    pub group_name: String,
    /// Where its tasks go.
    pub save_dir: String,
    /// The queue of its tasks.
    pub queue_id: String,
    /// Segments of its tasks.
    pub segments: i64,
    /// A `Cookie` value.
    pub cookies: String,
    /// The `Referer`.
    pub referrer: String,
    /// The `User-Agent`.
    pub user_agent: String,
    /// The proxy.
    pub proxy_url: String,
    /// Extra request headers.
    pub extra_headers: BTreeMap<String, String>,
    /// Accept any certificate.
    pub ignore_tls_errors: bool,
    /// Stored paused.
    pub start_paused: bool,
    /// The chosen items; not empty.
    #[schema(required)]
    pub items: Vec<GroupItemDto>,
}

/// Result of `daemon.group.create` and `daemon.group.createTasks`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateGroupResponse {
    /// The group.
    pub group_id: String,
    /// Its tasks, in the order of the requests.
    #[serde(default)]
    pub task_ids: Vec<String>,
}

/// Params of `daemon.group.createTasks`: a group of tasks whose sources are known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateGroupTasksParams {
    /// The group's name.
    pub group_name: String,
    /// Where its tasks came from.
    #[serde(default)]
    pub source_url: String,
    /// Where its tasks go that name no directory.
    #[serde(default)]
    pub save_dir: String,
    /// Its tasks; not empty.
    pub requests: Vec<CreateTaskRequest>,
}
