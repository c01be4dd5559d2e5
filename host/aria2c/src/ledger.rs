//! Records the results of downloads, for the results table and the exit code. Pure: the time is a parameter.

use std::{
    collections::{HashMap, VecDeque},
    path::Path,
    time::{Duration, Instant},
};

use serde::Deserialize;

use crate::console::{self, Active, DownloadResult, End, Sizes, Swarm};

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
    upload_length: String,
    upload_speed: String,
    num_seeders: String,
    seeder: String,
    dir: String,
    pub(super) info_hash: String,
    /// Of a torrent: with its name once its metadata is known.
    bittorrent: Option<Torrent>,
    files: Vec<File>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Torrent {
    announce_list: Vec<Vec<String>>,
    info: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct File {
    path: String,
    selected: String,
    uris: Vec<Uri>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Uri {
    uri: String,
}

/// The keys of [`StatusReply`].
pub(super) const KEYS: [&str; 16] = [
    "bittorrent",
    "dir",
    "infoHash",
    "numSeeders",
    "seeder",
    "uploadLength",
    "uploadSpeed",
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
    /// The path of the first file that is downloaded.
    pub(super) fn path(&self) -> &str {
        let first = self.wanted().next().or(self.files.first());
        first.map_or("", |file| &file.path)
    }

    /// How many files are downloaded.
    pub(super) fn count(&self) -> usize {
        if self.path().is_empty() {
            0
        } else {
            self.wanted().count()
        }
    }

    fn wanted(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.selected == "true")
    }

    /// The first path, and how many others there are.
    fn paths(&self) -> String {
        match self.count() {
            0 | 1 => self.path().to_owned(),
            count => format!("{} ({}more)", self.path(), count - 1),
        }
    }

    /// The path of the file, or of the directory that a torrent of several files has in its save directory.
    pub(super) fn place(&self) -> String {
        let folder = Path::new(&self.dir);
        let below = self
            .files
            .first()
            .and_then(|file| Path::new(&file.path).strip_prefix(folder).ok());
        match below.and_then(|below| below.components().next()) {
            Some(first) if self.bittorrent.is_some() => folder.join(first).display().to_string(),
            _ => self.path().to_owned(),
        }
    }

    pub(super) fn is_torrent(&self) -> bool {
        self.bittorrent.is_some()
    }

    /// Whether the files of a torrent are known.
    pub(super) fn has_metadata(&self) -> bool {
        self.bittorrent.as_ref().is_some_and(|torrent| torrent.info.is_some())
    }

    pub(super) fn trackers(&self) -> impl Iterator<Item = &str> {
        let lists = self.bittorrent.iter().flat_map(|torrent| &torrent.announce_list);
        lists.flatten().map(String::as_str)
    }

    pub(super) fn is_seeding(&self) -> bool {
        self.status == "active" && self.seeder == "true"
    }

    /// `Your share ratio was 0.0, uploaded/downloaded=0B/128KiB`
    pub(super) fn share(&self, sizes: Sizes) -> String {
        let (uploaded, downloaded) = (number(&self.upload_length), number(&self.completed_length));
        let ratio = console::ratio(uploaded, downloaded).unwrap_or_else(|| "0.0".to_owned());
        let (uploaded, downloaded) = (sizes.write(uploaded), sizes.write(downloaded));
        format!("Your share ratio was {ratio}, uploaded/downloaded={uploaded}B/{downloaded}B")
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
            path: self.paths(),
            torrent: self.is_torrent().then(|| Swarm {
                seeds: number(&self.num_seeders),
                uploaded: number(&self.upload_length),
                upload_speed: number(&self.upload_speed),
                is_seeding: self.is_seeding(),
            }),
        }
    }

    fn end(&self) -> End {
        match &*self.status {
            _ if self.is_seeding() => End::Complete,
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
                status.paths()
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
            "files": [{"path": "/d/f", "selected": "true", "uris": [{"uri": "http://h/f"}]}]});
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
    fn a_torrent_that_is_seeded_counts_as_complete_and_has_one_place() {
        let torrent = json!({"gid": "a", "status": "active", "seeder": "true", "dir": "/d", "completedLength": "1000",
            "totalLength": "1000", "uploadLength": "1500", "infoHash": "aa",
            "bittorrent": {"announceList": [["http://t/a"], ["udp://t:1"]], "info": {"name": "n"}}, "files": [
                {"path": "/d/n/0", "selected": "false"}, {"path": "/d/n/a", "selected": "true"},
                {"path": "/d/n/s/b", "selected": "true"}]});
        let torrent: StatusReply = serde_json::from_value(torrent).unwrap();
        assert_eq!(
            (torrent.path(), torrent.count(), &*torrent.place()),
            ("/d/n/a", 2, "/d/n")
        );
        assert_eq!(
            torrent.share(Sizes::Short),
            "Your share ratio was 1.5, uploaded/downloaded=1.4KiB/0.9KiB"
        );
        let trackers: Vec<_> = torrent.trackers().collect();
        assert_eq!(trackers, ["http://t/a", "udp://t:1"]);
        assert!(torrent.has_metadata() && torrent.active().torrent.unwrap().is_seeding);
        let mut ledger = Ledger::new(10);
        ledger.ended(&torrent, Instant::now());
        let [result] = &ledger.results().collect::<Vec<_>>()[..] else {
            panic!("one is kept")
        };
        assert_eq!((result.end, &*result.name), (End::Complete, "/d/n/a (1more)"));
        let file = status("b", "complete", "0");
        assert_eq!((&*file.place(), file.is_torrent()), ("/d/f", false));
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
