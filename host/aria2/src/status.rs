//! Serializes aria2's status record of a download. Pure.
//!
//! Texts of the task's record are JSON already and are copied unchanged.

use protocol::{SegmentDto, TaskRuntimeDto, TaskStatus};
use serde_json::{Value, value::RawValue};

use crate::{board::Download, vocabulary::fault::error_code};

/// The unit of aria2's bitfield.
const PIECE_BYTES: u64 = 1024 * 1024;

/// The largest bitfield: a terabyte. A larger file reports the number of bytes only.
const MAX_PIECES: u64 = 1024 * 1024;

/// An empty JSON string.
const EMPTY: &str = "\"\"";

/// The members of a task's record that the status needs, as JSON.
#[derive(Debug)]
struct Record<'t> {
    url: &'t str,
    mirrors: &'t str,
    file_name: &'t str,
    save_dir: &'t str,
    downloaded_bytes: u64,
    total_bytes: u64,
    error_message: &'t str,
    error_kind: &'t str,
}

impl<'t> Record<'t> {
    fn of(download: &'t Download) -> Self {
        let mut record = Self {
            url: EMPTY,
            mirrors: "[]",
            file_name: EMPTY,
            save_dir: EMPTY,
            downloaded_bytes: 0,
            total_bytes: 0,
            error_message: EMPTY,
            error_kind: EMPTY,
        };
        download.task.members(&mut |name, value| match name {
            "url" => record.url = value,
            "mirrors" => record.mirrors = value,
            "fileName" => record.file_name = value,
            "saveDir" => record.save_dir = value,
            "downloadedBytes" => record.downloaded_bytes = value.parse().unwrap_or(0),
            "totalBytes" => record.total_bytes = value.parse().unwrap_or(0),
            "errorMessage" => record.error_message = value,
            "errorKind" => record.error_kind = value,
            _ => {}
        });
        record
    }
}

/// A JSON string without quotes.
fn unquoted(text: &str) -> &str {
    let text = text.strip_prefix('"').unwrap_or(text);
    text.strip_suffix('"').unwrap_or(text)
}

#[derive(Debug)]
pub(crate) struct Status<'t> {
    download: &'t Download,
    record: Record<'t>,
}

/// A set of requested keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Keys(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Bitfield,
    CompletedLength,
    Connections,
    Dir,
    DownloadSpeed,
    ErrorCode,
    ErrorMessage,
    Files,
    Gid,
    NumPieces,
    PieceLength,
    Status,
    TotalLength,
    UploadLength,
    UploadSpeed,
}

/// In output order.
const KEYS: [(&str, Key); 15] = [
    ("bitfield", Key::Bitfield),
    ("completedLength", Key::CompletedLength),
    ("connections", Key::Connections),
    ("dir", Key::Dir),
    ("downloadSpeed", Key::DownloadSpeed),
    ("errorCode", Key::ErrorCode),
    ("errorMessage", Key::ErrorMessage),
    ("files", Key::Files),
    ("gid", Key::Gid),
    ("numPieces", Key::NumPieces),
    ("pieceLength", Key::PieceLength),
    ("status", Key::Status),
    ("totalLength", Key::TotalLength),
    ("uploadLength", Key::UploadLength),
    ("uploadSpeed", Key::UploadSpeed),
];

impl Keys {
    /// The named keys; an empty list means all.
    pub(crate) fn of(names: &[&str]) -> Self {
        let bit = |name: &str| {
            KEYS.iter()
                .position(|(key, _)| *key == name)
                .map_or(0, |index| 1 << index)
        };
        if names.is_empty() {
            return Self(u32::MAX);
        }
        Self(names.iter().fold(0, |keys, name| keys | bit(name)))
    }
}

/// A JSON object under construction.
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

    /// A value that is JSON already.
    fn json(&mut self, name: &str, value: &str) {
        self.name(name).extend_from_slice(value.as_bytes());
    }

    /// A string that needs no escaping, in parts.
    fn plain(&mut self, name: &str, parts: &[&str]) {
        let text = self.name(name);
        text.push(b'"');
        for part in parts {
            text.extend_from_slice(part.as_bytes());
        }
        text.push(b'"');
    }

    fn number(&mut self, name: &str, value: u64) {
        self.plain(name, &[&value.to_string()]);
    }

    fn end(self) {
        self.text.push(b'}');
    }
}

impl<'t> Status<'t> {
    pub(crate) fn of(download: &'t Download) -> Self {
        let record = Record::of(download);
        Self { download, record }
    }

    fn state(&self) -> TaskStatus {
        self.download.task.status()
    }

