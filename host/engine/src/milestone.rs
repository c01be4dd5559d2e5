//! Milestones of tasks, for subscribers that act on them, such as webhooks. They have a channel of their own: a
//! subscriber is woken only when a task reaches one, and not by every sample of progress.

use std::sync::Arc;

use tokio::sync::broadcast;

use crate::{
    event::Gap,
    model::{queue::Queue, task::Task},
};

/// A subscriber that is further behind loses the oldest and learns how many. Small, because every engine has the slots;
/// a call that changes thousands of tasks is more than any subscriber can act on.
const MILESTONE_BACKLOG: usize = 512;

/// What a task or queue has reached.
#[derive(Debug, Clone)]
pub enum Milestone {
    /// Of a task, as it is then.
    Task(TaskMilestone, Arc<Task>),
    /// The last task of this queue that waited, ran or was to be retried has ended. Paused tasks may be left in it.
    QueueDrained(Arc<Queue>),
}

/// What a task has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskMilestone {
    /// It was added.
    Created,
    /// A run of it began that is no automatic retry.
    Started,
    /// Name and size of its file are known.
    MetaProbed,
    /// Its file is complete.
    Completed,
    /// It failed and is not retried by itself.
    Failed,
    /// It is paused; its run has ended.
    Paused,
    /// It was deleted before it completed or failed.
    Cancelled,
}

/// Where the engine puts milestones. Never waits, so no task waits for a subscriber: without one milestones are dropped,
/// and one that is too slow loses the oldest.
#[derive(Debug, Clone)]
pub struct MilestoneSender(broadcast::Sender<Milestone>);

/// A subscription to milestones.
#[derive(Debug)]
pub struct Milestones(broadcast::Receiver<Milestone>);

impl Default for MilestoneSender {
    fn default() -> Self {
        Self(broadcast::channel(MILESTONE_BACKLOG).0)
    }
}

impl MilestoneSender {
    /// Subscribes to milestones from now on. Before the engine is started, nothing is missed.
    pub fn subscribe(&self) -> Milestones {
        Milestones(self.0.subscribe())
    }

    pub(crate) fn send(&self, milestone: Milestone) {
        let _nobody_listens = self.0.send(milestone);
    }
}

impl Milestones {
    /// The next milestone; [`Gap`] if some were lost. `None` once the engine and all copies of its sender are gone.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Milestone, Gap>> {
        match self.0.recv().await {
            Ok(milestone) => Some(Ok(milestone)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Err(Gap(missed))),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        id::QueueId,
        queue::{QueueSpec, Schedule},
    };

    #[tokio::test]
    async fn a_subscriber_that_is_too_slow_loses_the_oldest_and_learns_how_many() {
        let sender = MilestoneSender::default();
        let mut milestones = sender.subscribe();
        let queue = Arc::new(Queue {
            id: QueueId::Main,
            spec: QueueSpec::default(),
            position: 0,
            is_running: true,
            schedule: Schedule::default(),
            schedule_seen: None,
        });
        for _ in 0..MILESTONE_BACKLOG + 3 {
            sender.send(Milestone::QueueDrained(Arc::clone(&queue)));
        }
        assert_eq!(milestones.next().await.unwrap().unwrap_err(), Gap(3));
        for _ in 0..MILESTONE_BACKLOG {
            assert!(milestones.next().await.unwrap().is_ok());
        }
        drop(sender);
        assert!(milestones.next().await.is_none());
    }
}
