//! What a desktop's user sees of the service, and what their answers do. Pure: inputs in, effects out.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use agent::DeskView;
use command::{amount, terminal::printable};
use protocol::PendingCaptureDto;

#[cfg(feature = "tray")]
use super::tray::Choice;

/// More downloads than this share one notification.
const MAX_SINGLE: usize = 3;

/// How long the user may object before the computer is suspended or the service ends.
pub(super) const COUNTDOWN: Duration = Duration::from_mins(1);

/// Characters of a name in a notification.
const MAX_NAME_CHARS: usize = 120;

/// The names of buttons, as they come back.
const ACCEPT: &str = "accept";
const REJECT: &str = "reject";
const CANCEL: &str = "cancel";
/// A click on the notification itself.
const DEFAULT: &str = "default";
const OPEN: &str = "open";
const OPEN_FILE: &str = "open-file";
const REVEAL: &str = "reveal";

/// What a notification is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    /// A download that waits, by its id.
    Capture(String),
    /// Several of them.
    Captures,
    /// A download that has ended, by the id of its task.
    Finished(String),
    /// Several of them.
    AllFinished,
    Countdown,
    /// Something that failed.
    Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterFinish {
    Quit,
    Suspend,
}

impl AfterFinish {
    fn named(name: &str) -> Option<Self> {
        match name {
            "quit" => Some(Self::Quit),
            "suspend" => Some(Self::Suspend),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    View(DeskView),
    /// The user pressed a button.
    Pressed {
        topic: Topic,
        button: String,
    },
    /// A notification is gone, and was not answered.
    Closed(Topic),
    /// No program shows notifications.
    Unseen(Topic),
    CountdownOver,
    /// The user chose an entry of the tray's menu.
    #[cfg(feature = "tray")]
    Chosen(Choice),
    /// The window that [`Effect::OpenWindow`] asked for cannot be opened, or did not connect in time.
    WindowFailed,
    /// What the user wanted could not be done: a summary, and why.
    Failed(&'static str, String),
}

/// A notification's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) summary: String,
    pub(super) body: String,
    /// Name and label of each button.
    pub(super) buttons: Vec<(&'static str, &'static str)>,
    /// It stays until it is answered.
    pub(super) stays: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Shows or replaces the notification about the topic.
    Show(Topic, Notice),
    Withdraw(Topic),
    Resolve {
        id: String,
        is_accepted: bool,
    },
    /// Opens the file of a finished task, or shows it in its directory.
    OpenFile {
        task: String,
        is_revealed: bool,
    },
    /// Opens the page of the service.
    OpenPage,
    /// Opens the small window with the downloads that wait.
    OpenWindow,
    KeepAwake(bool),
    /// Shows the icon in the tray with this text, or removes it.
    Tray(Option<String>),
    #[cfg(feature = "tray")]
    PauseAll,
    #[cfg(feature = "tray")]
    ResumeAll,
    #[cfg(feature = "tray")]
    Quit,
    StartCountdown,
    StopCountdown,
    /// The preference is used up.
    ClearAfterFinish,
    Finish(AfterFinish),
}

/// The small window with the downloads that wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Window {
    #[default]
    Closed,
    /// The browser was started; the page in it has not connected yet. So many windows had connected before.
    Starting {
        total: u64,
    },
    Open,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a state of its own")]
pub(super) struct State {
    view: DeskView,
    /// What is shown, or was and is closed without an answer.
    shown: BTreeMap<Topic, Notice>,
    is_awake: bool,
    /// The text of the icon in the tray, if there is one.
    tray: Option<String>,
    /// Ids of finished tasks whose notifications may be visible.
    finished: BTreeSet<String>,
    /// The number of finished tasks in the notification about several.
    finished_together: usize,
    window: Window,
    /// Ids of the downloads that the user saw in a window, or closed it over.
    seen_in_window: BTreeSet<String>,
    /// No window could be opened for what waits; notifications are shown until nothing waits.
    has_window_failed: bool,
    /// The page was opened because there are no notifications; once until nothing waits.
    is_page_open: bool,
    /// Tasks were unfinished since the preference was set.
    has_worked: bool,
    countdown: Option<AfterFinish>,
}

impl State {
    pub(super) fn apply(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::View(view) => self.look(view, &mut effects),
            Input::Pressed { topic, button } => self.press(&topic, &button, &mut effects),
            Input::Closed(topic) | Input::Unseen(topic @ (Topic::Finished(_) | Topic::AllFinished)) => {
                self.forget_finished(&topic);
            }
            Input::Unseen(Topic::Capture(_) | Topic::Captures) if !self.is_page_open => {
                self.is_page_open = true;
                effects.push(Effect::OpenPage);
            }
            Input::Unseen(_) => {}
            Input::CountdownOver => {
                if let Some(action) = self.countdown.take() {
                    self.withdraw(Topic::Countdown, &mut effects);
                    effects.extend([Effect::ClearAfterFinish, Effect::Finish(action)]);
                }
            }
            #[cfg(feature = "tray")]
            Input::Chosen(choice) => effects.push(match choice {
                Choice::OpenPage => Effect::OpenPage,
                Choice::PauseAll => Effect::PauseAll,
                Choice::ResumeAll => Effect::ResumeAll,
                Choice::Quit => Effect::Quit,
            }),
            Input::WindowFailed => {
                if matches!(self.window, Window::Starting { .. }) {
                    self.window = Window::Closed;
                    self.has_window_failed = true;
                    self.show_captures(&mut effects);
                }
            }
            Input::Failed(summary, message) => {
                let notice = Notice {
                    summary: summary.to_owned(),
                    body: printable(&message).into_owned(),
                    buttons: vec![(OPEN, "Show")],
                    stays: false,
                };
                effects.push(Effect::Show(Topic::Problem, notice));
            }
        }
        effects
    }

    fn look(&mut self, view: DeskView, effects: &mut Vec<Effect>) {
        let is_new = |before: usize| view.tasks.is_some_and(|tasks| tasks > before);
        // A task that was done between two looks.
        let has_more = self.view.tasks.is_some_and(is_new);
        self.view = view;
        self.follow_window();
        self.show_captures(effects);
        self.show_finished(effects);
        self.show_tray(effects);
        let is_awake = self.view.keep_awake && self.view.active > 0;
        if is_awake != self.is_awake {
            self.is_awake = is_awake;
            effects.push(Effect::KeepAwake(is_awake));
        }
        self.follow_work(has_more, effects);
    }

    fn follow_window(&mut self) {
        self.window = match self.window {
            _ if self.view.open_windows > 0 => Window::Open,
            Window::Starting { total } if total == self.view.total_windows => self.window,
            _ => Window::Closed,
        };
        let is_waiting = |id: &String| self.view.captures.iter().any(|capture| capture.transaction_id == *id);
        self.seen_in_window.retain(is_waiting);
        self.has_window_failed &= !self.view.captures.is_empty();
    }

    /// Shows what waits: in a window if there can be one, else in notifications.
    fn show_captures(&mut self, effects: &mut Vec<Effect>) {
        let uses_window = self.view.confirms_in_window && !self.has_window_failed;
        self.notify_of_captures(self.view.do_not_disturb || uses_window, effects);
        if !uses_window || self.view.do_not_disturb {
            return;
        }
        let ids = || self.view.captures.iter().map(|capture| &capture.transaction_id);
        // A window that was closed without an answer does not come back for the same downloads.
        if self.window == Window::Closed && ids().any(|id| !self.seen_in_window.contains(id)) {
            self.window = Window::Starting {
                total: self.view.total_windows,
            };
            effects.push(Effect::OpenWindow);
        }
        self.seen_in_window = match self.window {
            Window::Closed => return,
            Window::Starting { .. } | Window::Open => ids().cloned().collect(),
        };
    }

    fn notify_of_captures(&mut self, is_quiet: bool, effects: &mut Vec<Effect>) {
        let waiting = &self.view.captures;
        let was_shown = |capture: &PendingCaptureDto| {
            let own = Topic::Capture(capture.transaction_id.clone());
            self.shown.contains_key(&own) || self.shown.contains_key(&Topic::Captures)
        };
        // The page is opened once for what waits together.
        if !waiting.iter().any(was_shown) {
            self.is_page_open = false;
        }
        let mut wanted = BTreeMap::new();
        if is_quiet {
        } else if waiting.len() > MAX_SINGLE {
            wanted.insert(Topic::Captures, about_many(waiting.len()));
        } else {
            wanted.extend(
                waiting
                    .iter()
                    .map(|capture| (Topic::Capture(capture.transaction_id.clone()), about(capture))),
            );
        }
        let is_about_captures = |topic: &Topic| matches!(topic, Topic::Capture(_) | Topic::Captures);
        let gone: Vec<Topic> = self
            .shown
            .keys()
            .filter(|topic| is_about_captures(topic) && !wanted.contains_key(topic))
            .cloned()
            .collect();
        for topic in gone {
            self.withdraw(topic, effects);
        }
        for (topic, notice) in wanted {
            if self.shown.get(&topic) != Some(&notice) {
                self.shown.insert(topic.clone(), notice.clone());
                effects.push(Effect::Show(topic, notice));
            }
        }
    }

    /// Shows downloads that have ended: each for itself, or all in one notification when there are several to look at.
    fn show_finished(&mut self, effects: &mut Vec<Effect>) {
        let (finished, more) = (std::mem::take(&mut self.view.finished), self.view.more_finished);
        if finished.is_empty() || !self.view.notify_finished || self.view.do_not_disturb {
            return;
        }
        let count = self.finished.len() + finished.len() + more;
        if self.finished_together == 0 && count <= MAX_SINGLE {
            for task in finished {
                let notice = about_finished(&task.name);
                self.finished.insert(task.id.clone());
                effects.push(Effect::Show(Topic::Finished(task.id), notice));
            }
            return;
        }
        self.finished_together += count;
        let single = std::mem::take(&mut self.finished);
        effects.extend(single.into_iter().map(|id| Effect::Withdraw(Topic::Finished(id))));
        effects.push(Effect::Show(
            Topic::AllFinished,
            about_all_finished(self.finished_together),
        ));
    }

    /// The user has seen it. What waits for an answer stays known, because asking again would be a nuisance.
    fn forget_finished(&mut self, topic: &Topic) {
        match topic {
            Topic::Finished(id) => drop(self.finished.remove(id)),
            Topic::AllFinished => self.finished_together = 0,
            _ => {}
        }
    }

    /// Shows how many downloads there are, and how fast they are.
    fn show_tray(&mut self, effects: &mut Vec<Effect>) {
        let state = self.view.tray.then(|| about_tray(&self.view));
        if state != self.tray {
            self.tray.clone_from(&state);
            effects.push(Effect::Tray(state));
        }
    }

    /// Begins the countdown when the last download has ended, and stops it when there is work again.
    fn follow_work(&mut self, has_more: bool, effects: &mut Vec<Effect>) {
        let wanted = AfterFinish::named(&self.view.after_finish);
        if wanted.is_none() || self.view.unfinished > 0 {
            if self.countdown.take().is_some() {
                self.withdraw(Topic::Countdown, effects);
                effects.push(Effect::StopCountdown);
            }
            self.has_worked = wanted.is_some();
            return;
        }
        let Some(action) = wanted.filter(|_| self.has_worked || (has_more && self.countdown.is_none())) else {
            return;
        };
        self.has_worked = false;
        self.countdown = Some(action);
        let notice = about_countdown(action);
        self.shown.insert(Topic::Countdown, notice.clone());
        effects.extend([Effect::Show(Topic::Countdown, notice), Effect::StartCountdown]);
    }

    fn press(&mut self, topic: &Topic, button: &str, effects: &mut Vec<Effect>) {
        match (topic, button) {
            (Topic::Capture(id), ACCEPT | REJECT) => effects.push(Effect::Resolve {
                id: id.clone(),
                is_accepted: button == ACCEPT,
            }),
            (Topic::Countdown, CANCEL | DEFAULT) if self.countdown.take().is_some() => {
                self.shown.remove(topic);
                effects.extend([Effect::StopCountdown, Effect::ClearAfterFinish]);
            }
            (Topic::Countdown, _) => {}
            (Topic::Finished(id), OPEN_FILE | REVEAL | DEFAULT) => effects.push(Effect::OpenFile {
                task: id.clone(),
                is_revealed: button != OPEN_FILE,
            }),
            (_, OPEN | DEFAULT) => effects.push(Effect::OpenPage),
            _ => {}
        }
    }

    fn withdraw(&mut self, topic: Topic, effects: &mut Vec<Effect>) {
        if self.shown.remove(&topic).is_some() {
            effects.push(Effect::Withdraw(topic));
        }
    }
}

/// The host of a URL, as it would be connected to.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    if host.is_empty() || url.starts_with("magnet:") {
        "a magnet link"
    } else {
        host
    }
}

