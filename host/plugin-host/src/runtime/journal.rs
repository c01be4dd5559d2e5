//! The journal shown to users: a ring of events of all plugins, and per plugin a ring of log lines and one of requests.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use market::Identity;

use crate::{
    policy::{fault::PluginFault, host::Denial},
    runtime::{CallId, Report},
};

/// Events kept, of all plugins: a day of a busy machine.
const MAX_EVENTS: usize = 1000;

/// Bytes of lines kept, of each plugin.
const MAX_LOG_BYTES: usize = 1024 * 1024;

/// The longest line in bytes; the rest is truncated.
const MAX_LINE_BYTES: usize = 4096;

/// Requests kept, of each plugin: those of the last few calls.
const MAX_REQUESTS: usize = 500;

/// The longest address of a request in bytes; the rest is truncated.
const MAX_ADDRESS_BYTES: usize = 1024;

/// What plugins did. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<Mutex<Rings>>);

#[derive(Debug, Default)]
struct Rings {
    events: VecDeque<JournalEntry>,
    lines: BTreeMap<Identity, Lines>,
    requests: BTreeMap<Identity, VecDeque<Sent>>,
    totals: Totals,
}

#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<Line>,
    bytes: usize,
}

/// Something that happened to a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntry {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub plugin: Identity,
    pub event: Event,
}

/// What happens to plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A version was installed; it runs or waits for consent.
    Installed {
        version: String,
    },
    /// A version was loaded, or could not be.
    Loaded {
        error: Option<String>,
    },
    /// The user consented to its permissions.
    Consented,
    /// The user chose whether it may reach an optional host.
    HostChosen {
        host: String,
        /// `once`, `always` or `never`.
        choice: &'static str,
    },
    /// The user enabled or disabled it.
    Switched {
        is_on: bool,
    },
    /// The breaker disabled it, because it kept failing.
    Tripped,
    /// The previous version was restored.
    RolledBack {
        /// Whether the user requested it; else the new version kept failing.
        by_user: bool,
    },
    /// The user pinned it (no automatic updates) or unpinned it.
    Pinned {
        is_pinned: bool,
    },
    /// Its source revoked the running version.
    Revoked {
        /// How bad it is: `deprecated`, `vulnerable` or `malicious`.
        level: &'static str,
        reason: String,
    },
    /// Its packages are signed with another key from now on.
    AuthorChanged {
        /// The fingerprint of the new key.
        to: String,
        /// The reason, if the source's root authorized the change and not the author.
        reason: Option<String>,
    },
    /// An automatic update failed.
    NotUpdated {
        error: String,
    },
    SettingsChanged {
        keys: Vec<String>,
    },
    Uninstalled,
    /// The user logged in to the account of a slot.
    LoggedIn {
        slot: String,
    },
    /// The user logged out of the account of a slot, or the site ended its session for good.
    LoggedOut {
        slot: String,
        by_user: bool,
    },
    Called {
        call: CallId,
        /// `resolve`, `more`, `linkFor`, `preview`.
        action: &'static str,
        report: Report,
        /// Why it failed; none if it succeeded.
        fault: Option<PluginFault>,
    },
    /// A request of it was denied.
    Denied {
        call: CallId,
        denial: Denial,
    },
}

/// Calls of all plugins together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub calls: u64,
    pub faults: u64,
    pub wall: Duration,
}

impl Totals {
    fn add(&mut self, event: &Event) {
        if let Event::Called { report, fault, .. } = event {
            self.calls += 1;
            self.faults += u64::from(fault.is_some());
            self.wall += report.wall;
        }
    }
}

/// A line that a plugin wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub call: CallId,
    pub level: LogLevel,
    /// What, with control characters escaped.
    pub text: String,
}

/// A request of a plugin, without parts that may be secret: no query, no headers, no body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLine {
    /// Upper-case.
    pub method: String,
    pub address: String,
    /// The status of the response; none without one.
    pub status: Option<u16>,
    /// Bytes of the response, decompressed.
    pub received_bytes: u64,
    /// From the request to the end of the response, including the wait for a connection.
    pub elapsed: Duration,
}

/// A request, when and in which call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// When it ended, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    pub call: CallId,
    pub line: RequestLine,
}

