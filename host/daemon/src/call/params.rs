//! Parsing of params that several methods share.

use engine::{FileFate, GroupId, TaskId};
use plugin_host::Identity;
use protocol::{ErrorCode, RpcError};

/// Text that is not an id is answered as an unknown task, not as an invalid field.
pub(super) fn task_id(text: &str) -> Result<TaskId, RpcError> {
    text.parse()
        .map_err(|_| RpcError::application(ErrorCode::NotFound, format!("task not found: {text}")).with_field("taskId"))
}

pub(super) fn fate(delete_files: bool) -> FileFate {
    if delete_files { FileFate::Delete } else { FileFate::Keep }
}

pub(super) fn identity(text: &str) -> Result<Identity, RpcError> {
    text.parse().map_err(|_| not_found(text))
}

pub(super) fn not_found(plugin: &str) -> RpcError {
    RpcError::application(ErrorCode::NotFound, format!("plugin not found: {plugin}")).with_field("identity")
}

pub(super) fn group_id(text: &str) -> Result<GroupId, RpcError> {
    text.parse().map_err(|_| {
        RpcError::application(ErrorCode::NotFound, format!("group not found: {text}")).with_field("groupId")
    })
}
