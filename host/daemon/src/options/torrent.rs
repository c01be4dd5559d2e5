//! How a torrent is downloaded: as clients ask for it, and as the engine takes it. Destructured without `..`, as all
//! options are.

use std::{collections::BTreeMap, time::Duration};

use metainfo::{MAX_FILES, Magnet};
use protocol::{RpcError, TorrentChange, TorrentFilePath, TorrentRequest};
use transfer::{FileName, SafeUrl, TorrentOptions};

use crate::{
    refusal::{chain, invalid},
    view,
};

/// The longest path of a file, like `PATH_MAX` of Linux.
const MAX_PATH_BYTES: usize = 4096;

/// Checks what a request says of its torrent.
pub(super) fn options(request: TorrentRequest) -> Result<TorrentOptions, RpcError> {
    let TorrentRequest {
        files,
        trackers,
        webseeds,
        sequential,
        first_last_piece_first,
        head_bytes,
        tail_bytes,
        ask_for_files,
        stop_after_metadata,
        metadata_only,
        save_metadata,
        metadata_timeout_secs,
        stall_timeout_secs,
        max_peers,
        paths,
    } = request;
    Ok(TorrentOptions {
        files: self::files(files)?,
        trackers: self::trackers(trackers)?,
        webseeds: self::webseeds(webseeds)?,
        is_sequential: sequential,
        edges_first: first_last_piece_first,
        head_bytes,
        tail_bytes,
        asks_for_files: ask_for_files,
        stops_after_metadata: stop_after_metadata,
        is_metadata_only: metadata_only,
        saves_metadata: save_metadata,
        metadata_timeout: metadata_timeout_secs.and_then(time),
        stall_timeout: stall_timeout_secs.and_then(time),
        max_peers: max_peers.filter(|peers| *peers > 0),
        paths: self::paths(paths)?,
    })
}

/// What a client would have asked for.
pub(super) fn request(options: &TorrentOptions) -> TorrentRequest {
    let TorrentOptions {
        files,
        trackers,
        webseeds,
        is_sequential,
        edges_first,
        head_bytes,
        tail_bytes,
        asks_for_files,
        stops_after_metadata,
        is_metadata_only,
        saves_metadata,
        metadata_timeout,
        stall_timeout,
        max_peers,
        paths,
    } = options;
    let exposed = |urls: &[SafeUrl]| urls.iter().map(|url| url.expose().to_owned()).collect();
    TorrentRequest {
        files: files.to_vec(),
        trackers: exposed(trackers),
        webseeds: exposed(webseeds),
        sequential: *is_sequential,
        first_last_piece_first: *edges_first,
        head_bytes: *head_bytes,
        tail_bytes: *tail_bytes,
        ask_for_files: *asks_for_files,
        stop_after_metadata: *stops_after_metadata,
        metadata_only: *is_metadata_only,
        save_metadata: *saves_metadata,
        metadata_timeout_secs: metadata_timeout.map(secs),
        stall_timeout_secs: stall_timeout.map(secs),
        max_peers: *max_peers,
        paths: paths.iter().map(wire_path).collect(),
    }
}

fn wire_path((index, path): &(u32, String)) -> TorrentFilePath {
    TorrentFilePath {
        index: *index,
        path: path.clone(),
    }
}

/// The options after a change.
pub(crate) fn changed(before: &TorrentOptions, change: TorrentChange) -> Result<TorrentOptions, RpcError> {
    let TorrentChange {
        files,
        trackers,
        webseeds,
        sequential,
        first_last_piece_first,
        head_bytes,
        tail_bytes,
        metadata_timeout_secs,
        stall_timeout_secs,
        max_peers,
    } = change;
    let mut after = before.clone();
    if let Some(files) = files {
        after.files = self::files(files)?;
        // The user has chosen.
        after.asks_for_files = false;
    }
    if let Some(trackers) = trackers {
        after.trackers = self::trackers(trackers)?;
    }
    if let Some(webseeds) = webseeds {
        after.webseeds = self::webseeds(webseeds)?;
    }
    after.is_sequential = sequential.unwrap_or(after.is_sequential);
    after.edges_first = first_last_piece_first.unwrap_or(after.edges_first);
    after.head_bytes = head_bytes.unwrap_or(after.head_bytes);
    after.tail_bytes = tail_bytes.unwrap_or(after.tail_bytes);
    after.metadata_timeout = metadata_timeout_secs.map_or(after.metadata_timeout, time);
    after.stall_timeout = stall_timeout_secs.map_or(after.stall_timeout, time);
    after.max_peers = max_peers.map_or(after.max_peers, |peers| (peers > 0).then_some(peers));
    Ok(after)
}

