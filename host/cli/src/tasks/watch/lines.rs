//! One line per change, for logs and pipes.

use std::{
    collections::HashMap,
    io::{self, Write},
    time::Duration,
};

use command::terminal::printable;
use protocol::{DaemonEvent, EventBody, TaskDto, TaskStatus, agent::AgentSnapshot};

use super::{sink::Sink, view::View};
use crate::{
    service::{Observer, RemoteError},
    tasks::list::{figures, title},
};

/// The interval of progress lines.
const INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Lines<W: Write> {
    out: Sink<W>,
    view: View,
    /// The last written status of each task.
    last_written: HashMap<String, TaskStatus>,
}

impl<W: Write> Lines<W> {
    pub(crate) fn new(out: W, view: View) -> Self {
        Self {
            out: Sink::new(out),
            view,
            last_written: HashMap::new(),
        }
    }

    fn line(&mut self, line: &str) {
        self.out.line(printable(line).as_bytes());
    }

    /// Writes a line for each task whose status has changed.
    fn write_changes(&mut self) {
        let changed: Vec<_> = self
            .view
            .tasks
            .values()
            .filter(|task| self.last_written.get(&task.task_id) != Some(&task.status))
            .cloned()
            .collect();
        for task in changed {
            self.mention(&task);
        }
    }

    fn mention(&mut self, task: &TaskDto) {
        self.last_written.insert(task.task_id.clone(), task.status);
        let line = sentence(task, &self.view);
        self.line(&line);
    }
}

fn sentence(task: &TaskDto, view: &View) -> String {
    let [status, share, size, rate] = figures(task, view.runs.get(&task.task_id));
    let reason = match task.error_kind.as_str() {
        "" => String::new(),
        kind => format!("{} [{kind}]", task.error_message),
    };
    let size = if size.is_empty() { size } else { format!("of {size}") };
    let parts = [task.task_id.clone(), status, share, size, rate, title(task), reason];
    let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

impl<W: Write> Observer for Lines<W> {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn snapshot(&mut self, snapshot: &AgentSnapshot) {
        self.view.replace(&snapshot.daemon);
        let view = &self.view;
        self.last_written.retain(|id, _| view.tasks.contains_key(id));
        self.write_changes();
    }

    fn event(&mut self, _told: &EventBody, event: &DaemonEvent) {
        self.view.apply(event);
        match event {
            // Completed tasks are removed from the view, so this uses the event.
            DaemonEvent::TaskChanged(task) => {
                let is_new = self.last_written.get(&task.task_id) != Some(&task.status);
                if is_new && self.view.is_wanted(&task.task_id) {
                    self.mention(task);
                }
            }
            DaemonEvent::TasksSnapshot(changed) => {
                for task in changed.tasks.iter().filter(|task| task.status == TaskStatus::Completed) {
                    if self.last_written.get(&task.task_id) != Some(&task.status) && self.view.is_wanted(&task.task_id)
                    {
                        self.mention(task);
                    }
                }
                for id in changed
                    .deleted_task_ids
                    .iter()
                    .filter(|id| self.last_written.remove(*id).is_some())
                {
                    self.out.line(format!("{id} removed").as_bytes());
                }
                self.write_changes();
            }
            DaemonEvent::TaskDeleted { task_id } if self.last_written.remove(task_id).is_some() => {
                self.line(&format!("{task_id} removed"));
            }
            _ => {}
        }
    }

    fn look(&mut self) {
        let moving: Vec<_> = self
            .view
            .runs
            .keys()
            .filter_map(|id| self.view.tasks.get(id))
            .cloned()
            .collect();
        for task in moving {
            self.mention(&task);
        }
    }

    fn away(&mut self, why: &RemoteError, pause: Duration) {
        self.line(&format!("{why}; trying again in {}", command::amount::duration(pause)));
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn is_done(&self) -> bool {
        self.view.is_done()
    }
}
