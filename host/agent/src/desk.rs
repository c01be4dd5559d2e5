//! What a desktop shows of its agent, for the program that runs both: downloads that wait for confirmation, whether anything
//! is left to download, and the user's preferences about it.

use std::{collections::VecDeque, path::PathBuf, sync::Arc};

use protocol::{Method, OkResult, PendingCaptureDto, RpcError, TaskStatus, agent::PreferencesPatch, client::CallError};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::{
    access::session::{Purpose, Windows},
    clock::unix_ms,
    opener::OpenRequest,
    projection::{
        feed::Feed,
        hub::{Position, Taken},
        task_list::Task,
        tasks::Change,
    },
    settings::{
        preference::{AFTER_FINISH, CONFIRMATION, DO_NOT_DISTURB, KEEP_AWAKE, NOTIFY_FINISHED, TRAY},
        switches::Settings,
    },
    surface::{open, session, state::App, takeover},
};

/// A task that completed this many seconds ago is news, if it is seen for the first time. Later ones were completed while
/// the daemon was not connected.
const NEWS_SECS: u64 = 60;

/// Finished tasks of one view. Of more, the rest is only counted.
const MAX_FINISHED: usize = 16;

/// A task that has just completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTask {
    /// Its id.
    pub id: String,
    /// The name of its file.
    pub name: String,
}

/// What there is to show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a preference of its own")]
pub struct DeskView {
    /// Downloads that wait for confirmation, oldest first.
    pub captures: Vec<PendingCaptureDto>,
    /// All tasks; `None` until the daemon's state is known. A task that is done at once is seen only here.
    pub tasks: Option<usize>,
    /// Tasks that are not paused and neither completed nor failed.
    pub unfinished: u64,
    /// Those of them that transfer now.
    pub active: u64,
    /// Small windows that are connected and show the downloads that wait.
    pub open_windows: usize,
    /// All that have connected since the start.
    pub total_windows: u64,
    /// Downloads that wait are shown in such a window, not in notifications: `confirmation`, unless it is `notification`.
    pub confirms_in_window: bool,
    /// Tasks that have completed since the last view.
    pub finished: Vec<FinishedTask>,
    /// How many have completed beside those.
    pub more_finished: usize,
    /// Finished tasks are shown: `notify_finished`.
    pub notify_finished: bool,
    /// Nothing is shown unasked: `do_not_disturb`.
    pub do_not_disturb: bool,
    /// The computer stays awake while tasks transfer: `keep_awake`.
    pub keep_awake: bool,
    /// An icon is in the tray: `tray`.
    pub tray: bool,
    /// Download speed in bytes per second.
    pub download_bps: u64,
    /// What follows the last download: `after_finish`, usually `nothing`.
    pub after_finish: String,
}

/// An agent as its desktop sees it.
#[derive(Debug)]
pub struct Desk {
    app: App,
    applied: watch::Receiver<Position>,
    settings: watch::Receiver<Arc<Settings>>,
    captures: watch::Receiver<u64>,
    windows: watch::Receiver<Windows>,
    requests: mpsc::Receiver<OpenRequest>,
    feed: Arc<Feed>,
    news: News,
}

/// Which completed tasks are news. Events repeat a task, for example when it seeds.
#[derive(Debug)]
struct News {
    /// Unix seconds of the start: what completed before is no news.
    since: u64,
    /// Tasks of the last [`NEWS_SECS`] that were reported, with the time of their completion.
    reported: VecDeque<(u64, Arc<str>)>,
}

impl News {
    fn take(&mut self, task: &Task, now: u64) -> bool {
        while self.reported.front().is_some_and(|(at, _)| at + NEWS_SECS < now) {
            self.reported.pop_front();
        }
        let is_news = task.status == TaskStatus::Completed
            && task.completed_at >= self.since
            && task.completed_at + NEWS_SECS >= now
            && !self.reported.iter().any(|(_, id)| *id == task.id);
        if is_news {
            self.reported.push_back((task.completed_at, Arc::clone(&task.id)));
        }
        is_news
    }
}

fn finished(task: &Task) -> FinishedTask {
    let mut name = String::new();
    task.packed.members(&mut |member, value| {
        if member == "fileName" {
            name = serde_json::from_str(value).unwrap_or_default();
        }
    });
    FinishedTask {
        id: task.id.to_string(),
        name,
    }
}

impl Desk {
    pub(crate) fn new(app: App) -> Self {
        Self {
            applied: app.daemon.hub.applied(),
            settings: app.gate.settings.follow(),
            captures: app.pending.changes(),
            windows: app.gate.sessions.confirmation_windows(),
            requests: app.opener.attach(),
            feed: app.daemon.hub.subscribe(),
            news: News {
                since: unix_ms() / 1000,
                reported: VecDeque::new(),
            },
            app,
        }
    }

    /// Resolves once the daemon's state is known.
    pub async fn connected(&self) {
        self.app.daemon.connected().await;
    }

    /// What follows the address of the page, so that a browser of this user needs no key: a ticket, good once and for a
    /// minute.
    pub fn page_ticket(&self) -> Result<String, protocol::proof::NoRandom> {
        let ticket = session::ticket(&self.app.gate, Purpose::Page)?.ticket;
        Ok(format!("#open={ticket}"))
    }

    /// The same for the small window with the downloads that wait.
    pub fn confirmation_ticket(&self) -> Result<String, protocol::proof::NoRandom> {
        let ticket = session::ticket(&self.app.gate, Purpose::Confirmation)?.ticket;
        Ok(format!("#open={ticket}/confirm"))
    }