/// What clients are shown: [`request`] without the passwords of URLs.
pub(crate) fn shown(options: &TorrentOptions) -> TorrentRequest {
    let urls = |urls: &[SafeUrl]| urls.iter().map(view::shown).collect();
    TorrentRequest {
        trackers: urls(&options.trackers),
        webseeds: urls(&options.webseeds),
        ..request(options)
    }
}

/// Refuses a link that names no torrent, and what is for single files only.
pub(super) fn check_magnet(url: &SafeUrl, has_checksum: bool) -> Result<(), RpcError> {
    if url.scheme() != "magnet" {
        return Ok(());
    }
    let magnet = url.expose().parse::<Magnet>();
    magnet.map_err(|error| invalid("url", chain(&error)))?;
    if has_checksum {
        let message = "a checksum is of one file; a torrent has hashes of all its pieces: leave it out";
        return Err(invalid("checksum", message));
    }
    Ok(())
}

fn files(mut places: Vec<u32>) -> Result<Box<[u32]>, RpcError> {
    places.sort_unstable();
    places.dedup();
    match places.last() {
        Some(last) if *last as usize >= MAX_FILES => {
            let message =
                format!("a torrent has at most {MAX_FILES} files, and files are counted from 0; {last} is none");
            Err(invalid("torrent.files", message))
        }
        _ => Ok(places.into()),
    }
}

/// The last path of a file counts.
fn paths(paths: Vec<TorrentFilePath>) -> Result<Vec<(u32, String)>, RpcError> {
    let mut by_place = BTreeMap::new();
    for (number, TorrentFilePath { index, path }) in paths.into_iter().enumerate() {
        let field = format!("torrent.paths[{number}]");
        if index as usize >= MAX_FILES {
            return Err(invalid(
                &field,
                format!("a torrent has at most {MAX_FILES} files; {index} is none"),
            ));
        }
        if path.len() > MAX_PATH_BYTES || !FileName::is_path(&path) {
            let message = format!(
                "{path:?} is no path below the torrent's directory: write names that every system takes, with / between \
                 them, at most {MAX_PATH_BYTES} bytes"
            );
            return Err(invalid(&field, message));
        }
        by_place.insert(index, path);
    }
    Ok(by_place.into_iter().collect())
}

/// The options with another path of a file.
pub(crate) fn renamed(before: &TorrentOptions, index: u32, path: String) -> Result<TorrentOptions, RpcError> {
    let mut paths: Vec<_> = before.paths.iter().map(wire_path).collect();
    paths.push(TorrentFilePath { index, path });
    Ok(TorrentOptions {
        paths: self::paths(paths)?,
        ..before.clone()
    })
}

fn trackers(urls: Vec<String>) -> Result<Vec<SafeUrl>, RpcError> {
    let kind = "a tracker: http://, https:// or udp:// with a host";
    self::urls("torrent.trackers", urls, kind, metainfo::tracker)
}

fn webseeds(urls: Vec<String>) -> Result<Vec<SafeUrl>, RpcError> {
    let kind = "a web server: http:// or https:// with a host";
    self::urls("torrent.webseeds", urls, kind, metainfo::webseed)
}