/// The level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogLevel {
    Trace,
    /// For its author.
    Debug,
    /// For the user.
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// Its name in interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl Journal {
    /// Records an event.
    pub(crate) fn record(&self, plugin: &Identity, event: Event) {
        let entry = JournalEntry {
            at_ms: now_ms(),
            plugin: plugin.clone(),
            event,
        };
        let mut rings = self.rings();
        rings.totals.add(&entry.event);
        if rings.events.len() == MAX_EVENTS {
            rings.events.pop_front();
        }
        rings.events.push_back(entry);
    }

    /// The events of a plugin, or of all; the oldest first.
    pub fn events(&self, plugin: Option<&Identity>) -> Vec<JournalEntry> {
        let rings = self.rings();
        let events = rings.events.iter();
        events
            .filter(|entry| plugin.is_none_or(|plugin| entry.plugin == *plugin))
            .cloned()
            .collect()
    }

    /// Totals since the start.
    pub fn totals(&self) -> Totals {
        self.rings().totals
    }

    /// The lines that a plugin wrote, the oldest first.
    pub fn lines(&self, plugin: &Identity) -> Vec<Line> {
        let rings = self.rings();
        let lines = rings.lines.get(plugin);
        lines
            .map(|lines| lines.lines.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The requests that a plugin sent, the oldest first.
    pub fn requests(&self, plugin: &Identity) -> Vec<Sent> {
        let rings = self.rings();
        let requests = rings.requests.get(plugin);
        requests
            .map(|requests| requests.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// Drops the lines and requests of an uninstalled plugin.
    pub(crate) fn forget(&self, plugin: &Identity) {
        let mut rings = self.rings();
        rings.lines.remove(plugin);
        rings.requests.remove(plugin);
    }

    /// The log of a call.
    pub(crate) fn of_call(&self, plugin: Identity, call: CallId) -> CallLog {
        CallLog {
            journal: self.clone(),
            plugin,
            call,
        }
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The log of one call.
#[derive(Debug, Clone)]
pub struct CallLog {
    journal: Journal,
    plugin: Identity,
    call: CallId,
}

impl CallLog {
    /// Appends a line, truncated. The runtime limits their number per call.
    pub fn write(&self, level: LogLevel, text: &str) {
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

    /// Appends a request.
    pub fn sent(&self, mut line: RequestLine) {
        line.address
            .truncate(line.address.floor_char_boundary(MAX_ADDRESS_BYTES));
        let sent = Sent {
            at_ms: now_ms(),
            call: self.call,
            line,
        };
        let mut rings = self.journal.rings();
        let requests = rings.requests.entry(self.plugin.clone()).or_default();
        if requests.len() == MAX_REQUESTS {
            requests.pop_front();
        }
        requests.push_back(sent);
    }
}

/// Truncates `text` to [`MAX_LINE_BYTES`] and escapes control characters, which could manipulate a terminal.
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
    fn lines_are_escaped_cut_and_bounded_per_plugin() {
        let journal = Journal::default();
        let log = journal.of_call(plugin(), CallId(1));
        log.write(LogLevel::Info, "a\u{1b}[2Jb");
        log.write(LogLevel::Info, &"ä".repeat(MAX_LINE_BYTES));
        let lines = journal.lines(&plugin());
        assert_eq!(lines[0].text, "a\\u{1b}[2Jb");
        assert_eq!(lines[1].text.len(), MAX_LINE_BYTES);
        for call in 0..10 {
            let log = journal.of_call(plugin(), CallId(call));
            (0..100).for_each(|_| log.write(LogLevel::Info, &"x".repeat(MAX_LINE_BYTES)));
        }
        assert_eq!(journal.lines(&plugin()).len(), MAX_LOG_BYTES / MAX_LINE_BYTES);
    }

    #[test]
    fn the_newest_requests_are_kept() {
        let journal = Journal::default();
        let log = journal.of_call(plugin(), CallId(1));
        for status in 0..600 {
            log.sent(RequestLine {
                method: "GET".to_owned(),
                address: "ä".repeat(MAX_ADDRESS_BYTES),
                status: Some(status),
                received_bytes: 0,
                elapsed: Duration::ZERO,
            });
        }
        let requests = journal.requests(&plugin());
        assert_eq!(requests.len(), MAX_REQUESTS);
        assert_eq!(requests[0].line.status, Some(100));
        assert_eq!(requests[0].line.address.len(), MAX_ADDRESS_BYTES);
        journal.forget(&plugin());
        assert!(journal.requests(&plugin()).is_empty());
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
