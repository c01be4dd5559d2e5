//! A download as aria2 describes it, written from what the daemon says of the task. Pure.

use std::borrow::Cow;

use protocol::{SegmentDto, TaskRuntimeDto, TaskStatus};
use serde::Deserialize;

use super::{fault::error_code, gid::Gid};

/// aria2's pieces, by which it says how far a download is.
const PIECE_BYTES: u64 = 1024 * 1024;

/// Pieces whose bitfield is written: those of a terabyte. A larger file says how many bytes it has, not which.
const MAX_PIECES: u64 = 1024 * 1024;

/// What is needed of a task.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Seen<'a> {
    #[serde(borrow)]
    pub(super) url: Cow<'a, str>,
    pub(super) mirrors: Vec<String>,
    #[serde(borrow)]
    file_name: Cow<'a, str>,
    #[serde(borrow)]
    save_dir: Cow<'a, str>,
    pub(super) status: TaskStatus,
    downloaded_bytes: u64,
    total_bytes: u64,
    #[serde(borrow)]
    error_message: Cow<'a, str>,
    #[serde(borrow)]
    error_kind: Cow<'a, str>,
}

/// What is said of a task.
#[derive(Debug)]
pub(super) struct Download<'a> {
    pub(super) gid: Gid,
    pub(super) task: Seen<'a>,
    /// What its run said last.
    pub(super) runtime: Option<TaskRuntimeDto>,
    pub(super) is_removed: bool,
}

/// Which keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Keys(u32);

/// In the order in which they are written.
const KEYS: [&str; 15] = [
    "bitfield",
    "completedLength",
    "connections",
    "dir",
    "downloadSpeed",
    "errorCode",
    "errorMessage",
    "files",
    "gid",
    "numPieces",
    "pieceLength",
    "status",
    "totalLength",
    "uploadLength",
    "uploadSpeed",
];

impl Keys {
    /// The keys of these names; none is all of them.
    pub(super) fn of(names: &[&str]) -> Self {
        let bit = |name: &str| KEYS.iter().position(|key| *key == name).map_or(0, |index| 1 << index);
        if names.is_empty() {
            return Self(u32::MAX);
        }
        Self(names.iter().fold(0, |keys, name| keys | bit(name)))
    }
}

/// An object that is being written.
struct Object<'a> {
    text: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Object<'a> {
    fn begin(text: &'a mut Vec<u8>) -> Self {
        text.push(b'{');
        Self { text, is_first: true }
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::replace(&mut self.is_first, false) {
            self.text.push(b',');
        }
        self.text.push(b'"');
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b"\":");
        self.text
    }

    fn text(&mut self, name: &str, value: &str) {
        write_text(self.name(name), value);
    }

    /// A text that needs no escaping.
    fn plain(&mut self, name: &str, value: &str) {
        let text = self.name(name);
        text.push(b'"');
        text.extend_from_slice(value.as_bytes());
        text.push(b'"');
    }

    fn number(&mut self, name: &str, value: u64) {
        self.plain(name, &value.to_string());
    }

    fn end(self) {
        self.text.push(b'}');
    }
}

fn write_text(text: &mut Vec<u8>, value: &str) {
    serde_json::to_writer(text, value).expect("a text always encodes, and memory takes it");
}

