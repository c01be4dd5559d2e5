//! Events with sequence numbers, and the snapshots that they continue.

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::sync::broadcast;
use transfer::{Failure, Progress, SourceFailure};

use crate::{
    model::group::Group,
    model::id::{GroupId, TaskId},
    model::queue::Queue,
    model::settings::VersionedSettings,
    model::task::Task,
};

/// A change of the engine's state. Short lists are sent as a whole; of the tasks, only the changed ones.
#[derive(Debug, Clone)]
pub enum Event {
    /// These tasks are new or changed.
    TasksChanged(Arc<[Arc<Task>]>),
    /// These tasks were deleted.
    TasksDeleted(Arc<[TaskId]>),
    /// Progress of the runs; sampled, only while anything runs.
    Progress(Arc<[(TaskId, Progress)]>),
    /// A message of a run for the user.
    Notice {
        /// Whose run.
        task: TaskId,
        /// The text.
        message: Arc<str>,
    },
    /// One of several sources of a run failed.
    SourceFailed {
        /// Whose run.
        task: TaskId,
        /// Which, and why.
        source: Arc<SourceFailure>,
    },
    /// A run repeats a failed attempt after a wait; the task stays running.
    AttemptFailed {
        /// Whose run.
        task: TaskId,
        /// Why.
        failure: Arc<Failure>,
        /// How long it waits.
        wait: Duration,
    },
    /// A run moved nothing because the name was taken and the rule is to skip. The task ends as failed with
    /// [`transfer::FailureKind::Exists`]: only proved bytes make a completed task.
    Skipped {
        /// Whose run.
        task: TaskId,
        /// The file that is there.
        existing: Arc<PathBuf>,
    },
    /// All queues, in order.
    QueuesChanged(Arc<[Arc<Queue>]>),
    /// These groups are new.
    GroupsAdded(Arc<[Arc<Group>]>),
    /// These groups were deleted.
    GroupsDeleted(Arc<[GroupId]>),
    /// The settings.
    SettingsChanged(VersionedSettings),
    /// The sites that have credentials changed.
    SitesChanged,
    /// Which task runs alone now.
    BoostChanged(Option<TaskId>),
}

/// A consistent copy of the engine's state.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The sequence number of the last event that this holds.
    pub sequence: u64,
    /// All tasks, oldest first.
    pub tasks: Vec<Arc<Task>>,
    /// All queues, in order.
    pub queues: Vec<Arc<Queue>>,
    /// All groups, oldest first.
    pub groups: Vec<Arc<Group>>,
    /// The settings.
    pub settings: VersionedSettings,
    /// Which task runs alone.
    pub boost: Option<TaskId>,
}

/// A subscriber that is further behind gets a [`Gap`]. At two samples a second and a few changes beside them this is
/// many minutes.
pub(crate) const EVENT_BACKLOG: usize = 4096;

/// A subscription.
#[derive(Debug)]
pub struct Events(pub(crate) broadcast::Receiver<(u64, Event)>);

/// A subscriber was too slow: it lost this many events and must take a new snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} events were missed")]
pub struct Gap(pub u64);

impl Events {
    /// The next event and its sequence number; `None` when the engine has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<(u64, Event), Gap>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(Gap(missed))),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
