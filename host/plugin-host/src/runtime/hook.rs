//! The events of hooks and their answers.

use engine::TaskId;
use serde::Serialize;
use svc_plugin_fixture::HookInput;

use crate::policy::grant::CallTarget;

/// A call of a hook.
#[derive(Debug, Clone)]
pub(crate) struct HookCall {
    pub(crate) task: TaskId,
    /// The task's URL, without the user's options for it.
    pub(crate) target: CallTarget,
    pub(crate) told: HookInput,
}

/// The answer of a hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookAnswer {
    /// After how long it wants another try of a task that failed.
    pub retry_after_ms: Option<u64>,
}
