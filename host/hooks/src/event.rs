//! The events that endpoints receive. Pure.

use protocol::TaskDto;
use serde::Serialize;

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "a kind is named after its name on the wire")]
pub enum EventKind {
    TaskCreated,
    TaskStarted,
    TaskMetaProbed,
    TaskCompleted,
    TaskFailed,
    TaskPaused,
    TaskCancelled,
    QueueDrained,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::TaskCreated,
        Self::TaskStarted,
        Self::TaskMetaProbed,
        Self::TaskCompleted,
        Self::TaskFailed,
        Self::TaskPaused,
        Self::TaskCancelled,
        Self::QueueDrained,
    ];

    /// The kinds that an endpoint receives if it names none.
    pub const USUAL: [Self; 2] = [Self::TaskCompleted, Self::TaskFailed];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::TaskCreated => "task.created",
            Self::TaskStarted => "task.started",
            Self::TaskMetaProbed => "task.metaProbed",
            Self::TaskCompleted => "task.completed",
            Self::TaskFailed => "task.failed",
            Self::TaskPaused => "task.paused",
            Self::TaskCancelled => "task.cancelled",
            Self::QueueDrained => "queue.drained",
        }
    }

    /// The kind of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The names of all kinds, for messages.
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// An event, with records that hold no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// What happened.
    pub kind: EventKind,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
    /// The task, for events of tasks.
    pub task: Option<Box<TaskDto>>,
    /// The queue, or the task's.
    pub queue: QueueName,
    /// The user tries webhooks; nothing happened.
    pub is_test: bool,
}

/// A queue as it stands in events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueName {
    /// Its id.
    pub queue_id: String,
    /// Its name; empty if only the id is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

impl Occurrence {
    /// An event of a task.
    pub fn of_task(kind: EventKind, at_ms: i64, task: TaskDto) -> Self {
        let queue = QueueName {
            queue_id: task.queue_id.clone(),
            name: String::new(),
        };
        Self {
            kind,
            at_ms,
            task: Some(Box::new(task)),
            queue,
            is_test: false,
        }
    }

    /// An example, for a user who tries webhooks.
    pub fn example(kind: EventKind, at_ms: i64) -> Self {
        let queue = QueueName {
            queue_id: "main".to_owned(),
            name: "main".to_owned(),
        };
        let is_failure = kind == EventKind::TaskFailed;
        let is_complete = kind == EventKind::TaskCompleted;
        let text = |is_set: bool, text: &str| if is_set { text.to_owned() } else { String::new() };
        let status = match kind {
            EventKind::TaskCreated => protocol::TaskStatus::Pending,
            EventKind::TaskStarted | EventKind::TaskMetaProbed => protocol::TaskStatus::Preparing,
            EventKind::TaskFailed => protocol::TaskStatus::Error,
            EventKind::TaskPaused | EventKind::TaskCancelled => protocol::TaskStatus::Paused,
            EventKind::TaskCompleted | EventKind::QueueDrained => protocol::TaskStatus::Completed,
        };
        let seconds = (at_ms / 1000).to_string();
        let task = TaskDto {
            task_id: "00000000-0000-4000-8000-000000000000".to_owned(),
            url: "https://example.com/example.iso".to_owned(),
            file_name: "example.iso".to_owned(),
            save_dir: "/downloads".to_owned(),
            status,
            downloaded_bytes: if is_complete { 1_048_576 } else { 0 },
            total_bytes: 1_048_576,
            error_message: text(is_failure, "this is a test"),
            error_kind: text(is_failure, "network"),
            created_at: seconds.clone(),
            completed_at: text(is_complete, &seconds),
            queue_id: queue.queue_id.clone(),
            ..TaskDto::default()
        };
        Self {
            kind,
            at_ms,
            task: (kind != EventKind::QueueDrained).then(|| Box::new(task)),
            queue,
            is_test: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_are_one_to_one() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::parse(kind.name()), Some(kind));
        }
        assert_eq!(EventKind::parse("task.nothing"), None);
    }
}
