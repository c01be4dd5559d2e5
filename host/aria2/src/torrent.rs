//! What the service knows of a torrent beyond the record of its task, and how aria2 shows it. Pure.

use std::fmt::Write as _;

use protocol::{TorrentDto, TorrentFileDto, TorrentPeerDto, TorrentPieces};
use serde_json::{Map, Value, json};

/// The size of a piece that aria2 shows before the metadata is known.
const METADATA_PIECE_BYTES: u32 = 16 * 1024;

/// Each part is there if it was asked for and is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Torrent {
    pub(crate) about: TorrentDto,
    pub(crate) files: Vec<TorrentFileDto>,
    pub(crate) pieces: Option<TorrentPieces>,
}

/// What is asked of the service besides [`Torrent::about`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    pub(crate) files: bool,
    pub(crate) pieces: bool,
}

impl Parts {
    pub(crate) const ALL: Self = Self {
        files: true,
        pieces: true,
    };

    pub(crate) const FILES: Self = Self {
        files: true,
        pieces: false,
    };
}

impl Torrent {
    /// The value of `bittorrent`. Before the metadata is known it has the trackers only.
    pub(crate) fn bittorrent(&self) -> Value {
        let about = &self.about;
        let mut described = Map::new();
        let mut put = |name: &str, value: Value| drop(described.insert(name.to_owned(), value));
        put("announceList", json!(about.trackers));
        if about.has_metadata {
            if !about.comment.is_empty() {
                put("comment", json!(about.comment));
            }
            if let Some(created) = about.created_at {
                put("creationDate", json!(created));
            }
            put("info", json!({"name": about.name}));
            put("mode", json!(if about.is_multi_file { "multi" } else { "single" }));
        }
        described.into()
    }

    pub(crate) fn piece_bytes(&self) -> u32 {
        if self.about.has_metadata {
            self.about.piece_bytes
        } else {
            METADATA_PIECE_BYTES
        }
    }

    /// Pieces that are there, as hexadecimal digits; none before the metadata is known.
    pub(crate) fn bitfield(&self) -> Option<&str> {
        let bits = self.pieces.as_ref().map(|pieces| &*pieces.bitfield);
        bits.filter(|bits| !bits.is_empty())
    }

    /// The name that aria2 gives to the metadata while it is looked for.
    pub(crate) fn metadata_path(&self) -> String {
        let known = [&self.about.name, &self.about.info_hash];
        let name = known.into_iter().find(|name| !name.is_empty());
        format!("[METADATA]{}", name.map_or("", String::as_str))
    }

    /// Whether a file is downloaded, or will be.
    pub(crate) fn is_selected(&self, file: &TorrentFileDto) -> bool {
        let chosen = &self.about.options.files;
        chosen.is_empty() || chosen.binary_search(&file.index).is_ok()
    }

    /// The URLs of a file at the web servers of the torrent (BEP 19).
    pub(crate) fn uris(&self, file: &TorrentFileDto) -> Vec<String> {
        let (about, mut uris) = (&self.about, Vec::new());
        for base in about.webseeds.iter().chain(&about.options.webseeds) {
            let uri = match (about.is_multi_file, base.strip_suffix('/')) {
                (true, stripped) => {
                    let folder = stripped.unwrap_or(base);
                    format!("{folder}/{}/{}", escaped(&about.name), escaped(&file.path))
                }
                (false, Some(folder)) => format!("{folder}/{}", escaped(&about.name)),
                (false, None) => base.clone(),
            };
            if !uris.contains(&uri) {
                uris.push(uri);
            }
        }
        uris
    }
}

/// A path as it stands in a URL.
fn escaped(path: &str) -> String {
    encoded(path.bytes(), |byte| {
        byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte)
    })
}

fn encoded(bytes: impl Iterator<Item = u8>, is_plain: impl Fn(u8) -> bool) -> String {
    let mut text = String::new();
    for byte in bytes {
        if is_plain(byte) {
            text.push(byte.into());
        } else {
            let _infallible = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// A peer of `getPeers`.
pub(crate) fn peer(peer: &TorrentPeerDto) -> Value {
    let TorrentPeerDto {
        ip,
        port,
        peer_id,
        bitfield,
        is_seed,
        download_bps,
        upload_bps,
        peer_choking,
        am_choking,
        ..
    } = peer;
    let id = data_encoding::HEXLOWER_PERMISSIVE.decode(peer_id.as_bytes());
    json!({
        "amChoking": am_choking.to_string(),
        "bitfield": bitfield,
        "downloadSpeed": download_bps.to_string(),
        "ip": ip,
        "peerChoking": peer_choking.to_string(),
        // aria2 escapes everything but letters and digits.
        "peerId": encoded(id.unwrap_or_default().into_iter(), |byte| byte.is_ascii_alphanumeric()),
        "port": port.to_string(),
        "seeder": is_seed.to_string(),
        "uploadSpeed": upload_bps.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_shown_as_aria2_shows_it() {
        let known = TorrentPeerDto {
            ip: "127.0.0.1".into(),
            port: 6951,
            peer_id: "41322d312d33362d302dca07d1ae068bbd3dbac0".into(),
            bitfield: "ff".into(),
            is_seed: true,
            download_bps: 21_671,
            peer_choking: true,
            am_choking: true,
            ..TorrentPeerDto::default()
        };
        assert_eq!(
            peer(&known),
            json!({"amChoking": "true", "bitfield": "ff", "downloadSpeed": "21671", "ip": "127.0.0.1", "peerChoking": "true",
                "peerId": "A2%2D1%2D36%2D0%2D%CA%07%D1%AE%06%8B%BD%3D%BA%C0", "port": "6951", "seeder": "true",
                "uploadSpeed": "0"})
        );
    }

    #[test]
    fn a_web_server_has_a_file_below_the_name_of_the_torrent() {
        let uris = |is_multi_file: bool, base: &str| {
            let about = TorrentDto {
                name: "n".into(),
                is_multi_file,
                webseeds: vec![base.into(), base.into()],
                ..TorrentDto::default()
            };
            let torrent = Torrent {
                about,
                ..Torrent::default()
            };
            let file = TorrentFileDto {
                path: if is_multi_file { "a/b" } else { "n" }.into(),
                ..TorrentFileDto::default()
            };
            torrent.uris(&file)
        };
        assert_eq!(uris(true, "http://w.test/x"), ["http://w.test/x/n/a/b"]);
        assert_eq!(uris(true, "http://w.test/x/"), ["http://w.test/x/n/a/b"]);
        assert_eq!(uris(false, "http://w.test/x/"), ["http://w.test/x/n"]);
        assert_eq!(uris(false, "http://w.test/f.bin"), ["http://w.test/f.bin"]);
    }
}
