//! Serializes aria2's status record of a download. Pure.
//!
//! Texts of the task's record are JSON already and are copied unchanged.

use protocol::{SegmentDto, TaskRuntimeDto, TaskStatus, TorrentFileDto};
use serde_json::{Value, value::RawValue};

use crate::{
    board::{Download, Kin, State},
    torrent::{Parts, Torrent},
    vocabulary::fault::error_code,
};

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
    uploaded_bytes: u64,
    info_hash: &'t str,
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
            uploaded_bytes: 0,
            info_hash: EMPTY,
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
            "uploadedBytes" => record.uploaded_bytes = value.parse().unwrap_or(0),
            "infoHash" => record.info_hash = value,
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
    Bittorrent,
    CompletedLength,
    Connections,
    Dir,
    DownloadSpeed,
    ErrorCode,
    ErrorMessage,
    Files,
    FollowedBy,
    Following,
    Gid,
    InfoHash,
    NumPieces,
    NumSeeders,
    PieceLength,
    Seeder,
    Status,
    TotalLength,
    UploadLength,
    UploadSpeed,
}

/// In output order.
const KEYS: [(&str, Key); 21] = [
    ("bitfield", Key::Bitfield),
    ("bittorrent", Key::Bittorrent),
    ("completedLength", Key::CompletedLength),
    ("connections", Key::Connections),
    ("dir", Key::Dir),
    ("downloadSpeed", Key::DownloadSpeed),
    ("errorCode", Key::ErrorCode),
    ("errorMessage", Key::ErrorMessage),
    ("files", Key::Files),
    ("followedBy", Key::FollowedBy),
    ("following", Key::Following),
    ("gid", Key::Gid),
    ("infoHash", Key::InfoHash),
    ("numPieces", Key::NumPieces),
    ("numSeeders", Key::NumSeeders),
    ("pieceLength", Key::PieceLength),
    ("seeder", Key::Seeder),
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

    fn has(self, wanted: Key) -> bool {
        KEYS.iter()
            .position(|(_, key)| *key == wanted)
            .is_some_and(|index| self.0 & (1 << index) != 0)
    }

    /// What must be known of a torrent to write these keys; none if its task's record is enough.
    pub(crate) fn parts(self) -> Option<Parts> {
        let (files, pieces) = (self.has(Key::Files), self.has(Key::Bitfield));
        let about = [Key::Bittorrent, Key::NumPieces, Key::PieceLength];
        let is_needed = files || pieces || about.into_iter().any(|key| self.has(key));
        is_needed.then_some(Parts { files, pieces })
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

    fn progress(&self) -> Option<&TaskRuntimeDto> {
        self.download.progress.as_deref()
    }

    /// The status in aria2's terms.
    fn word(&self) -> &'static str {
        match self.download.state() {
            _ if self.download.is_removed => "removed",
            State::Downloading | State::Seeding => "active",
            State::Waiting => "waiting",
            State::Paused => "paused",
            State::Complete => "complete",
            State::Failed => "error",
        }
    }

    fn torrent(&self) -> Option<&Torrent> {
        self.download.torrent.as_deref()
    }

    fn is_whole(&self) -> bool {
        self.download.task.status() == TaskStatus::Completed
    }

    fn done_bytes(&self) -> u64 {
        // A run that seeds counts from its own start, and a removed torrent has no run.
        let torrent = self
            .torrent()
            .filter(|torrent| !torrent.files.is_empty() && self.download.is_removed);
        if let Some(torrent) = torrent {
            let wanted = torrent.files.iter().filter(|file| torrent.is_selected(file));
            return wanted.map(|file| file.done_bytes).sum();
        }
        let progress = self.progress().filter(|_| !self.is_whole());
        progress.map_or(self.record.downloaded_bytes, |progress| progress.downloaded_bytes)
    }

    fn total_bytes(&self) -> u64 {
        let measured = self.progress().map_or(0, |progress| progress.total_bytes);
        if measured > 0 && !self.is_whole() {
            measured
        } else {
            self.record.total_bytes
        }
    }

    fn uploaded_bytes(&self) -> u64 {
        let measured = self.progress().map_or(0, |progress| progress.uploaded_bytes);
        measured.max(self.record.uploaded_bytes)
    }

    fn pieces(&self) -> u64 {
        match self.torrent() {
            Some(torrent) => torrent.about.pieces.into(),
            None => self.total_bytes().div_ceil(PIECE_BYTES),
        }
    }

    /// A number of the run, which is 0 without one.
    fn measured<T: Into<u64>>(&self, read: impl FnOnce(&TaskRuntimeDto) -> T) -> u64 {
        let progress = self.progress().filter(|_| self.download.is_active());
        progress.map_or(0, |progress| read(progress).into())
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
            Key::Bitfield => self.write_bitfield(object, name),
            Key::CompletedLength => object.number(name, self.done_bytes()),
            Key::Connections => object.number(
                name,
                self.measured(|progress| progress.connected_peers.or(progress.active_transfers).unwrap_or(0)),
            ),
            Key::Dir => object.json(name, self.record.save_dir),
            Key::DownloadSpeed => object.number(name, self.measured(|progress| progress.download_bps)),
            Key::ErrorCode if is_stopped => object.number(name, self.error_code().into()),
            Key::ErrorMessage if is_stopped => object.json(name, self.record.error_message),
            Key::ErrorCode | Key::ErrorMessage => {}
            Key::Files => self.write_files(object.name(name)),
            Key::FollowedBy | Key::Following => self.write_kin(object, name, key),
            Key::Gid => object.plain(name, &[&self.download.gid.to_string()]),
            Key::NumPieces => object.number(name, self.pieces()),
            Key::PieceLength => object.number(
                name,
                self.torrent()
                    .map_or(PIECE_BYTES, |torrent| torrent.piece_bytes().into()),
            ),
            Key::Status => object.plain(name, &[self.word()]),
            Key::TotalLength => object.number(name, self.total_bytes()),
            Key::UploadLength => object.number(name, self.uploaded_bytes()),
            Key::UploadSpeed => object.number(name, self.measured(|progress| progress.upload_bps)),
            Key::Bittorrent | Key::InfoHash | Key::NumSeeders | Key::Seeder => {
                if self.download.task.is_torrent() {
                    self.write_of_torrent(object, name, key);
                }
            }
        }
    }

    /// A key that only torrents have.
    fn write_of_torrent(&self, object: &mut Object<'_>, name: &str, key: Key) {
        match (key, self.torrent()) {
            (Key::Bittorrent, Some(torrent)) => object.json(name, &torrent.bittorrent().to_string()),
            (Key::InfoHash, _) => object.json(name, self.record.info_hash),
            (Key::NumSeeders, _) => {
                object.number(name, self.measured(|progress| progress.connected_seeds.unwrap_or(0)));
            }
            (Key::Seeder, _) if !self.download.is_stopped() => {
                object.plain(name, &[if self.is_whole() { "true" } else { "false" }]);
            }
            _ => {}
        }
    }

    fn write_kin(&self, object: &mut Object<'_>, name: &str, key: Key) {
        match (&self.download.kin, key) {
            (Kin::First(others), Key::FollowedBy) => {
                let gids: Vec<_> = others.iter().map(ToString::to_string).collect();
                object.json(name, &Value::from(gids).to_string());
            }
            (Kin::Other(first), Key::Following) => object.plain(name, &[&first.to_string()]),
            _ => {}
        }
    }

    fn write_bitfield(&self, object: &mut Object<'_>, name: &str) {
        match self.torrent() {
            Some(torrent) => {
                if let Some(bits) = torrent.bitfield() {
                    object.plain(name, &[bits]);
                }
            }
            None => {
                if let Some(bits) = self.bitfield() {
                    object.plain(name, &[&data_encoding::HEXLOWER.encode(&bits)]);
                }
            }
        }
    }

    fn error_code(&self) -> u8 {
        /// aria2's code for a removed download.
        const REMOVED: u8 = 31;
        match self.download.state() {
            _ if self.download.is_removed => REMOVED,
            State::Failed => error_code(unquoted(self.record.error_kind)),
            _ => 0,
        }
    }

    /// The result of `getFiles`: one file, or those of a torrent.
    pub(crate) fn write_files(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        match self.torrent() {
            Some(torrent) if torrent.files.is_empty() && !torrent.about.has_metadata => {
                let path = Value::from(torrent.metadata_path()).to_string();
                self.write_torrent_file(text, torrent, &TorrentFileDto::default(), &path);
            }
            Some(torrent) if !torrent.files.is_empty() => {
                for (number, file) in torrent.files.iter().enumerate() {
                    if number > 0 {
                        text.push(b',');
                    }
                    self.write_torrent_file(text, torrent, file, &Value::from(&*file.file_path).to_string());
                }
            }
            _ => self.write_file(text),
        }
        text.push(b']');
    }

    fn write_torrent_file(&self, text: &mut Vec<u8>, torrent: &Torrent, file: &TorrentFileDto, path: &str) {
        let is_metadata = !torrent.about.has_metadata;
        let mut object = Object::begin(text);
        object.number("completedLength", file.done_bytes);
        object.number("index", u64::from(file.index) + 1);
        object.number("length", file.size_bytes);
        object.json("path", path);
        let is_selected = torrent.is_selected(file) || is_metadata;
        object.plain("selected", &[if is_selected { "true" } else { "false" }]);
        let uris = if is_metadata { Vec::new() } else { torrent.uris(file) };
        let uris = uris.into_iter().map(|uri| Value::from(uri).to_string());
        self.write_uri_list(object.name("uris"), uris);
        object.end();
    }

    fn write_file(&self, text: &mut Vec<u8>) {
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
    }

    /// The result of `getUris`: used and waiting ones. Those of a torrent are web servers that have its first file.
    pub(crate) fn write_uris(&self, text: &mut Vec<u8>) {
        if self.download.task.is_torrent() {
            let first = self
                .torrent()
                .and_then(|torrent| Some((torrent, torrent.files.first()?)));
            let uris = first.map(|(torrent, file)| torrent.uris(file)).unwrap_or_default();
            self.write_uri_list(text, uris.into_iter().map(|uri| Value::from(uri).to_string()));
            return;
        }
        let mirrors: Vec<&RawValue> = match self.record.mirrors {
            "[]" => Vec::new(),
            list => serde_json::from_str(list).unwrap_or_default(),
        };
        let uris = std::iter::once(self.record.url).chain(mirrors.into_iter().map(RawValue::get));
        self.write_uri_list(text, uris);
    }

    /// Each URI is JSON already.
    fn write_uri_list(&self, text: &mut Vec<u8>, uris: impl Iterator<Item: AsRef<str>>) {
        let is_used = self.download.is_active() || self.download.is_stopped() || self.done_bytes() > 0;
        text.push(b'[');
        for (number, uri) in uris.enumerate() {
            if number > 0 {
                text.push(b',');
            }
            let mut entry = Object::begin(text);
            entry.plain("status", &[if is_used { "used" } else { "waiting" }]);
            entry.json("uri", uri.as_ref());
            entry.end();
        }
        text.push(b']');
    }

    /// The result of `getServers`: one entry for each connection that receives bytes. The web servers of a torrent are
    /// listed with its first file.
    pub(crate) fn write_servers(&self, text: &mut Vec<u8>) {
        text.push(b'[');
        self.write_servers_of_first(text);
        let files = self.torrent().map_or(1, |torrent| torrent.files.len());
        for index in 2..=files {
            text.push(b',');
            let mut file = Object::begin(text);
            file.plain("index", &[&index.to_string()]);
            file.json("servers", "[]");
            file.end();
        }
        text.push(b']');
    }

    fn write_servers_of_first(&self, text: &mut Vec<u8>) {
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
                entry.json("uri", uri.as_ref());
                entry.end();
            }
        }
        list.push(b']');
        file.end();
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
        match (self.progress(), self.download.state()) {
            _ if self.is_whole() => mark(0, total),
            (Some(progress), _) if progress.segments.is_empty() => mark(0, progress.downloaded_bytes),
            (Some(progress), _) => spans(&progress.segments)
                .into_iter()
                .for_each(|(start, end)| mark(start, end)),
            // For a download without a run, only the number of bytes is known.
            (None, State::Downloading | State::Failed) if self.done_bytes() == 0 => {}
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

    use protocol::{TorrentDto, TorrentPieces, TorrentRequest};
    use serde_json::json;

    use super::*;
    use crate::{service::fake, vocabulary::gid::Gid};

    fn written(task: &Value, progress: Option<TaskRuntimeDto>, keys: &[&str]) -> Value {
        written_of(task, progress, None, keys)
    }

    fn written_of(task: &Value, progress: Option<TaskRuntimeDto>, torrent: Option<Torrent>, keys: &[&str]) -> Value {
        let download = Download {
            gid: Gid::chosen("00000000000000a1").unwrap(),
            task: Arc::new(fake::task(task)),
            progress: progress.map(Arc::new),
            is_removed: false,
            kin: Kin::None,
            torrent: torrent.map(Arc::new),
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

    /// A torrent of two files, the second of which is not wanted.
    fn torrent() -> Torrent {
        let file = |index: u32, path: &str, size_bytes: u64| TorrentFileDto {
            index,
            path: path.into(),
            renamed: None,
            file_path: format!("/d/dir/{path}"),
            size_bytes,
            done_bytes: if index == 0 { 40_000 } else { 9152 },
            wanted: index == 0,
        };
        let about = TorrentDto {
            name: "dir".into(),
            has_metadata: true,
            is_multi_file: true,
            piece_bytes: 16_384,
            pieces: 6,
            comment: "a comment".into(),
            created_at: Some(1_700_000_000),
            trackers: vec![vec!["http://t.test/a".into()]],
            webseeds: vec!["http://w.test/ws/".into()],
            options: TorrentRequest {
                files: vec![0],
                ..TorrentRequest::default()
            },
            ..TorrentDto::default()
        };
        Torrent {
            about,
            files: vec![file(0, "a b.bin", 40_000), file(1, "sub/c.bin", 50_000)],
            pieces: Some(TorrentPieces {
                bitfield: "e0".into(),
                ..TorrentPieces::default()
            }),
        }
    }

    /// What aria2c 1.36 answers for such a torrent.
    #[test]
    fn a_torrent_that_is_seeded_has_aria2s_keys_and_no_others() {
        let task = json!({"url": "magnet:?xt=urn:btih:aa", "fileName": "dir", "saveDir": "/d", "status": 3, "seedingStatus": 1,
            "infoHash": "aa", "downloadedBytes": 49152, "totalBytes": 49152, "uploadedBytes": 7});
        // A run that seeds counts from its own start.
        let progress = TaskRuntimeDto {
            total_bytes: 49152,
            downloaded_bytes: 0,
            connected_peers: Some(3),
            connected_seeds: Some(2),
            upload_bps: 5,
            ..TaskRuntimeDto::default()
        };
        let uris = |path: &str| json!([{"status": "used", "uri": format!("http://w.test/ws/dir/{path}")}]);
        let expect = json!({"bitfield": "e0", "bittorrent": {"announceList": [["http://t.test/a"]], "comment": "a comment",
            "creationDate": 1_700_000_000, "info": {"name": "dir"}, "mode": "multi"}, "completedLength": "49152",
            "connections": "3", "dir": "/d", "downloadSpeed": "0", "files": [
                {"completedLength": "40000", "index": "1", "length": "40000", "path": "/d/dir/a b.bin", "selected": "true",
                    "uris": uris("a%20b.bin")},
                {"completedLength": "9152", "index": "2", "length": "50000", "path": "/d/dir/sub/c.bin", "selected": "false",
                    "uris": uris("sub/c.bin")}],
            "gid": "00000000000000a1", "infoHash": "aa", "numPieces": "6", "numSeeders": "2", "pieceLength": "16384",
            "seeder": "true", "status": "active", "totalLength": "49152", "uploadLength": "7", "uploadSpeed": "5"});
        assert_eq!(written_of(&task, Some(progress), Some(torrent()), &[]), expect);
        let mut ended = task.clone();
        ended["seedingStatus"] = 2.into();
        let keys = ["status", "seeder", "numSeeders", "connections", "errorCode"];
        assert_eq!(
            written_of(&ended, None, Some(torrent()), &keys),
            json!({"status": "complete", "numSeeders": "0", "connections": "0", "errorCode": "0"})
        );
    }

    #[test]
    fn a_magnet_link_has_a_name_and_no_files_until_its_metadata_is_there() {
        let task = json!({"url": "magnet:?xt=urn:btih:aa", "status": 1, "infoHash": "aa"});
        let about = TorrentDto {
            name: "hello".into(),
            trackers: vec![vec!["http://t.test/a".into()]],
            ..TorrentDto::default()
        };
        let torrent = Torrent {
            about,
            ..Torrent::default()
        };
        let keys = ["bitfield", "bittorrent", "files", "numPieces", "pieceLength", "seeder"];
        let expect = json!({"bittorrent": {"announceList": [["http://t.test/a"]]}, "files": [{"completedLength": "0",
            "index": "1", "length": "0", "path": "[METADATA]hello", "selected": "true", "uris": []}], "numPieces": "0",
            "pieceLength": "16384", "seeder": "false"});
        assert_eq!(written_of(&task, None, Some(torrent), &keys), expect);
    }

    #[test]
    fn what_a_download_came_from_and_what_came_from_it_are_named() {
        let gid = |text: &str| Gid::chosen(text).unwrap();
        let written = |kin: Kin| {
            let download = Download {
                gid: gid("00000000000000a1"),
                task: Arc::new(fake::task(&json!({"status": 1}))),
                progress: None,
                is_removed: false,
                kin,
                torrent: None,
            };
            let mut text = Vec::new();
            Status::of(&download).write(&mut text, Keys::of(&["followedBy", "following"]));
            serde_json::from_slice::<Value>(&text).unwrap()
        };
        let others = vec![gid("00000000000000a2"), gid("00000000000000a3")];
        assert_eq!(
            written(Kin::First(others)),
            json!({"followedBy": ["00000000000000a2", "00000000000000a3"]})
        );
        assert_eq!(
            written(Kin::Other(gid("00000000000000a2"))),
            json!({"following": "00000000000000a2"})
        );
        assert_eq!(written(Kin::None), json!({}));
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
                kin: Kin::None,
                torrent: None,
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