    fn progress(&self) -> Option<&TaskRuntimeDto> {
        self.download.progress.as_deref()
    }

    /// The status in aria2's terms.
    fn word(&self) -> &'static str {
        match self.state() {
            _ if self.download.is_removed => "removed",
            TaskStatus::Downloading | TaskStatus::Preparing => "active",
            TaskStatus::Pending => "waiting",
            TaskStatus::Paused => "paused",
            TaskStatus::Completed => "complete",
            TaskStatus::Error => "error",
        }
    }

    fn done_bytes(&self) -> u64 {
        let progress = self.progress();
        progress.map_or(self.record.downloaded_bytes, |progress| progress.downloaded_bytes)
    }

    fn total_bytes(&self) -> u64 {
        let measured = self.progress().map_or(0, |progress| progress.total_bytes);
        if measured > 0 {
            measured
        } else {
            self.record.total_bytes
        }
    }

    fn pieces(&self) -> u64 {
        self.total_bytes().div_ceil(PIECE_BYTES)
    }

    fn speed(&self) -> u64 {
        let progress = self.progress().filter(|_| self.download.is_active());
        progress.map_or(0, |progress| progress.download_bps)
    }

    /// Writes the requested keys.
    pub(crate) fn write(&self, text: &mut Vec<u8>, keys: Keys) {
        let mut object = Object::begin(text);
        for (index, (name, key)) in KEYS.into_iter().enumerate() {
            if keys.0 & (1 << index) != 0 {
                self.write_key(&mut object, name, key);
            }
        }
        object.end();
    }

    fn write_key(&self, object: &mut Object<'_>, name: &str, key: Key) {
        let is_stopped = self.download.is_stopped();
        match key {
            Key::Bitfield => {
                if let Some(bits) = self.bitfield() {
                    object.plain(name, &[&data_encoding::HEXLOWER.encode(&bits)]);
                }
            }
            Key::CompletedLength => object.number(name, self.done_bytes()),
            Key::Connections => {
                let progress = self.progress().filter(|_| self.download.is_active());
                let connections = progress.and_then(|progress| progress.active_transfers);
                object.number(name, connections.unwrap_or(0).into());
            }
            Key::Dir => object.json(name, self.record.save_dir),
            Key::DownloadSpeed => object.number(name, self.speed()),
            Key::ErrorCode if is_stopped => object.number(name, self.error_code().into()),
            Key::ErrorMessage if is_stopped => object.json(name, self.record.error_message),
            Key::ErrorCode | Key::ErrorMessage => {}
            Key::Files => self.write_files(object.name(name)),
            Key::Gid => object.plain(name, &[&self.download.gid.to_string()]),
            Key::NumPieces => object.number(name, self.pieces()),
            Key::PieceLength => object.number(name, PIECE_BYTES),
            Key::Status => object.plain(name, &[self.word()]),
            Key::TotalLength => object.number(name, self.total_bytes()),
            Key::UploadLength | Key::UploadSpeed => object.plain(name, &["0"]),
        }
    }

    fn error_code(&self) -> u8 {
        /// aria2's code for a removed download.
        const REMOVED: u8 = 31;
        match self.state() {
            _ if self.download.is_removed => REMOVED,
            TaskStatus::Error => error_code(unquoted(self.record.error_kind)),
            _ => 0,
        }
    }

    /// The result of `getFiles`: one file.
    pub(crate) fn write_files(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        let mut file = Object::begin(text);
        file.number("completedLength", self.done_bytes());
        file.plain("index", &["1"]);
        file.number("length", self.total_bytes());
        let dir = unquoted(self.record.save_dir);
        let slash = if dir.ends_with('/') { "" } else { "/" };
        file.plain("path", &[dir, slash, unquoted(self.record.file_name)]);
        file.plain("selected", &["true"]);
        self.write_uris(file.name("uris"));
        file.end();
        text.push(b']');
    }

    /// The result of `getUris`: used and waiting ones.
    pub(crate) fn write_uris(&self, text: &mut Vec<u8>) {
        let is_used = self.download.is_active() || self.download.is_stopped() || self.done_bytes() > 0;
        let mirrors: Vec<&RawValue> = match self.record.mirrors {
            "[]" => Vec::new(),
            list => serde_json::from_str(list).unwrap_or_default(),
        };
        let uris = std::iter::once(self.record.url).chain(mirrors.into_iter().map(RawValue::get));
        text.push(b'[');
        for (number, uri) in uris.enumerate() {
            if number > 0 {
                text.push(b',');
            }
            let mut entry = Object::begin(text);
            entry.plain("status", &[if is_used { "used" } else { "waiting" }]);
            entry.json("uri", uri);
            entry.end();
        }
        text.push(b']');
    }

    /// The result of `getServers`: one entry for each connection that receives bytes.
    pub(crate) fn write_servers(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        let mut file = Object::begin(text);
        file.plain("index", &["1"]);
        let list = file.name("servers");
        list.push(b'[');
        let servers = self.progress().map(|progress| &*progress.servers).unwrap_or_default();
        let mut is_first = true;
        for server in servers {
            let uri = Value::from(&*server.url).to_string();
            let current = if server.current_url.is_empty() {
                uri.clone()
            } else {
                Value::from(&*server.current_url).to_string()
            };
            for speed in &server.download_bps {
                if !std::mem::replace(&mut is_first, false) {
                    list.push(b',');
                }
                let mut entry = Object::begin(list);
                entry.json("currentUri", &current);
                entry.number("downloadSpeed", *speed);
                entry.json("uri", &uri);
                entry.end();
            }
        }
        list.push(b']');
        file.end();
        text.push(b']');
    }

    /// A bit for each complete piece, the first in the highest bit; none if that is unknown.
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
        match (self.progress(), self.state()) {
            (_, TaskStatus::Completed) => mark(0, total),
            (Some(progress), _) if progress.segments.is_empty() => mark(0, progress.downloaded_bytes),
            (Some(progress), _) => spans(&progress.segments)
                .into_iter()
                .for_each(|(start, end)| mark(start, end)),
            // For a download without a run, only the number of bytes is known.
            (None, status)
                if self.done_bytes() == 0 && status != TaskStatus::Pending && status != TaskStatus::Paused => {}
            (None, _) => return None,
        }
        Some(bits)
    }
}

