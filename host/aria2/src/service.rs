//! The interface that the dialect needs from the service. Tasks stay the service's: the dialect holds references and
//! reads a record only to answer a query.

use std::{fmt::Debug, sync::Arc};

use futures_util::future::BoxFuture;
use protocol::{ConfigSnapshot, Method, RuntimeStats, TaskRuntimeDto, TaskStatus};
use serde_json::value::RawValue;

use crate::vocabulary::fault::{CommandError, Fault};

/// An immutable version of a task.
pub trait Task: Debug + Send + Sync {
    /// Its id, a UUID.
    fn id(&self) -> &str;

    /// Its queue's id.
    fn queue(&self) -> &str;

    /// The position in the queue; 0 orders by age.
    fn queue_order(&self) -> u32;

    /// Its state.
    fn status(&self) -> TaskStatus;

    /// What it does once it is complete: `seedingStatus` of its record.
    fn seeding_status(&self) -> u8;

    /// Whether it is a torrent.
    fn is_torrent(&self) -> bool;

    /// Its group's id; empty: it has none.
    fn group(&self) -> &str;

    /// The time of completion, else of creation, in Unix seconds.
    fn dated(&self) -> u64;

    /// Visits each member of its record (`protocol::TaskDto`): name and value as JSON text.
    fn members<'t>(&'t self, show: &mut dyn FnMut(&'t str, &'t str));
}

/// A change of the tasks.
#[derive(Debug)]
pub enum Change {
    /// A task was created or changed. `age` grows with the order of creation and does not change.
    Task {
        /// The sequence number in the order of creation.
        age: u64,
        /// The new version.
        task: Arc<dyn Task>,
    },
    /// A task was deleted.
    Deleted {
        /// The task's id.
        id: Arc<str>,
    },
    /// Progress of a run.
    Progress(Arc<TaskRuntimeDto>),
    /// All queue ids, in order.
    Queues(Vec<String>),
    /// Changes were lost; replaces the whole state.
    Everything(Snapshot),
}

/// All tasks at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// Tasks with their ages, as in [`Change::Task`].
    pub tasks: Vec<(u64, Arc<dyn Task>)>,
    /// Last progress of the active runs.
    pub progress: Vec<Arc<TaskRuntimeDto>>,
    /// All queue ids, in order.
    pub queues: Vec<String>,
    /// Whether earlier changes were dropped because they were not taken in time. Readers of notices then get a gap.
    pub is_gap: bool,
}

/// The changes of the tasks, for one reader.
pub trait Subscription: Debug + Send + Sync {
    /// Whether changes are pending. It becomes `true` before the command that caused a change is answered, so a client
    /// reads its own writes.
    fn is_behind(&self) -> bool;

    /// The changes since the last call, in order.
    fn take(&self) -> Vec<Change>;

    /// Resolves once changes are pending. Cancel-safe.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// The service behind the dialect.
pub trait Service: Debug + Send + Sync {
    /// Fails while the known state of the tasks may be stale.
    fn check(&self) -> Result<(), CommandError>;

    /// Resolves once the state of the tasks is known for the first time, or has not become known for too long after the
    /// start.
    fn started(&self) -> BoxFuture<'_, ()>;

    /// Executes a command. Its effect is in the subscription when this resolves.
    fn command<'s>(
        &'s self,
        method: Method,
        params: &'s RawValue,
    ) -> BoxFuture<'s, Result<Box<RawValue>, CommandError>>;

    /// Uploads a torrent file that is too large for a command; returns the id that `torrentBlobId` of a request names it
    /// by, once.
    fn keep_torrent(&self, file: Vec<u8>) -> BoxFuture<'_, Result<String, CommandError>>;

    /// Sums over the tasks, and the default directory.
    fn stats(&self) -> Result<RuntimeStats, CommandError>;

    /// The settings.
    fn config(&self) -> Result<ConfigSnapshot, CommandError>;
}

/// The rights of a call.
#[derive(Debug, Clone)]
pub enum Rights {
    /// No restriction.
    Full,
    /// Only downloads of this visitor: a browser without a key, identified by its origin.
    Visitor(Arc<str>),
}

/// Authenticates calls.
pub trait Client: Debug + Send + Sync {
    /// The current rights of a call with this token.
    fn rights(&self, token: Option<&str>) -> Result<Rights, Fault>;

    /// The visitor that notifications of this connection are restricted to; none means no restriction.
    fn restricted_to(&self) -> Option<&str>;
}

/// The memory reservation for the answer to one message.
pub trait Room: Send + Sync {
    /// Bytes allowed without a reservation, and the limit with one (authenticated senders only).
    fn bounds(&self) -> (usize, usize);

    /// Waits for a reservation of the limit; returns whether it succeeded.
    fn reserve(&mut self) -> BoxFuture<'_, bool>;
}

#[cfg(test)]
pub(crate) mod fake {
    //! Tasks, built from the JSON that the daemon would send.

    use serde_json::Value;

    use super::{Task, TaskStatus};

    #[derive(Debug)]
    pub(crate) struct FakeTask {
        id: String,
        queue: String,
        queue_order: u32,
        status: TaskStatus,
        seeding_status: u8,
        group: String,
        is_torrent: bool,
        dated: u64,
        members: Vec<(String, String)>,
    }

    pub(crate) fn task(record: &Value) -> FakeTask {
        let text = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| text(name).parse().unwrap_or(0);
        let members = record.as_object().unwrap().iter();
        FakeTask {
            id: text("taskId"),
            queue: text("queueId"),
            queue_order: record["queueOrder"].as_u64().unwrap_or(0).try_into().unwrap(),
            status: serde_json::from_value(record["status"].clone()).unwrap_or_default(),
            seeding_status: record["seedingStatus"].as_u64().unwrap_or(0).try_into().unwrap(),
            group: text("groupId"),
            is_torrent: !text("infoHash").is_empty(),
            dated: number("completedAt").max(number("createdAt")),
            members: members.map(|(name, value)| (name.clone(), value.to_string())).collect(),
        }
    }

    impl Task for FakeTask {
        fn id(&self) -> &str {
            &self.id
        }

        fn queue(&self) -> &str {
            &self.queue
        }

        fn queue_order(&self) -> u32 {
            self.queue_order
        }

        fn status(&self) -> TaskStatus {
            self.status
        }

        fn seeding_status(&self) -> u8 {
            self.seeding_status
        }

        fn is_torrent(&self) -> bool {
            self.is_torrent
        }

        fn group(&self) -> &str {
            &self.group
        }

        fn dated(&self) -> u64 {
            self.dated
        }

        fn members<'t>(&'t self, show: &mut dyn FnMut(&'t str, &'t str)) {
            self.members.iter().for_each(|(name, value)| show(name, value));
        }
    }
}
