//! What a desktop shows of its agent, for the program that runs both: downloads that wait for confirmation, whether anything
//! is left to download, and the user's preferences about it.

use std::sync::Arc;

use protocol::{PendingCaptureDto, agent::PreferencesPatch};
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    access::session::{Purpose, Windows},
    projection::hub::Position,
    settings::switches::{self, Settings},
    surface::{session, state::App, takeover},
};

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
    /// Nothing is shown unasked: `do_not_disturb`.
    pub do_not_disturb: bool,
    /// The computer stays awake while tasks transfer: `keep_awake`, which is on unless it was switched off.
    pub keep_awake: bool,
    /// What follows the last download: `after_finish`, empty for nothing.
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
}

impl Desk {
    pub(crate) fn new(app: App) -> Self {
        Self {
            applied: app.daemon.hub.applied(),
            settings: app.gate.settings.follow(),
            captures: app.pending.changes(),
            windows: app.gate.sessions.confirmation_windows(),
            app,
        }
    }

    /// Resolves once the daemon's state is known.
    pub async fn connected(&self) {
        self.app.daemon.connected().await;
    }

    /// Resolves once the view may be another one. Cancel-safe.
    pub async fn changed(&mut self) {
        // The senders live as long as the agent, whose end drops this future.
        tokio::select! {
            Ok(()) = self.applied.changed() => {}
            Ok(()) = self.settings.changed() => {}
            Ok(()) = self.captures.changed() => {}
            Ok(()) = self.windows.changed() => {}
            else => std::future::pending().await,
        }
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

    /// What there is to show now.
    pub fn view(&self) -> DeskView {
        let settings = self.app.gate.settings.current();
        let preference = |name: &str| settings.preferences.values.get(name);
        let is_known = self.app.daemon.known().is_ok();
        let (tasks, unfinished, active) = self.app.daemon.hub.with_tasks(|tasks| {
            let stats = tasks.stats();
            (
                tasks.len(),
                stats.active_tasks + stats.pending_tasks,
                stats.active_tasks,
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
            confirms_in_window: preference("confirmation").and_then(Value::as_str) != Some("notification"),
            do_not_disturb: preference("do_not_disturb").and_then(switches::is_on) == Some(true),
            keep_awake: preference("keep_awake").and_then(switches::is_on) != Some(false),
            after_finish: preference("after_finish")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// The user's decision about a download. A failure is shown to the user.
    pub async fn resolve(&self, id: &str, is_accepted: bool) -> Result<(), String> {
        let resolved = takeover::resolve(&self.app, id, is_accepted, None).await;
        resolved.map(drop).map_err(|error| error.message)
    }

    /// Removes what was to follow the last download: it is asked for once.
    pub async fn clear_after_finish(&self) -> Result<(), String> {
        let patch = PreferencesPatch {
            values: std::iter::once(("after_finish".to_owned(), Value::Null)).collect(),
            sync: false,
        };
        let settings = &self.app.gate.settings;
        let changed = settings.change(move |now| Ok(now.preferring(patch)?)).await;
        changed.map(drop).map_err(|error| error.to_string())
    }
}