impl Download<'_> {
    pub(super) fn is_active(&self) -> bool {
        matches!(self.task.status, TaskStatus::Downloading | TaskStatus::Preparing) && !self.is_removed
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_removed || matches!(self.task.status, TaskStatus::Completed | TaskStatus::Error)
    }

    fn status(&self) -> &'static str {
        match self.task.status {
            _ if self.is_removed => "removed",
            TaskStatus::Downloading | TaskStatus::Preparing => "active",
            TaskStatus::Pending => "waiting",
            TaskStatus::Paused => "paused",
            TaskStatus::Completed => "complete",
            TaskStatus::Error => "error",
        }
    }

    fn done_bytes(&self) -> u64 {
        self.runtime
            .as_ref()
            .map_or(self.task.downloaded_bytes, |runtime| runtime.downloaded_bytes)
    }

    fn total_bytes(&self) -> u64 {
        let told = self.runtime.as_ref().map_or(0, |runtime| runtime.total_bytes);
        if told > 0 { told } else { self.task.total_bytes }
    }

    fn pieces(&self) -> u64 {
        self.total_bytes().div_ceil(PIECE_BYTES)
    }

    pub(super) fn speed(&self) -> u64 {
        self.runtime
            .as_ref()
            .filter(|_| self.is_active())
            .map_or(0, |runtime| runtime.download_bps)
    }

    /// Writes the keys that are asked for.
    pub(super) fn write(&self, text: &mut Vec<u8>, keys: Keys) {
        let mut object = Object::begin(text);
        for (index, key) in KEYS.into_iter().enumerate() {
            if keys.0 & (1 << index) != 0 {
                self.write_key(&mut object, key);
            }
        }
        object.end();
    }

    fn write_key(&self, object: &mut Object<'_>, key: &str) {
        match key {
            "bitfield" => {
                if let Some(bits) = self.bitfield() {
                    object.plain(key, &data_encoding::HEXLOWER.encode(&bits));
                }
            }
            "completedLength" => object.number(key, self.done_bytes()),
            "connections" => {
                let runtime = self.runtime.as_ref().filter(|_| self.is_active());
                object.number(
                    key,
                    runtime.and_then(|runtime| runtime.active_transfers).unwrap_or(0).into(),
                );
            }
            "dir" => object.text(key, &self.task.save_dir),
            "downloadSpeed" => object.number(key, self.speed()),
            "errorCode" if self.is_stopped() => object.number(key, self.error_code().into()),
            "errorMessage" if self.is_stopped() => object.text(key, &self.task.error_message),
            "files" => self.write_files(object.name(key)),
            "gid" => object.plain(key, &self.gid.to_string()),
            "numPieces" => object.number(key, self.pieces()),
            "pieceLength" => object.number(key, PIECE_BYTES),
            "status" => object.plain(key, self.status()),
            "totalLength" => object.number(key, self.total_bytes()),
            "uploadLength" | "uploadSpeed" => object.plain(key, "0"),
            _ => {}
        }
    }

    fn error_code(&self) -> u8 {
        /// "The user removed it."
        const REMOVED: u8 = 31;
        match self.task.status {
            _ if self.is_removed => REMOVED,
            TaskStatus::Error => error_code(&self.task.error_kind),
            _ => 0,
        }
    }

    /// Its one file, as a list.
    pub(super) fn write_files(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        let mut file = Object::begin(text);
        file.number("completedLength", self.done_bytes());
        file.plain("index", "1");
        file.number("length", self.total_bytes());
        let slash = if self.task.save_dir.ends_with('/') { "" } else { "/" };
        file.text("path", &[&self.task.save_dir, slash, &self.task.file_name].concat());
        file.plain("selected", "true");
        self.write_uris(file.name("uris"));
        file.end();
        text.push(b']');
    }

    /// Its URIs: those that its run uses or has used, or that wait for one.
    pub(super) fn write_uris(&self, text: &mut Vec<u8>) {
        let is_used = self.is_active() || self.is_stopped() || self.done_bytes() > 0;
        let uris = std::iter::once(&*self.task.url).chain(self.task.mirrors.iter().map(String::as_str));
        text.push(b'[');
        for (number, uri) in uris.enumerate() {
            if number > 0 {
                text.push(b',');
            }
            let mut entry = Object::begin(text);
            entry.plain("status", if is_used { "used" } else { "waiting" });
            entry.text("uri", uri);
            entry.end();
        }
        text.push(b']');
    }

    /// The server that its bytes come from. Which mirror gives how much of them is not told here.
    pub(super) fn write_servers(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        let mut file = Object::begin(text);
        file.plain("index", "1");
        let list = file.name("servers");
        list.push(b'[');
        let mut server = Object::begin(list);
        server.text("currentUri", &self.task.url);
        server.number("downloadSpeed", self.speed());
        server.text("uri", &self.task.url);
        server.end();
        list.push(b']');
        file.end();
        text.push(b']');
    }

    /// Which pieces are there as a whole, the first in the highest bit. None if that is not known.
    fn bitfield(&self) -> Option<Vec<u8>> {
        let (total, pieces) = (self.total_bytes(), self.pieces());
        if pieces == 0 || pieces > MAX_PIECES {
            return None;
        }
        let mut bits = vec![0; usize::try_from(pieces.div_ceil(8)).ok()?];
        let mut mark = |start: u64, end: u64| {
            let last = if end >= total { pieces } else { end / PIECE_BYTES };
            for piece in start.div_ceil(PIECE_BYTES)..last {
                if let Some(byte) = usize::try_from(piece / 8).ok().and_then(|index| bits.get_mut(index)) {
                    *byte |= 0x80_u8 >> (piece % 8);
                }
            }
        };
        match (&self.runtime, self.task.status) {
            (_, TaskStatus::Completed) => mark(0, total),
            (Some(runtime), _) if runtime.segments.is_empty() => mark(0, runtime.downloaded_bytes),
            (Some(runtime), _) => spans(&runtime.segments)
                .into_iter()
                .for_each(|(start, end)| mark(start, end)),
            // Which bytes those are that a download has that stands still, is not told.
            (None, status)
                if self.done_bytes() == 0 && status != TaskStatus::Pending && status != TaskStatus::Paused => {}
            (None, _) => return None,
        }
        Some(bits)
    }
}

