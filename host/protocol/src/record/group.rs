//! Groups.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::{left_out::LeftOutDto, plugin::GroupItemDto, task::CreateTaskRequest, thunder};

/// A group as clients see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupDto {
    /// The group's id.
    pub group_id: String,
    /// The group's name.
    pub name: String,
    /// The URL that its tasks were created from.
    pub source_url: String,
    /// The directory of its tasks.
    pub save_dir: String,
    /// The time of creation in Unix seconds.
    pub created_at: String,
    /// What the list that it was made from leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutDto>,
}

/// Params of `daemon.group.create`: items of a preview become tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CreateGroupRequest {
    /// The URL of the preview.
    #[serde(deserialize_with = "thunder::deserialize")]
    pub source_url: String,
    /// The group's name.
    pub group_name: String,
    /// The directory in which the group's directory is made; it has the group's name, with a number if that is taken.
    pub save_dir: String,
    /// The queue of its tasks.
    pub queue_id: String,
    /// Segments of its tasks.
    pub segments: i64,
    /// The `Cookie` header.
    pub cookies: String,
    /// The `Referer` header.
    pub referrer: String,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The proxy.
    pub proxy_url: String,
    /// Extra request headers.
    pub extra_headers: BTreeMap<String, String>,
    /// Accept any TLS certificate.
    pub ignore_tls_errors: bool,
    /// Create the tasks paused.
    pub start_paused: bool,
    /// The selected items; at least one.
    #[schema(required)]
    pub items: Vec<GroupItemDto>,
    /// What the preview says that the list leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutDto>,
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
    /// The URL that its tasks were created from.
    #[serde(default)]
    pub source_url: String,
    /// The directory of tasks without a directory of their own.
    #[serde(default)]
    pub save_dir: String,
    /// The tasks; at least one.
    pub requests: Vec<CreateTaskRequest>,
}