fn short(text: &str) -> String {
    let text = printable(text);
    if text.chars().count() <= MAX_NAME_CHARS {
        return text.into_owned();
    }
    text.chars().take(MAX_NAME_CHARS).chain(['…']).collect()
}

fn about(capture: &PendingCaptureDto) -> Notice {
    let urls = capture.url.lines().count();
    let first = capture.url.lines().next().unwrap_or("");
    let name = if capture.file_name.is_empty() {
        first
            .split(['?', '#'])
            .next()
            .unwrap_or("")
            .rsplit('/')
            .next()
            .unwrap_or("")
    } else {
        &capture.file_name
    };
    let name = if name.is_empty() || name.starts_with("magnet:") {
        "a download"
    } else {
        name
    };
    let what = if urls > 1 { format!("{urls} files") } else { short(name) };
    let size = match capture.file_size {
        0 => String::new(),
        bytes => format!(", {}", amount::bytes(bytes)),
    };
    Notice {
        summary: format!("Download {what}?"),
        body: format!("From {}{size}", short(host(first))),
        buttons: vec![(ACCEPT, "Download"), (REJECT, "Reject"), (DEFAULT, "Show")],
        stays: true,
    }
}

fn about_many(count: usize) -> Notice {
    Notice {
        summary: format!("{count} downloads wait for confirmation"),
        body: "Accept or reject them on the page of Svc".to_owned(),
        buttons: vec![(OPEN, "Show"), (DEFAULT, "Show")],
        stays: true,
    }
}