/// The stretches of a file that are there, joined where they touch.
fn spans(segments: &[SegmentDto]) -> Vec<(u64, u64)> {
    let mut sorted: Vec<_> = segments
        .iter()
        .map(|segment| {
            (
                segment.start_byte,
                segment.start_byte.saturating_add(segment.downloaded_bytes),
            )
        })
        .collect();
    sorted.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::with_capacity(sorted.len());
    for (start, end) in sorted {
        match spans.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => spans.push((start, end)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn written(task: &Value, runtime: Option<TaskRuntimeDto>, keys: &[&str]) -> Value {
        let text = task.to_string();
        let download = Download {
            gid: Gid::chosen("00000000000000a1").unwrap(),
            task: serde_json::from_str(&text).unwrap(),
            runtime,
            is_removed: false,
        };
        let mut text = Vec::new();
        download.write(&mut text, Keys::of(keys));
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn a_download_that_waits_has_aria2s_keys_and_no_others() {
        let task = json!({"url": "http://a.test/\"f\"", "mirrors": ["http://b.test/f"], "fileName": "f\"", "saveDir": "/d",
            "status": 0});
        assert_eq!(
            written(&task, None, &[]),
            json!({"completedLength": "0", "connections": "0", "dir": "/d", "downloadSpeed": "0", "files": [{
                "completedLength": "0", "index": "1", "length": "0", "path": "/d/f\"", "selected": "true", "uris": [
                    {"status": "waiting", "uri": "http://a.test/\"f\""}, {"status": "waiting", "uri": "http://b.test/f"}]}],
                "gid": "00000000000000a1", "numPieces": "0", "pieceLength": "1048576", "status": "waiting",
                "totalLength": "0", "uploadLength": "0", "uploadSpeed": "0"})
        );
    }

    #[test]
    fn only_the_keys_that_are_asked_for_are_written() {
        let task = json!({"status": 4, "errorKind": "not-found", "errorMessage": "gone"});
        let keys = ["gid", "errorCode", "errorMessage", "status", "nope"];
        let expect = json!({"gid": "00000000000000a1", "errorCode": "3", "errorMessage": "gone", "status": "error"});
        assert_eq!(written(&task, None, &keys), expect);
        assert_eq!(written(&task, None, &["nope"]), json!({}));
        assert_eq!(written(&json!({"status": 1}), None, &["errorCode"]), json!({}));
    }

    #[test]
    fn the_bitfield_has_the_pieces_that_are_there_as_a_whole() {
        let mib = PIECE_BYTES;
        let segment = |start: u64, end: u64, done: u64| SegmentDto {
            start_byte: start,
            end_byte: end - 1,
            downloaded_bytes: done,
            ..SegmentDto::default()
        };
        let check = |total: u64, segments: Vec<SegmentDto>, done: u64, expect: &str| {
            let runtime = TaskRuntimeDto {
                total_bytes: total,
                downloaded_bytes: done,
                segments,
                ..TaskRuntimeDto::default()
            };
            let written = written(&json!({"status": 1}), Some(runtime), &["bitfield"]);
            assert_eq!(written["bitfield"], expect);
        };
        check(8 * mib, vec![], 2 * mib + 1, "c0");
        check(9 * mib + 1, vec![], 0, "0000");
        check(9 * mib + 1, vec![], 9 * mib + 1, "ffc0");
        // Two segments that touch within a piece, and one that has its end only.
        let halves = vec![
            segment(0, mib / 2, mib / 2),
            segment(mib / 2, 2 * mib, mib),
            segment(7 * mib, 8 * mib, mib),
        ];
        check(8 * mib, halves, 0, "81");
        let complete = written(
            &json!({"status": 3, "totalBytes": 1, "downloadedBytes": 1}),
            None,
            &["bitfield"],
        );
        assert_eq!(complete["bitfield"], "80");
        assert_eq!(
            written(&json!({"status": 2, "totalBytes": 9}), None, &["bitfield"]),
            json!({})
        );
    }
}
