//! Torrents: how a task downloads one, and what is known of it.

use serde::{Deserialize, Serialize};

/// How a torrent is downloaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of one request")]
pub struct TorrentRequest {
    /// The places of the files to download, from 0; empty: all files.
    pub files: Vec<u32>,
    /// URLs of trackers besides those of the torrent. A private torrent uses its own only.
    pub trackers: Vec<String>,
    /// URLs of web servers that have the files, besides those of the torrent.
    pub webseeds: Vec<String>,
    /// Download the pieces from the first to the last, instead of the rarest first.
    pub sequential: bool,
    /// Download the first and last piece of each file before all others, which players need.
    pub first_last_piece_first: bool,
    /// Download the pieces of so many bytes at the beginning of each file before all others; 0: none.
    pub head_bytes: u64,
    /// The same of the end of each file.
    pub tail_bytes: u64,
    /// Ask which files to download once they are known, if there are several and a client can show the question.
    pub ask_for_files: bool,
    /// Once the files of a magnet link are known, wait paused until the task is resumed.
    pub stop_after_metadata: bool,
    /// Complete the task once the metadata of its magnet link is there: no file is downloaded.
    pub metadata_only: bool,
    /// Write the metadata of a magnet link into the save directory once it came, as `<info hash>.torrent`, unless a file has
    /// that name.
    pub save_metadata: bool,
    /// Seconds after which a magnet link whose metadata did not come fails; `null` or 0: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_timeout_secs: Option<u32>,
    /// Seconds without a received byte after which the download fails; `null` or 0: it waits for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_timeout_secs: Option<u32>,
    /// The most connections to peers; `null` or 0: as in the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_peers: Option<u16>,
    /// Paths of files in place of those that the torrent names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<TorrentFilePath>,
}

/// Where a file of a torrent goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TorrentFilePath {
    /// The place of the file in the torrent, from 0.
    pub index: u32,
    /// Its path below the directory of the torrent, with `/` between names; the name of the file if it is the only one.
    pub path: String,
}

/// What is known of a task's torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one torrent")]
pub struct TorrentDto {
    /// The task.
    pub task_id: String,
    /// The info hash in hexadecimal digits.
    pub info_hash: String,
    /// The name of its file or directory in the torrent; empty: unknown.
    pub name: String,
    /// Whether its files are known. A magnet link alone has only a hash; all that follows up to `magnet` is empty, 0 or
    /// false until peers sent the rest.
    pub has_metadata: bool,
    /// Whether it has a directory of files, and not one file.
    pub is_multi_file: bool,
    /// Whether peers come from its own trackers only.
    pub is_private: bool,
    /// The size of all files in bytes.
    pub total_bytes: u64,
    /// How many files there are.
    pub file_count: usize,
    /// The size of a piece in bytes.
    pub piece_bytes: u32,
    /// How many pieces there are.
    pub pieces: u32,
    /// How many pieces are there and verified.
    pub pieces_have: u32,
    /// The comment of its author; empty: none.
    pub comment: String,
    /// The program that made it; empty: unknown.
    pub created_by: String,
    /// When it was made, in Unix seconds.
    pub created_at: Option<i64>,
    /// URLs of its own trackers, in tiers.
    pub trackers: Vec<Vec<String>>,
    /// URLs of web servers that have the files.
    pub webseeds: Vec<String>,
    /// Its magnet link, with its trackers.
    pub magnet: String,
    /// How it is downloaded.
    pub options: TorrentRequest,
    /// Whether it is running: all that follows is 0 or false otherwise.
    pub is_running: bool,
    /// Whether it is complete and uploads to others.
    pub is_seeding: bool,
    /// Connected peers.
    pub peers: usize,
    /// Those of them that have everything.
    pub seeds: usize,
    /// Bytes that arrived and were of no use.
    pub wasted_bytes: u64,
}

/// Params of `daemon.torrent.files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TorrentFilesParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The place of the first file of the page.
    #[serde(default)]
    pub offset: usize,
    /// At most this many, 1 to [`TorrentFiles::MAX`]; so many by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// Files of a torrent, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentFiles {
    /// The page.
    pub files: Vec<TorrentFileDto>,
    /// How many files the torrent has.
    pub total: usize,
    /// The `offset` of the next page; `null`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl TorrentFiles {
    /// The most files of a page: about two megabytes.
    pub const MAX: usize = 10_000;
}

