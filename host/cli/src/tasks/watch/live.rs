//! A table that is redrawn on a terminal.

use std::{io, time::Duration};

use command::{
    amount,
    terminal::{self, fit, printable},
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use protocol::{DaemonEvent, EventBody, TaskDto, agent::AgentSnapshot};

use super::view::View;
use crate::{
    ids::{self, Known},
    service::{Observer, RemoteError},
    table,
    tasks::list::{figures, title},
};

/// The interval of redraws: smooth enough, at negligible cost.
const INTERVAL: Duration = Duration::from_millis(250);

/// Rows reserved for the last line of the table and the cursor's line.
const OTHER_ROWS: usize = 3;

#[derive(Debug)]
pub(crate) struct Live {
    view: View,
    block: ProgressBar,
    address: String,
    /// Why the connection is lost.
    away: Option<String>,
}

impl Live {
    pub(crate) fn new(view: View, address: String) -> Self {
        let block = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
        block.set_style(ProgressStyle::with_template("{msg}").expect("the template is a constant"));
        Self {
            view,
            block,
            address,
            away: None,
        }
    }

    /// The block for a terminal of `(columns, rows)`.
    fn text(&self, (columns, rows): (usize, usize)) -> String {
        let tasks = self.view.in_order();
        let shown_chars = Known::new("task", self.view.tasks.keys().cloned()).shown_chars();
        let room = rows.saturating_sub(OTHER_ROWS).max(1);
        let row = |task: &&TaskDto| {
            let [status, done, size, rate] = figures(task, self.view.runs.get(&task.task_id));
            let id = ids::shorten(&task.task_id, shown_chars).to_owned();
            [id, status, done, size, rate, printable(&title(task)).into_owned()]
        };
        let head = ["ID", "STATUS", ">DONE", ">SIZE", ">RATE", "NAME"];
        let mut lines = table::lines(head, tasks.iter().take(room).map(row));
        let rate = self.view.runs.values().map(|run| run.download_bps).sum();
        let hidden = match tasks.len().saturating_sub(room) {
            0 => String::new(),
            count => format!(" ({count} not shown)"),
        };
        lines.push(match &self.away {
            Some(why) => printable(why).into_owned(),
            None => format!(
                "unfinished: {}{hidden}, {} from {}",
                tasks.len(),
                amount::rate(rate),
                self.address
            ),
        });
        // Some terminals wrap after a line that fills the last column.
        let fitted: Vec<_> = lines.iter().map(|line| fit(line, columns.saturating_sub(1))).collect();
        fitted.join("\n")
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The last table stays visible.
        self.block.abandon();
    }
}

impl Observer for Live {
    fn interval(&self) -> Option<Duration> {
        Some(INTERVAL)
    }

    fn snapshot(&mut self, snapshot: &AgentSnapshot) {
        self.away = None;
        self.view.replace(&snapshot.daemon);
    }

    fn event(&mut self, _told: &EventBody, event: &DaemonEvent) {
        self.view.apply(event);
    }

    fn look(&mut self) {
        self.block.set_message(self.text(terminal::size()));
        self.block.tick();
    }

    fn away(&mut self, why: &RemoteError, pause: Duration) {
        self.away = Some(format!("{why}; trying again in {}", amount::duration(pause)));
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.view.is_done()
    }
}

#[cfg(test)]
mod tests {
    use protocol::DaemonSnapshot;

    use super::*;

    #[test]
    fn the_table_is_never_larger_than_the_terminal() {
        let task = |number: u32| TaskDto {
            task_id: format!("{number:08}-x"),
            file_name: "a-name-that-is-much-too-long-for-a-terminal".into(),
            ..TaskDto::default()
        };
        let tasks = (0..30).map(task).collect();
        let mut live = Live::new(View::new(Vec::new()), "http://a.test".into());
        live.snapshot(&AgentSnapshot {
            daemon: DaemonSnapshot {
                tasks,
                ..DaemonSnapshot::default()
            },
            ..AgentSnapshot::default()
        });
        let text = live.text((60, 10));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 9);
        assert!(lines.iter().all(|line| line.chars().count() == 59), "{text}");
        assert!(lines[1].starts_with("00000000  pending"), "{text}");
        assert!(lines[8].starts_with("unfinished: 30 (23 not shown), 0 B/s"), "{text}");
    }
}
