//! What the dialect needs of the service that it speaks for. The tasks themselves stay the service's: the dialect holds
//! references, and reads a record only to answer about it.

use std::{fmt::Debug, sync::Arc};

use futures_util::future::BoxFuture;
use protocol::{ConfigSnapshot, Method, RuntimeStats, TaskRuntimeDto, TaskStatus};
use serde_json::value::RawValue;

use crate::vocabulary::fault::{CommandError, Fault};

/// A task as it was when something happened to it.
pub trait Task: Debug + Send + Sync {
    /// Its id, a UUID.
    fn id(&self) -> &str;

    /// Its queue's id.
    fn queue(&self) -> &str;

    /// Its place in its queue; 0 is by age.
    fn queue_order(&self) -> u32;

    /// Its state.
    fn status(&self) -> TaskStatus;

    /// When it was completed, else made, in Unix seconds.
    fn dated(&self) -> u64;

    /// Shows each member of its record (`protocol::TaskDto`): the name, and the value as JSON text.
    fn members<'t>(&'t self, show: &mut dyn FnMut(&'t str, &'t str));
}

/// Something that happened to tasks.
#[derive(Debug)]
pub enum Change {
    /// A task is there, or is another now. Tasks that came earlier have a smaller `age`, for as long as they are there.
    Task {
        /// Its number in the order in which tasks came.
        age: u64,
        /// What it is now.
        task: Arc<dyn Task>,
    },
    /// A task was deleted.
    Deleted {
        /// Its id.
        id: Arc<str>,
    },
    /// How a run is doing.
    Progress(Arc<TaskRuntimeDto>),
    /// The ids of the queues, in order.
    Queues(Vec<String>),
    /// What is known of tasks is out of date; this is all of it.
    Everything(Snapshot),
}

/// All tasks, as of one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The tasks with their ages, as in [`Change::Task`].
    pub tasks: Vec<(u64, Arc<dyn Task>)>,
    /// How the live runs are doing.
    pub progress: Vec<Arc<TaskRuntimeDto>>,
    /// The ids of the queues, in order.
    pub queues: Vec<String>,
    /// Whether changes before it were dropped because they were not taken in time. Readers of notices must then learn that
    /// they missed some.
    pub is_gap: bool,
}

/// The changes of the tasks, for one reader.
pub trait Subscription: Debug + Send + Sync {
    /// Whether something has happened since the last [`take`](Self::take). It is `true` before the command that did it is
    /// answered, so who asks first reads its own writes.
    fn is_behind(&self) -> bool;

    /// What has happened since the last call, in order.
    fn take(&self) -> Vec<Change>;

    /// Resolves once it is behind. Cancel-safe.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// The service behind the dialect.
pub trait Service: Debug + Send + Sync {
    /// Fails while what is known of tasks may be out of date.
    fn check(&self) -> Result<(), CommandError>;

    /// Has the service do something. What it did is in the subscription when this resolves.
    fn command<'s>(
        &'s self,
        method: Method,
        params: &'s RawValue,
    ) -> BoxFuture<'s, Result<Box<RawValue>, CommandError>>;

    /// The sums over the tasks, and the directory of downloads that name none.
    fn stats(&self) -> Result<RuntimeStats, CommandError>;

    /// The settings.
    fn config(&self) -> Result<ConfigSnapshot, CommandError>;
}

/// What a call may do.
#[derive(Debug, Clone)]
pub enum Rights {
    /// Whatever its method does.
    Full,
    /// What the downloads of this visitor (a browser, by its origin) need.
    Visitor(Arc<str>),
}

/// A client, as the service authenticates it.
pub trait Client: Debug + Send + Sync {
    /// What a call with this token may do now.
    fn rights(&self, token: Option<&str>) -> Result<Rights, Fault>;

    /// The visitor whose downloads alone this connection is notified of; none is notified of all.
    fn restricted_to(&self) -> Option<&str>;
}

/// Memory for the answer to one message.
pub trait Room: Send + Sync {
    /// What an answer may have without asking, and what one has at most whose sender has authenticated, in bytes.
    fn bounds(&self) -> (usize, usize);

    /// Waits for room for the largest answer. Whether there is any.
    fn reserve(&mut self) -> BoxFuture<'_, bool>;
}

#[cfg(test)]
pub(crate) mod fake {
    //! Tasks from what the daemon would write of them.

    use serde_json::Value;

    use super::{Task, TaskStatus};

    #[derive(Debug)]
    pub(crate) struct FakeTask {
        id: String,
        queue: String,
        queue_order: u32,
        status: TaskStatus,
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

        fn dated(&self) -> u64 {
            self.dated
        }

        fn members<'t>(&'t self, show: &mut dyn FnMut(&'t str, &'t str)) {
            self.members.iter().for_each(|(name, value)| show(name, value));
        }
    }
}