fn about_finished(name: &str) -> Notice {
    let name = if name.is_empty() { "A download" } else { name };
    Notice {
        summary: "Download complete".to_owned(),
        body: short(name),
        buttons: vec![
            (OPEN_FILE, "Open"),
            (REVEAL, "Show in folder"),
            (DEFAULT, "Show in folder"),
        ],
        stays: false,
    }
}

fn about_all_finished(count: usize) -> Notice {
    Notice {
        summary: format!("{count} downloads are complete"),
        body: "They are on the page of Svc".to_owned(),
        buttons: vec![(OPEN, "Show"), (DEFAULT, "Show")],
        stays: false,
    }
}

fn about_tray(view: &DeskView) -> String {
    let waiting = view.unfinished.saturating_sub(view.active);
    let text = match (view.active, waiting) {
        (0, 0) => return "No downloads".to_owned(),
        (0, _) => format!("{waiting} waiting"),
        (active, 0) => format!("{active} active"),
        (active, _) => format!("{active} active, {waiting} waiting"),
    };
    if view.active == 0 {
        return text;
    }
    format!("{text}, {}/s", amount::bytes(view.download_bps))
}

fn about_countdown(action: AfterFinish) -> Notice {
    let what = match action {
        AfterFinish::Quit => "Svc ends",
        AfterFinish::Suspend => "The computer is suspended",
    };
    Notice {
        summary: format!("All downloads have ended. {what} in {} seconds", COUNTDOWN.as_secs()),
        body: "Unless you cancel it, or a new download begins".to_owned(),
        buttons: vec![(CANCEL, "Cancel"), (DEFAULT, "Cancel")],
        stays: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(id: &str, url: &str) -> PendingCaptureDto {
        PendingCaptureDto {
            transaction_id: id.to_owned(),
            url: url.to_owned(),
            ..PendingCaptureDto::default()
        }
    }

    fn view(captures: &[&str], unfinished: u64, after_finish: &str) -> Input {
        Input::View(DeskView {
            captures: captures
                .iter()
                .map(|id| capture(id, "https://u:p@a.test/f.iso?x#y"))
                .collect(),
            unfinished,
            active: unfinished,
            keep_awake: true,
            after_finish: after_finish.to_owned(),
            ..DeskView::default()
        })
    }

    fn pressed(topic: Topic, button: &str) -> Input {
        Input::Pressed {
            topic,
            button: button.to_owned(),
        }
    }

    #[test]
    fn a_download_is_shown_once_answered_and_withdrawn() {
        let mut state = State::default();
        let topic = Topic::Capture("1".to_owned());
        let effects = state.apply(view(&["1"], 0, ""));
        let [Effect::Show(shown, notice)] = &effects[..] else {
            panic!("{effects:?}");
        };
        assert_eq!(
            (shown, notice.summary.as_str(), notice.body.as_str()),
            (&topic, "Download f.iso?", "From a.test")
        );
        assert_eq!(state.apply(view(&["1"], 0, "")), []);
        assert_eq!(state.apply(Input::Closed(topic.clone())), []);
        assert_eq!(
            state.apply(view(&["1"], 0, "")),
            [],
            "a closed notification does not come back"
        );
        let resolve = |is_accepted| Effect::Resolve {
            id: "1".to_owned(),
            is_accepted,
        };
        assert_eq!(state.apply(pressed(topic.clone(), ACCEPT)), [resolve(true)]);
        assert_eq!(state.apply(pressed(topic.clone(), REJECT)), [resolve(false)]);
        assert_eq!(state.apply(pressed(topic.clone(), DEFAULT)), [Effect::OpenPage]);
        assert_eq!(state.apply(view(&[], 0, "")), [Effect::Withdraw(topic)]);
    }

    #[test]
    fn many_downloads_are_one_notification_and_none_when_not_to_be_disturbed() {
        let mut state = State::default();
        let ids = ["1", "2", "3", "4"];
        assert_eq!(state.apply(view(&ids[..3], 0, "")).len(), 3);
        let effects = state.apply(view(&ids, 0, ""));
        assert_eq!(
            effects
                .iter()
                .filter(|effect| matches!(effect, Effect::Withdraw(_)))
                .count(),
            3
        );
        assert!(matches!(&effects[3], Effect::Show(Topic::Captures, notice) if notice.summary.starts_with("4 ")));
        let Input::View(mut quiet) = view(&ids, 0, "") else {
            unreachable!()
        };
        quiet.do_not_disturb = true;
        assert_eq!(state.apply(Input::View(quiet)), [Effect::Withdraw(Topic::Captures)]);
    }

    #[test]
    fn without_notifications_the_page_is_opened_once() {
        let mut state = State::default();
        state.apply(view(&["1", "2"], 0, ""));
        let unseen = |id: &str| Input::Unseen(Topic::Capture(id.to_owned()));
        assert_eq!(state.apply(unseen("1")), [Effect::OpenPage]);
        assert_eq!(state.apply(unseen("2")), []);
        state.apply(view(&[], 0, ""));
        assert_eq!(state.apply(unseen("3")), [Effect::OpenPage]);
    }

    /// With a window: how many are connected, and were.
    fn in_window(captures: &[&str], open_windows: usize, total_windows: u64) -> Input {
        let Input::View(view) = view(captures, 0, "") else {
            unreachable!()
        };
        Input::View(DeskView {
            confirms_in_window: true,
            open_windows,
            total_windows,
            ..view
        })
    }

    #[test]
    fn the_tray_says_how_many_downloads_there_are_and_how_fast() {
        let mut state = State::default();
        let in_tray = |active: u64, unfinished: u64, download_bps: u64| {
            Input::View(DeskView {
                tray: true,
                active,
                unfinished,
                download_bps,
                ..DeskView::default()
            })
        };
        let shows = |text: &str| vec![Effect::Tray(Some(text.to_owned()))];
        assert_eq!(state.apply(in_tray(0, 0, 0)), shows("No downloads"));
        assert_eq!(state.apply(in_tray(0, 0, 0)), []);
        assert_eq!(
            state.apply(in_tray(2, 5, 1_500_000)),
            shows(&format!("2 active, 3 waiting, {}/s", amount::bytes(1_500_000)))
        );
        assert_eq!(state.apply(in_tray(0, 5, 0)), shows("5 waiting"));
        assert_eq!(state.apply(Input::View(DeskView::default())), [Effect::Tray(None)]);
    }

    #[test]
    fn finished_downloads_are_shown_one_by_one_or_together() {
        let mut state = State::default();
        let finished = |ids: &[&str], more_finished: usize| {
            let finished = ids.iter().map(|id| agent::FinishedTask {
                id: (*id).to_owned(),
                name: format!("{id}\n<b>\u{202e}gpj.exe"),
            });
            Input::View(DeskView {
                finished: finished.collect(),
                more_finished,
                notify_finished: true,
                ..DeskView::default()
            })
        };
        let topic = |id: &str| Topic::Finished(id.to_owned());
        let effects = state.apply(finished(&["1", "2"], 0));
        let [Effect::Show(first, notice), Effect::Show(second, _)] = &effects[..] else {
            panic!("{effects:?}");
        };
        assert_eq!((first, second), (&topic("1"), &topic("2")));
        assert!(!notice.body.contains(['\n', '\u{202e}']), "{notice:?}");
        let open = |is_revealed| Effect::OpenFile {
            task: "1".to_owned(),
            is_revealed,
        };
        assert_eq!(state.apply(pressed(topic("1"), OPEN_FILE)), [open(false)]);
        assert_eq!(state.apply(pressed(topic("1"), REVEAL)), [open(true)]);
        state.apply(Input::Closed(topic("1")));
        assert_eq!(state.apply(finished(&["3"], 0)).len(), 1);
        let effects = state.apply(finished(&["4", "5"], 7));
        let [
            Effect::Withdraw(_),
            Effect::Withdraw(_),
            Effect::Show(Topic::AllFinished, notice),
        ] = &effects[..]
        else {
            panic!("{effects:?}");
        };
        assert_eq!(notice.summary, "11 downloads are complete");
        assert_eq!(state.apply(finished(&["6"], 0)).len(), 1);
        assert_eq!(state.finished_together, 12, "until the user has seen it");
        assert_eq!(state.apply(pressed(Topic::AllFinished, DEFAULT)), [Effect::OpenPage]);
        state.apply(Input::Closed(Topic::AllFinished));
        assert!(matches!(
            &state.apply(finished(&["7"], 0))[..],
            [Effect::Show(Topic::Finished(_), _)]
        ));
        let Input::View(mut quiet) = finished(&["8"], 0) else {
            unreachable!()
        };
        quiet.do_not_disturb = true;
        assert_eq!(state.apply(Input::View(quiet)), []);
    }

    #[test]
    fn downloads_are_confirmed_in_one_window() {
        let mut state = State::default();
        assert_eq!(state.apply(in_window(&["1"], 0, 0)), [Effect::OpenWindow]);
        assert_eq!(
            state.apply(in_window(&["1", "2"], 0, 0)),
            [],
            "it is about to show both"
        );
        assert_eq!(state.apply(in_window(&["1", "2", "3"], 1, 1)), []);
        assert_eq!(state.apply(Input::WindowFailed), [], "it is open");
        // Closed without an answer: only another download opens it again.
        assert_eq!(state.apply(in_window(&["1", "2", "3"], 0, 1)), []);
        assert_eq!(state.apply(in_window(&["2", "3", "4"], 0, 1)), [Effect::OpenWindow]);
        assert_eq!(state.apply(in_window(&["4"], 1, 2)), []);
        assert_eq!(state.apply(in_window(&[], 1, 2)), []);
        assert_eq!(state.apply(in_window(&[], 0, 2)), []);
        assert_eq!(state.apply(in_window(&["5"], 0, 2)), [Effect::OpenWindow]);
        // It was open between two looks.
        assert_eq!(state.apply(in_window(&["5"], 0, 3)), []);
        assert_eq!(state.apply(Input::WindowFailed), []);
        assert_eq!(state.apply(in_window(&["6"], 0, 3)), [Effect::OpenWindow]);
    }

    #[test]
    fn without_a_window_there_are_notifications_until_nothing_waits() {
        let mut state = State::default();
        state.apply(in_window(&["1"], 0, 0));
        let topic = Topic::Capture("1".to_owned());
        let effects = state.apply(Input::WindowFailed);
        assert!(
            matches!(&effects[..], [Effect::Show(shown, _)] if *shown == topic),
            "{effects:?}"
        );
        assert_eq!(state.apply(in_window(&["1", "2"], 0, 0)).len(), 1);
        assert_eq!(state.apply(in_window(&[], 0, 0)).len(), 2, "both are withdrawn");
        assert_eq!(state.apply(in_window(&["3"], 0, 0)), [Effect::OpenWindow]);
    }

    #[test]
    fn no_window_opens_when_not_to_be_disturbed() {
        let mut state = State::default();
        let Input::View(mut quiet) = in_window(&["1"], 0, 0) else {
            unreachable!()
        };
        quiet.do_not_disturb = true;
        assert_eq!(state.apply(Input::View(quiet)), []);
        assert_eq!(state.apply(in_window(&["1"], 0, 0)), [Effect::OpenWindow]);
    }

    #[test]
    fn the_computer_stays_awake_while_something_transfers() {
        let mut state = State::default();
        assert_eq!(state.apply(view(&[], 2, "")), [Effect::KeepAwake(true)]);
        assert_eq!(state.apply(view(&[], 1, "")), []);
        assert_eq!(state.apply(view(&[], 0, "")), [Effect::KeepAwake(false)]);
    }

    #[test]
    fn the_last_download_is_followed_by_a_countdown_that_can_be_stopped() {
        let mut state = State::default();
        assert_eq!(state.apply(view(&[], 0, "suspend")), [], "nothing has ended");
        state.apply(view(&[], 1, "suspend"));
        let effects = state.apply(view(&[], 0, "suspend"));
        assert_eq!(effects[0], Effect::KeepAwake(false));
        assert_eq!((effects.len(), &effects[2]), (3, &Effect::StartCountdown));
        let effects = state.apply(view(&[], 1, "suspend"));
        assert_eq!(
            effects[1..],
            [Effect::Withdraw(Topic::Countdown), Effect::StopCountdown]
        );
        state.apply(view(&[], 0, "suspend"));
        let cancelled = state.apply(pressed(Topic::Countdown, CANCEL));
        assert_eq!(cancelled, [Effect::StopCountdown, Effect::ClearAfterFinish]);
        assert_eq!(state.apply(Input::CountdownOver), [], "too late");
        state.apply(view(&[], 1, "quit"));
        state.apply(view(&[], 0, "quit"));
        let over = state.apply(Input::CountdownOver);
        assert_eq!(over[1..], [Effect::ClearAfterFinish, Effect::Finish(AfterFinish::Quit)]);
        assert_eq!(state.apply(view(&[], 0, "")), []);
    }

    #[test]
    fn a_download_between_two_looks_counts_and_tasks_of_before_do_not() {
        let mut state = State::default();
        let mut look = |tasks| {
            let Input::View(view) = view(&[], 0, "quit") else {
                unreachable!()
            };
            state.apply(Input::View(DeskView { tasks, ..view }))
        };
        assert_eq!(look(None), []);
        assert_eq!(look(Some(7)), [], "those of the last session");
        assert_eq!(look(Some(8)).len(), 2);
        assert_eq!(look(Some(8)), []);
    }

    #[test]
    fn text_of_pages_is_shown_as_text() {
        let mut evil = capture("1", "https://a.test@evil.test/\u{202e}gpj.exe");
        assert_eq!(about(&evil).body, "From evil.test");
        assert!(!about(&evil).summary.contains('\u{202e}'));
        evil.file_name = "x".repeat(1000);
        assert!(about(&evil).summary.chars().count() < 150);
        assert_eq!(about(&capture("1", "magnet:?xt=1")).body, "From a magnet link");
        assert_eq!(
            about(&capture("1", "http://a/1\nhttp://b/2")).summary,
            "Download 2 files?"
        );
    }
}
