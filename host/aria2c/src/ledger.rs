//! Records the results of downloads, for the results table and the exit code. Pure: the time is a parameter.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::console::{Active, DownloadResult, End};

/// The status keys that are queried.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct StatusReply {
    pub(super) gid: String,
    pub(super) status: String,
    completed_length: String,
    total_length: String,
    connections: String,
    download_speed: String,
    pub(super) error_code: String,
    pub(super) error_message: String,
    files: Vec<File>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct File {
    path: String,
    uris: Vec<Uri>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Uri {
    uri: String,
}

/// The keys of [`StatusReply`].
pub(super) const KEYS: [&str; 9] = [
    "gid",
    "status",
    "completedLength",
    "totalLength",
    "connections",
    "downloadSpeed",
    "errorCode",
    "errorMessage",
    "files",
];

impl StatusReply {
    pub(super) fn path(&self) -> &str {
        self.files.first().map_or("", |file| &file.path)
    }

    pub(super) fn uri(&self) -> &str {
        let uri = self.files.first().and_then(|file| file.uris.first());
        uri.map_or("", |uri| &uri.uri)
    }

    pub(super) fn active(&self) -> Active {
        Active {
            gid: self.gid.clone(),
            done: number(&self.completed_length),
            total: number(&self.total_length),
            connections: number(&self.connections),
            speed: number(&self.download_speed),
            path: self.path().to_owned(),
        }
    }

    fn end(&self) -> End {
        match &*self.status {
            "complete" => End::Complete,
            "error" => End::Failed,
            "removed" => End::Removed,
            _ => End::Unfinished,
        }
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

/// Results of ended downloads, and start times of active ones.
#[derive(Debug)]
pub(super) struct Ledger {
    began: HashMap<String, (Instant, u64)>,
    results: VecDeque<DownloadResult>,
    /// The limit of kept results.
    most: usize,
    last_error: u8,
}

impl Ledger {
    /// `most` is the limit of kept results.
    pub(super) fn new(most: usize) -> Self {
        Self {
            began: HashMap::new(),
            results: VecDeque::new(),
            most,
            last_error: 0,
        }
    }

    /// Records that a download became active.
    pub(super) fn began(&mut self, status: &StatusReply, now: Instant) {
        let done = number(&status.completed_length);
        self.began.insert(status.gid.clone(), (now, done));
    }

    /// Records the result of a download. Returns the GID of the result that was dropped to stay within the limit.
    pub(super) fn ended(&mut self, status: &StatusReply, now: Instant) -> Option<String> {
        let end = status.end();
        if end == End::Failed {
            self.failed(status.error_code.parse().unwrap_or(crate::UNKNOWN_ERROR));
        }
        let done = number(&status.completed_length);
        let speed = self.began.remove(&status.gid).map(|(began, before)| {
            let elapsed = now.saturating_duration_since(began).max(Duration::from_millis(1));
            let bytes = u128::from(done.saturating_sub(before)) * 1000 / elapsed.as_millis();
            u64::try_from(bytes).unwrap_or(u64::MAX)
        });
        self.results.push_back(DownloadResult {
            gid: status.gid.clone(),
            end,
            done,
            total: number(&status.total_length),
            speed,
            // Before a response, the name is only a guess.
            name: if end == End::Failed && number(&status.total_length) == 0 {
                status.uri().to_owned()
            } else {
                status.path().to_owned()
            },
        });
        (self.results.len() > self.most)
            .then(|| self.results.pop_front())
            .flatten()
            .map(|forgotten| forgotten.gid)
    }

    /// Records a failure outside of downloads.
    pub(super) fn failed(&mut self, code: u8) {
        self.last_error = code;
    }

    pub(super) fn results(&self) -> impl Iterator<Item = &DownloadResult> {
        self.results.iter()
    }

    /// The exit code, given the number of `unfinished` downloads.
    pub(super) fn exit(&self, unfinished: u64) -> u8 {
        match self.last_error {
            0 if unfinished > 0 => crate::UNFINISHED,
            code => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(gid: &str, status: &str, code: &str) -> StatusReply {
        let status = json!({"gid": gid, "status": status, "completedLength": "3000", "totalLength": "6000", "errorCode": code,
            "files": [{"path": "/d/f", "uris": [{"uri": "http://h/f"}]}]});
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_last_error_is_the_exit_code_and_what_is_left_counts_only_without_one() {
        let now = Instant::now();
        let mut ledger = Ledger::new(10);
        ledger.ended(&status("a", "complete", "0"), now);
        assert_eq!((ledger.exit(0), ledger.exit(1)), (0, 7));
        ledger.ended(&status("b", "error", "3"), now);
        ledger.ended(&status("c", "error", "24"), now);
        ledger.ended(&status("d", "removed", "31"), now);
        assert_eq!((ledger.exit(0), ledger.exit(1)), (24, 24));
    }

    #[test]
    fn the_speed_counts_from_when_it_became_active() {
        let now = Instant::now();
        let mut ledger = Ledger::new(1);
        ledger.began(&status("a", "active", "0"), now);
        let mut end = status("a", "complete", "0");
        end.completed_length = "13000".into();
        assert_eq!(ledger.ended(&end, now + Duration::from_secs(2)), None);
        assert_eq!(ledger.results().next().unwrap().speed, Some(5000));
        assert_eq!(ledger.ended(&status("b", "error", "1"), now), Some("a".to_owned()));
        let [b] = &ledger.results().collect::<Vec<_>>()[..] else {
            panic!("one is kept")
        };
        assert_eq!((b.speed, &*b.name), (None, "/d/f"));
    }
}
