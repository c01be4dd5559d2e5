//! JSON lines of events, for scripts.

use std::{
    io::{self, Write},
    time::Duration,
};

use protocol::{DaemonEvent, EventBody, TaskDto, agent::AgentSnapshot};
use serde::Serialize;

use super::{sink::Sink, view::View};
use crate::service::{Observer, RemoteError};

/// Writes events as received, and changes of the connection.
#[derive(Debug)]
pub(crate) struct Events<W: Write> {
    out: Sink<W>,
    view: View,
}

/// Lines about the connection, which are not events of the service.
#[derive(Serialize)]
#[serde(
    tag = "type",
    content = "data",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Line<'a> {
    Snapshot { tasks: Vec<&'a TaskDto> },
    Away { message: String, retry_in_ms: u64 },
}

impl<W: Write> Events<W> {
    pub(crate) fn new(out: W, view: View) -> Self {
        Self {
            out: Sink::new(out),
            view,
        }
    }

    fn write(&mut self, line: &impl Serialize) {
        self.out
            .line(&serde_json::to_vec(line).expect("events and tasks are JSON"));
    }
}

/// The tasks that an event concerns.
fn tasks(event: &DaemonEvent) -> Vec<&str> {
    match event {
        DaemonEvent::TaskChanged(task) => vec![&task.task_id],
        DaemonEvent::TasksSnapshot(changed) => {
            let there = changed.tasks.iter().map(|task| task.task_id.as_str());
            there
                .chain(changed.deleted_task_ids.iter().map(String::as_str))
                .collect()
        }
        DaemonEvent::TaskDeleted { task_id } => vec![task_id],
        DaemonEvent::TaskRuntimeChanged(run) => vec![&run.task_id],
        DaemonEvent::TaskActivityAdded(entry) => vec![&entry.task_id],
        _ => Vec::new(),
    }
}

impl<W: Write> Observer for Events<W> {
    fn interval(&self) -> Option<Duration> {
        None
    }

    fn snapshot(&mut self, snapshot: &AgentSnapshot) {
        self.view.replace(&snapshot.daemon);
        let tasks = snapshot
            .daemon
            .tasks
            .iter()
            .filter(|task| self.view.is_wanted(&task.task_id))
            .collect();
        self.write(&Line::Snapshot { tasks });
    }

    fn event(&mut self, received: &EventBody, event: &DaemonEvent) {
        self.view.apply(event);
        // If tasks were selected, only their events are written.
        if self.view.is_wanted("") || tasks(event).into_iter().any(|id| self.view.is_wanted(id)) {
            self.write(received);
        }
    }

    fn away(&mut self, why: &RemoteError, pause: Duration) {
        let retry_in_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        let message = why.to_string();
        self.write(&Line::Away { message, retry_in_ms });
    }

    fn look(&mut self) {}

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn is_done(&self) -> bool {
        self.view.is_done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_a_selection_only_its_events_are_written_unchanged() {
        let mut events = Events::new(Vec::new(), View::new(vec!["a".into()]));
        events.snapshot(&AgentSnapshot::default());
        for text in [
            r#"{"type":"taskDeleted","data":{"taskId":"b"}}"#,
            r#"{"type":"taskDeleted","data":{"taskId":"a"}}"#,
            r#"{"type":"queuesChanged","data":[]}"#,
        ] {
            let received: EventBody = serde_json::from_str(text).unwrap();
            events.event(&received, &DaemonEvent::read(&received).unwrap());
        }
        events.flush().unwrap();
        let text = String::from_utf8(events.out.into_inner()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        let expected = [
            r#"{"type":"snapshot","data":{"tasks":[]}}"#,
            r#"{"type":"taskDeleted","data":{"taskId":"a"}}"#,
        ];
        assert_eq!(lines, expected);
    }
}