    /// The next request to open a file. Cancel-safe.
    pub async fn open_requested(&mut self) -> OpenRequest {
        match self.requests.recv().await {
            Some(request) => request,
            // Another desktop attends to this agent.
            None => std::future::pending().await,
        }
    }

    /// The next request to open a file, or none once the view may be another one. Cancel-safe.
    pub async fn open_requested_or_changed(&mut self) -> Option<OpenRequest> {
        tokio::select! {
            Some(request) = self.requests.recv() => return Some(request),
            Ok(()) = self.applied.changed() => {}
            Ok(()) = self.settings.changed() => {}
            Ok(()) = self.captures.changed() => {}
            Ok(()) = self.windows.changed() => {}
            // The senders live as long as the agent, whose end drops this future.
            else => std::future::pending().await,
        }
        None
    }

    /// The file or directory of a finished task; it may have been removed since. A failure is shown to the user.
    pub fn finished_file(&self, id: &str) -> Result<PathBuf, String> {
        let hub = self.app.daemon.current().map_err(RpcError::from);
        hub.and_then(|hub| open::finished_file(hub, id))
            .map_err(|error| error.message)
    }

    /// Tasks that have completed since the last call: some of them, and how many there are beside those.
    fn newly_finished(&mut self) -> (Vec<FinishedTask>, usize) {
        let (now, mut tasks, mut more) = (unix_ms() / 1000, Vec::new(), 0);
        let mut add = |task: &Task| match (self.news.take(task, now), tasks.len()) {
            (false, _) => {}
            (true, 0..MAX_FINISHED) => tasks.push(finished(task)),
            (true, _) => more += 1,
        };
        match self.app.daemon.hub.take(&self.feed) {
            Taken::Changes(changes) => changes.iter().for_each(|change| {
                if let Change::Task(_, task) = change {
                    add(task);
                }
            }),
            Taken::Everything { tasks, .. } => tasks.iter().for_each(|(_, task)| add(task)),
        }
        (tasks, more)
    }

    /// What there is to show now. Finished tasks are in one view only.
    pub fn view(&mut self) -> DeskView {
        let (finished, more_finished) = self.newly_finished();
        let settings = self.app.gate.settings.current();
        let is_known = self.app.daemon.current().is_ok();
        let (tasks, unfinished, active, download_bps) = self.app.daemon.hub.with_tasks(|tasks| {
            let stats = tasks.stats();
            (
                tasks.len(),
                stats.active_tasks + stats.pending_tasks,
                stats.active_tasks,
                stats.total_download_bps,
            )
        });
        let windows = *self.windows.borrow();
        DeskView {
            captures: self.app.pending.list(),
            tasks: is_known.then_some(tasks),
            unfinished,
            active,
            open_windows: windows.open,
            total_windows: windows.total,
            confirms_in_window: settings.choice(&CONFIRMATION) != "notification",
            finished,
            more_finished,
            notify_finished: settings.prefers(&NOTIFY_FINISHED),
            do_not_disturb: settings.prefers(&DO_NOT_DISTURB),
            keep_awake: settings.prefers(&KEEP_AWAKE),
            tray: settings.prefers(&TRAY),
            download_bps,
            after_finish: settings.choice(&AFTER_FINISH),
        }
    }

    /// The user's decision about a download. A failure is shown to the user.
    pub async fn resolve(&self, id: &str, is_accepted: bool) -> Result<(), String> {
        let resolved = takeover::resolve(&self.app, id, is_accepted, None).await;
        resolved.map(drop).map_err(|error| error.message)
    }

    /// Pauses all tasks. A failure is shown to the user.
    pub async fn pause_all(&self) -> Result<(), String> {
        self.change_all(Method::TaskPauseAll).await
    }

    /// Resumes all tasks.
    pub async fn resume_all(&self) -> Result<(), String> {
        self.change_all(Method::TaskResumeAll).await
    }

    async fn change_all(&self, method: Method) -> Result<(), String> {
        let params = serde_json::Map::<String, Value>::new();
        let changed: Result<OkResult, CallError> = self.app.daemon.call(method, &params).await;
        changed.map(drop).map_err(|error| error.to_string())
    }

    /// Removes what was to follow the last download: it is asked for once.
    pub async fn clear_after_finish(&self) -> Result<(), String> {
        let patch = PreferencesPatch {
            values: std::iter::once((AFTER_FINISH.name.to_owned(), Value::Null)).collect(),
            sync: false,
        };
        let settings = &self.app.gate.settings;
        let changed = settings.change(move |now| Ok(now.preferring(patch)?)).await;
        changed.map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::tasks::Projection;

    #[test]
    fn a_task_is_news_once_and_only_if_it_completed_just_now() {
        let task = |id: &str, status: u8, completed_at: u64| {
            let json = serde_json::json!({"taskId": id, "status": status, "completedAt": completed_at.to_string(), "fileName": "n\n"});
            let snapshot = serde_json::json!({ "tasks": [json] }).to_string();
            let projection = Projection::read(&snapshot).unwrap();
            let (_, task) = projection.placed().next().unwrap();
            task
        };
        let mut news = News {
            since: 1000,
            reported: VecDeque::new(),
        };
        assert!(!news.take(&task("a", 3, 999), 1000), "of before");
        assert!(!news.take(&task("b", 1, 0), 1000), "not complete");
        assert!(news.take(&task("c", 3, 1000), 1000));
        assert!(!news.take(&task("c", 3, 1000), 1001), "again");
        assert!(!news.take(&task("d", 3, 1000), 1061), "long ago");
        assert!(news.reported.is_empty());
        assert_eq!(finished(&task("c", 3, 1)).name, "n\n");
    }
}