/// A file of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentFileDto {
    /// Its place in the torrent, from 0.
    pub index: u32,
    /// Its path in the torrent, with `/` between names. Of a torrent with one file, its name.
    pub path: String,
    /// Its path below the directory of the torrent, or the name of an only file, if that is another one than in the torrent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// Where it is, or will be once it is complete.
    pub file_path: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// How much of it is there and verified.
    pub done_bytes: u64,
    /// Whether it is downloaded.
    pub wanted: bool,
}

/// The connected peers of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TorrentPeers {
    /// The peers; none if the torrent is not running.
    pub peers: Vec<TorrentPeerDto>,
}

/// A connected peer. Its states are those of BEP 3.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the states of BEP 3, independent of each other"
)]
pub struct TorrentPeerDto {
    /// Its IP address.
    pub ip: String,
    /// Its port.
    pub port: u16,
    /// Its identity, 20 bytes in hexadecimal digits.
    pub peer_id: String,
    /// The program that it says it is; empty: it does not say.
    pub client: String,
    /// How it was found: `user`, `tracker`, `lan`, `dht`, `exchange` or `incoming`.
    pub source: String,
    /// Pieces that it has.
    pub pieces: u32,
    /// Which pieces it has, in hexadecimal digits: the first piece is the highest bit of the first digit. Empty for a torrent
    /// of more than 65,536 pieces.
    pub bitfield: String,
    /// Whether it has everything.
    pub is_seed: bool,
    /// Bytes per second that it sends.
    pub download_bps: u64,
    /// Bytes per second that it gets.
    pub upload_bps: u64,
    /// Bytes that it sent.
    pub downloaded_bytes: u64,
    /// Bytes that it got.
    pub uploaded_bytes: u64,
    /// It does not serve us.
    pub peer_choking: bool,
    /// It wants data of us.
    pub peer_interested: bool,
    /// We do not serve it.
    pub am_choking: bool,
    /// We want data of it.
    pub am_interested: bool,
    /// It owes data for long.
    pub snubbed: bool,
    /// It connected to us.
    pub incoming: bool,
}

/// The trackers of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct TorrentTrackers {
    /// The trackers, by tier.
    pub trackers: Vec<TorrentTrackerDto>,
}

/// A tracker of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentTrackerDto {
    /// Its URL.
    pub url: String,
    /// Its tier, from 0.
    pub tier: usize,
    /// Who named it: `torrent` (or the user for this torrent), `custom` (the settings) or `list` (a subscribed list).
    pub source: String,
    /// `waiting` (not asked yet), `announcing`, `working`, `failed`, or `disabled` (it asked not to be asked again).
    pub status: String,
    /// Peers of its last answer.
    pub peers: Option<usize>,
    /// Complete peers, as it counts.
    pub seeds: Option<u32>,
    /// Incomplete peers, as it counts.
    pub leechers: Option<u32>,
    /// Completed downloads, as it counts.
    pub downloads: Option<u32>,
    /// Seconds until it is asked next; `null`: it is being asked, or has no turn.
    pub next_announce_secs: Option<u64>,
    /// Its refusal or warning, or why there was no answer; empty: none.
    pub message: String,
}

/// Params of `daemon.torrent.pieces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TorrentPiecesParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The first piece of `availability`.
    #[serde(default)]
    pub offset: usize,
    /// At most so many pieces in `availability`, 0 to [`TorrentPieces::MAX`]; so many by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The pieces of a torrent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentPieces {
    /// The size of a piece in bytes; the last one may be shorter.
    pub piece_bytes: u32,
    /// How many pieces there are.
    pub pieces: u32,
    /// How many are there and verified.
    pub pieces_have: u32,
    /// Which are there, in hexadecimal digits: the first piece is the highest bit of the first digit.
    pub bitfield: String,
    /// The first piece of `availability`.
    pub offset: usize,
    /// How many connected peers have each piece, from `offset`; empty if the torrent is not running.
    pub availability: Vec<u32>,
    /// The `offset` of the next page of `availability`; `null`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
}