/// The text is not repeated, since it may hold a secret.
fn urls(
    field: &str,
    urls: Vec<String>,
    kind: &str,
    read: fn(&str) -> Option<SafeUrl>,
) -> Result<Vec<SafeUrl>, RpcError> {
    let urls = urls.into_iter().enumerate().map(|(index, text)| {
        let field = format!("{field}[{index}]");
        read(&text).ok_or_else(|| invalid(&field, format!("{field} must be the URL of {kind}")))
    });
    urls.collect()
}

/// 0 is no time.
fn time(secs: u32) -> Option<Duration> {
    (secs > 0).then(|| Duration::from_secs(secs.into()))
}

fn secs(time: Duration) -> u32 {
    u32::try_from(time.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> TorrentRequest {
        TorrentRequest {
            files: vec![0, 3],
            trackers: vec!["udp://t.test:1/".to_owned()],
            webseeds: vec!["https://w.test/f".to_owned()],
            sequential: true,
            first_last_piece_first: true,
            head_bytes: 5,
            tail_bytes: 6,
            ask_for_files: true,
            stop_after_metadata: true,
            metadata_only: true,
            save_metadata: true,
            metadata_timeout_secs: Some(7),
            stall_timeout_secs: Some(8),
            max_peers: Some(9),
            paths: [(1, "a/b.bin"), (3, "c")]
                .map(|(index, path)| TorrentFilePath {
                    index,
                    path: path.to_owned(),
                })
                .to_vec(),
        }
    }

    #[test]
    fn what_was_asked_for_is_what_is_shown() {
        let checked = options(asked()).unwrap();
        assert_eq!(request(&checked), asked());
    }

    #[test]
    fn places_of_files_are_in_order_and_once() {
        let asked = TorrentRequest {
            files: vec![5, 1, 5],
            ..TorrentRequest::default()
        };
        assert_eq!(&*options(asked).unwrap().files, [1, 5]);
        let asked = TorrentRequest {
            files: vec![100_000],
            ..TorrentRequest::default()
        };
        assert_eq!(
            options(asked).unwrap_err().data.unwrap().field.unwrap(),
            "torrent.files"
        );
    }

    #[test]
    fn a_path_stays_below_the_torrents_directory() {
        let before = options(asked()).unwrap();
        let after = renamed(&before, 1, "d".to_owned()).unwrap();
        assert_eq!(after.paths, [(1, "d".to_owned()), (3, "c".to_owned())]);
        for bad in [
            "",
            "/a",
            "a/",
            "../a",
            "a//b",
            "a/./b",
            "a\0b",
            "nul",
            "a/b.svcpart",
            &"a".repeat(5000),
        ] {
            let error = renamed(&before, 0, bad.to_owned()).unwrap_err();
            assert_eq!(error.data.unwrap().field.unwrap(), "torrent.paths[2]", "{bad}");
        }
        assert!(renamed(&before, 100_000, "a".to_owned()).is_err());
    }

    #[test]
    fn a_url_that_is_none_is_refused_by_its_place() {
        for (trackers, webseeds, field) in [
            (vec!["udp://t.test:1", "wss://t.test/"], vec![], "torrent.trackers[1]"),
            (vec![], vec!["ftp://w.test/"], "torrent.webseeds[0]"),
        ] {
            let asked = TorrentRequest {
                trackers: trackers.into_iter().map(str::to_owned).collect(),
                webseeds: webseeds.into_iter().map(str::to_owned).collect(),
                ..TorrentRequest::default()
            };
            let error = options(asked).unwrap_err();
            assert_eq!(error.data.unwrap().field.as_deref(), Some(field));
        }
    }

    #[test]
    fn a_change_of_one_option_keeps_the_others() {
        let before = options(asked()).unwrap();
        assert_eq!(changed(&before, TorrentChange::default()).unwrap(), before);
        let change = TorrentChange {
            files: Some(Vec::new()),
            metadata_timeout_secs: Some(0),
            ..TorrentChange::default()
        };
        let after = changed(&before, change).unwrap();
        let expect = TorrentOptions {
            files: Box::default(),
            asks_for_files: false,
            metadata_timeout: None,
            ..before
        };
        assert_eq!(after, expect);
    }
}