/// The received ranges of a file, adjacent ones merged.
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
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::{service::fake, vocabulary::gid::Gid};

    fn written(task: &Value, progress: Option<TaskRuntimeDto>, keys: &[&str]) -> Value {
        let download = Download {
            gid: Gid::chosen("00000000000000a1").unwrap(),
            task: Arc::new(fake::task(task)),
            progress: progress.map(Arc::new),
            is_removed: false,
        };
        let mut text = Vec::new();
        Status::of(&download).write(&mut text, Keys::of(keys));
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
        let login = json!({"status": 4, "errorKind": "login-required", "errorMessage": "log in"});
        let expect = json!({"errorCode": "24", "errorMessage": "log in", "status": "error"});
        assert_eq!(written(&login, None, &keys[1..4]), expect);
        let waits = json!({"status": 0, "errorKind": "account-limit", "errorMessage": "waiting for account limit"});
        assert_eq!(written(&waits, None, &keys[1..4]), json!({"status": "waiting"}));
    }

    #[test]
    fn each_connection_is_a_server_with_where_it_was_led() {
        let servers = |servers: Value| {
            let progress = serde_json::from_value(json!({"servers": servers})).unwrap();
            let download = Download {
                gid: Gid::chosen("00000000000000a1").unwrap(),
                task: Arc::new(fake::task(&json!({"url": "http://a.test/f", "status": 1}))),
                progress: Some(Arc::new(progress)),
                is_removed: false,
            };
            let mut text = Vec::new();
            Status::of(&download).write_servers(&mut text);
            serde_json::from_slice::<Value>(&text).unwrap()
        };
        let two = json!([
            {"url": "http://a.test/\"f\"", "currentUrl": "http://c.test/g", "downloadBps": [5, 0]},
            {"url": "http://b.test/f", "downloadBps": [7]}
        ]);
        let entry =
            |uri: &str, current: &str, speed: &str| json!({"uri": uri, "currentUri": current, "downloadSpeed": speed});
        let a = "http://a.test/\"f\"";
        assert_eq!(
            servers(two),
            json!([{"index": "1", "servers": [entry(a, "http://c.test/g", "5"), entry(a, "http://c.test/g", "0"),
                entry("http://b.test/f", "http://b.test/f", "7")]}])
        );
        assert_eq!(servers(json!([])), json!([{"index": "1", "servers": []}]));
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
            let progress = TaskRuntimeDto {
                total_bytes: total,
                downloaded_bytes: done,
                segments,
                ..TaskRuntimeDto::default()
            };
            let written = written(&json!({"status": 1}), Some(progress), &["bitfield"]);
            assert_eq!(written["bitfield"], expect);
        };
        check(8 * mib, vec![], 2 * mib + 1, "c0");
        check(9 * mib + 1, vec![], 0, "0000");
        check(9 * mib + 1, vec![], 9 * mib + 1, "ffc0");
        // Two adjacent segments within a piece, and one with only its end received.
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