impl TorrentPieces {
    /// The most pieces of a page of `availability`.
    pub const MAX: usize = 65_536;
}

/// Result of `daemon.torrent.export`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TorrentExport {
    /// A name for the file.
    pub file_name: String,
    /// The torrent file in base64; empty while the metadata of a magnet link is not known.
    pub torrent_b64: String,
    /// The magnet link, with trackers.
    pub magnet: String,
}

/// Params of `daemon.torrent.change`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TorrentChangeParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// What becomes something else.
    #[serde(flatten)]
    pub change: TorrentChange,
}

/// What changes of how a torrent is downloaded; the rest stays. A torrent that is running continues with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentChange {
    /// The places of the files to download; empty: all files. What is there of the others stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<u32>>,
    /// URLs of additional trackers, in place of those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trackers: Option<Vec<String>>,
    /// URLs of additional web servers, in place of those before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webseeds: Option<Vec<String>>,
    /// Download the pieces from the first to the last, instead of the rarest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequential: Option<bool>,
    /// Download the first and last piece of each file before all others, which players need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_last_piece_first: Option<bool>,
    /// Download the pieces of so many bytes at the beginning of each file before all others; 0: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_bytes: Option<u64>,
    /// The same of the end of each file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_bytes: Option<u64>,
    /// Seconds; 0: the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata_timeout_secs: Option<u32>,
    /// Seconds; 0: it waits for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_timeout_secs: Option<u32>,
    /// The most connections to peers; 0: as in the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_peers: Option<u16>,
}

/// Params of `daemon.torrent.renameFile`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameTorrentFileParams {
    /// The task.
    #[serde(alias = "id")]
    pub task_id: String,
    /// The place of the file in the torrent.
    pub index: u32,
    /// Its new path in the torrent's directory, with `/` between names.
    pub path: String,
}

/// The session of all torrents. It begins with the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TorrentSessionDto {
    /// Whether it has begun. If not, no port is open.
    pub is_running: bool,
    /// The port that accepts peers; `null`: none does.
    pub port: Option<u16>,
    /// Our node of the distributed hash table for IPv4; `null`: it does not run.
    pub dht_v4: Option<DhtNodeDto>,
    /// The same for IPv6.
    pub dht_v6: Option<DhtNodeDto>,
    /// Why the local network is not asked for peers; empty: it is, or is switched off.
    pub lan_error: String,
    /// The port that the router opened; `null`: it was not asked.
    pub port_mapping: Option<PortMappingDto>,
}

/// A node of the distributed hash table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DhtNodeDto {
    /// Its address and port.
    pub address: String,
    /// How many other nodes it knows.
    pub nodes: usize,
}

/// A port that a router opened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PortMappingDto {
    /// The router's port.
    pub external_port: Option<u16>,
    /// The router's public address; empty: it did not say.
    pub external_address: String,
    /// Why it opened none; empty: it did.
    pub error: String,
}

/// Result of `daemon.bt.trackerSubscription.refresh`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrackerListsRefreshed {
    /// Whether every list was read.
    pub success: bool,
    /// How many trackers they have.
    pub tracker_count: usize,
    /// How many lists were read.
    pub ok_sources: usize,
    /// How many lists there are.
    pub total_sources: usize,
    /// When, in Unix seconds.
    pub updated_at: i64,
    /// Why the first of the others was not read; empty: all were.
    pub error: String,
    /// Each list.
    pub lists: Vec<TrackerListDto>,
}

/// A list of trackers that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrackerListDto {
    /// Where it is.
    pub url: String,
    /// How many trackers it has.
    pub tracker_count: usize,
    /// Why it was not read; empty: it was.
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_only_what_changes() {
        let params: TorrentChangeParams = serde_json::from_str(r#"{"id":"t","files":[],"sequential":true}"#).unwrap();
        let expect = TorrentChange {
            files: Some(Vec::new()),
            sequential: Some(true),
            ..TorrentChange::default()
        };
        assert_eq!((&*params.task_id, params.change), ("t", expect));
    }
}
