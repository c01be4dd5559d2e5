//! What plugins did, for the user to read: a ring of events of all plugins, and a ring of each plugin's own lines.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use crate::{
    host::Denial,
    identity::Identity,
    runtime::{CallId, Report},
};

/// Events kept, of all plugins: a day of a busy machine.
const MAX_EVENTS: usize = 1000;

/// Bytes of lines kept, of each plugin.
const MAX_LOG_BYTES: usize = 1024 * 1024;

/// The longest line in bytes; the rest is cut.
const MAX_LINE_BYTES: usize = 4096;

/// Lines and refusals of one call that are kept.
const MAX_LINES_PER_CALL: u32 = 200;

/// What plugins did. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Rings>>);

#[derive(Debug, Default)]
struct Rings {
    events: VecDeque<Entry>,
    lines: BTreeMap<Identity, Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<Line>,
    bytes: usize,
}

/// Something that happened to a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// To which one.
    pub plugin: Identity,
    /// What.
    pub event: Event,
}

/// What happens to plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A version was installed; it runs or waits for consent.
    Installed {
        /// Which one.
        version: String,
    },
    /// A version was loaded, or could not be.
    Loaded {
        /// Why not.
        error: Option<String>,
    },
    /// The user agreed to what it may do.
    Consented,
    /// The user chose about a host that it can do without.
    HostChosen {
        /// Which one.
        host: String,
        /// `once`, `always` or `never`.
        choice: &'static str,
    },
    /// It was switched on or off by the user.
    Switched {
        /// Which of the two.
        is_on: bool,
    },
    /// It was switched off because it kept failing.
    Tripped,
    /// The version before runs again.
    RolledBack {
        /// Whether it was the user's wish; else the new version kept failing.
        by_user: bool,
    },
    /// Its settings were changed.
    SettingsChanged {
        /// Which ones.
        keys: Vec<String>,
    },
    /// It is gone.
    Uninstalled,
    /// It was called.
    Called {
        /// Names the call.
        call: CallId,
        /// `resolve`, `more`, `linkFor`, `preview`.
        action: &'static str,
        /// What it took.
        report: Report,
        /// Why it gave nothing; none if it gave something.
        fault: Option<&'static str>,
    },
    /// It wanted to reach what it may not reach.
    Denied {
        /// In which call.
        call: CallId,
        /// What it wanted.
        denial: Denial,
    },
}

/// A line that a plugin wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// In which call.
    pub call: CallId,
    /// How loud.
    pub level: LogLevel,
    /// What, with control characters escaped.
    pub text: String,
}

/// How loud a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// For its author.
    Debug,
    /// For the user.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

impl Journal {
    /// Writes down what happened.
    pub(crate) fn record(&self, plugin: &Identity, event: Event) {
        let entry = Entry {
            at_ms: now_ms(),
            plugin: plugin.clone(),
            event,
        };
        let mut rings = self.rings();
        if rings.events.len() == MAX_EVENTS {
            rings.events.pop_front();
        }
        rings.events.push_back(entry);
    }

    /// The events of a plugin, or of all; the oldest first.
    pub fn events(&self, plugin: Option<&Identity>) -> Vec<Entry> {
        let rings = self.rings();
        let events = rings.events.iter();
        events
            .filter(|entry| plugin.is_none_or(|plugin| entry.plugin == *plugin))
            .cloned()
            .collect()
    }

    /// The lines that a plugin wrote, the oldest first.
    pub fn lines(&self, plugin: &Identity) -> Vec<Line> {
        let rings = self.rings();
        let lines = rings.lines.get(plugin);
        lines
            .map(|lines| lines.lines.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Drops the lines of a plugin that is gone.
    pub(crate) fn forget_lines(&self, plugin: &Identity) {
        self.rings().lines.remove(plugin);
    }

    /// Where a call writes.
    pub(crate) fn of_call(&self, plugin: Identity, call: CallId) -> CallLog {
        CallLog {
            journal: self.clone(),
            plugin,
            call,
            written: Arc::default(),
        }
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one call writes.
#[derive(Debug, Clone)]
pub struct CallLog {
    journal: Journal,
    plugin: Identity,
    call: CallId,
    written: Arc<AtomicU32>,
}

impl CallLog {
    /// Keeps a line; whatever is too long or too much is dropped.
    pub fn write(&self, level: LogLevel, text: &str) {
        if !self.may_write() {
            return;
        }
        let line = Line {
            at_ms: now_ms(),
            call: self.call,
            level,
            text: printable(text),
        };
        let mut rings = self.journal.rings();
        let lines = rings.lines.entry(self.plugin.clone()).or_default();
        lines.bytes += line.text.len();
        lines.lines.push_back(line);
        while lines.bytes > MAX_LOG_BYTES
            && let Some(oldest) = lines.lines.pop_front()
        {
            lines.bytes -= oldest.text.len();
        }
    }

    fn may_write(&self) -> bool {
        self.written.fetch_add(1, Ordering::Relaxed) < MAX_LINES_PER_CALL
    }
}

/// `text` cut to [`MAX_LINE_BYTES`], with nothing in it that moves a terminal's cursor.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.len() + c.len_utf8() > MAX_LINE_BYTES {
            break;
        }
        if c.is_control() && c != '\t' {
            let _never_fails = write!(out, "{}", c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin() -> Identity {
        "a@b".parse().unwrap()
    }

    #[test]
    fn lines_are_escaped_cut_and_bounded_per_call_and_per_plugin() {
        let journal = Journal::default();
        let log = journal.of_call(plugin(), CallId(1));
        log.write(LogLevel::Info, "a\u{1b}[2Jb");
        log.write(LogLevel::Info, &"ä".repeat(MAX_LINE_BYTES));
        let lines = journal.lines(&plugin());
        assert_eq!(lines[0].text, "a\\u{1b}[2Jb");
        assert_eq!(lines[1].text.len(), MAX_LINE_BYTES);
        for _ in 0..2 * MAX_LINES_PER_CALL {
            log.write(LogLevel::Info, "x");
        }
        assert_eq!(journal.lines(&plugin()).len(), MAX_LINES_PER_CALL as usize);
        for call in 0..10 {
            let log = journal.of_call(plugin(), CallId(call));
            (0..100).for_each(|_| log.write(LogLevel::Info, &"x".repeat(MAX_LINE_BYTES)));
        }
        assert_eq!(journal.lines(&plugin()).len(), MAX_LOG_BYTES / MAX_LINE_BYTES);
    }

    #[test]
    fn the_newest_events_are_kept() {
        let journal = Journal::default();
        let other: Identity = "c@d".parse().unwrap();
        journal.record(&other, Event::Consented);
        (0..MAX_EVENTS).for_each(|_| journal.record(&plugin(), Event::Tripped));
        assert_eq!(journal.events(None).len(), MAX_EVENTS);
        assert!(journal.events(Some(&other)).is_empty());
    }
}
