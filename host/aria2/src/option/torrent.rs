//! Options of torrents: as aria2 has them, and as the service takes them.

use std::ops::RangeInclusive;

use metainfo::MAX_FILES;
use protocol::{CreateTaskRequest, TorrentFilePath, TorrentRequest};

use super::{
    row::{edges, written_size},
    set::Options,
};
use crate::vocabulary::fault::Fault;

/// aria2's limit of file numbers.
const MAX_INDEX: u32 = 1024 * 1024;

/// The most additional trackers of a torrent that the service takes.
const MAX_TRACKERS: usize = 256;

/// A ratio of uploaded bytes is in thousandths.
const MILLI: f64 = 1000.0;

const SECONDS_PER_MINUTE: f64 = 60.0;

/// No limit of seeding, whatever the settings are.
const UNLIMITED: i64 = -1;

/// Options that mean nothing for a torrent, and that aria2 ignores then: they are of one file and its server.
const OF_FILES: [&str; 14] = [
    "checksum",
    "ftp-passwd",
    "ftp-user",
    "header",
    "http-no-cache",
    "http-passwd",
    "http-user",
    "lowest-speed-limit",
    "max-file-not-found",
    "max-tries",
    "out",
    "referer",
    "remote-time",
    "retry-wait",
];

/// The options for a download that is a torrent.
pub(crate) fn of_torrent(options: &Options) -> Options {
    options.filtered(|row| !OF_FILES.contains(&row.name()))
}

/// The options of a document's file: numbers of files are those of the document.
pub(crate) fn of_document(options: &Options) -> Options {
    options.filtered(|row| !matches!(row.name(), "select-file" | "index-out"))
}

/// Applies what is of torrents.
pub(super) fn apply(options: &Options, request: &mut CreateTaskRequest) -> Result<(), Fault> {
    let text = |name: &str| options.get(name);
    let number = |name: &str| options.get(name).and_then(|text| text.parse::<u64>().ok());
    request.upload_limit_bytes = number("max-upload-limit").unwrap_or(request.upload_limit_bytes);
    request.follow_torrent = text("follow-torrent")
        .map(|wish| wish != "false")
        .or(request.follow_torrent);
    request.check_integrity |= options.is_on("bt-seed-unverified");
    seeding(options, request);
    let mut torrent = request.torrent.take().unwrap_or_default();
    if let Some(selected) = ranges(options)? {
        torrent.files = places(&selected);
    }
    let renamed = index_out(options)?;
    if !renamed.is_empty() {
        let path = |(index, path): (u32, &str)| TorrentFilePath {
            index: index - 1,
            path: path.to_owned(),
        };
        torrent.paths = renamed.into_iter().map(path).collect();
    }
    if let Some(list) = text("bt-tracker") {
        // Lists in the wild have trackers of schemes that only browsers use; aria2 skips them, too.
        let trackers = uris(list).filter(|uri| metainfo::tracker(uri).is_some());
        torrent.trackers = trackers.take(MAX_TRACKERS).map(str::to_owned).collect();
    }
    if let Some(text) = text("bt-prioritize-piece") {
        torrent.first_last_piece_first = false;
        (torrent.head_bytes, torrent.tail_bytes) = edges(text).unwrap_or_default();
    }
    if text("bt-metadata-only").is_some() {
        torrent.metadata_only = options.is_on("bt-metadata-only");
    }
    if text("bt-save-metadata").is_some() {
        torrent.save_metadata = options.is_on("bt-save-metadata");
    }
    if text("pause-metadata").is_some() {
        torrent.stop_after_metadata = options.is_on("pause-metadata");
    }
    if let Some(seconds) = number("bt-stop-timeout") {
        torrent.stall_timeout_secs = u32::try_from(seconds).ok().filter(|seconds| *seconds > 0);
        torrent.metadata_timeout_secs = torrent.stall_timeout_secs;
    }
    if let Some(most) = number("bt-max-peers") {
        torrent.max_peers = Some(match most {
            0 => u16::MAX,
            most => u16::try_from(most).unwrap_or(u16::MAX),
        });
    }
    request.torrent = (torrent != TorrentRequest::default()).then_some(torrent);
    Ok(())
}

/// `seed-ratio` and `seed-time`: no ratio is 0.0, and no seeding at all is a time of 0.
fn seeding(options: &Options, request: &mut CreateTaskRequest) {
    let number = |name: &str| options.get(name).and_then(|text| text.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast of floats saturates, and both are limits"
    )]
    let whole = |number: f64| number.min(1e12) as i64;
    if let Some(ratio) = number("seed-ratio") {
        let milli = whole((ratio * MILLI).round());
        request.seed_ratio_limit_milli = Some(if milli == 0 { UNLIMITED } else { milli });
    }
    if let Some(minutes) = number("seed-time") {
        let seconds = whole((minutes * SECONDS_PER_MINUTE).ceil());
        request.no_seed = seconds == 0;
        request.seed_time_limit_secs = Some(if seconds == 0 { UNLIMITED } else { seconds });
    }
}

/// The options that correspond to what a request has of torrents; empty ones are not set.
pub(super) fn shown(request: &CreateTaskRequest, mut put: impl FnMut(&'static str, String)) {
    put("max-upload-limit", request.upload_limit_bytes.to_string());
    if let Some(follows) = request.follow_torrent {
        put("follow-torrent", follows.to_string());
    }
    #[expect(clippy::cast_precision_loss, reason = "limits beyond 2^53 are no limits")]
    let fraction = |number: i64, unit: f64| format!("{:?}", number.max(0) as f64 / unit);
    if let Some(milli) = request.seed_ratio_limit_milli {
        put("seed-ratio", fraction(milli, MILLI));
    }
    match request.seed_time_limit_secs {
        _ if request.no_seed => put("seed-time", "0".to_owned()),
        Some(seconds) if seconds > 0 => put("seed-time", minutes(seconds)),
        _ => {}
    }
    let Some(torrent) = &request.torrent else { return };
    put("select-file", written(&torrent.files));
    let paths = torrent
        .paths
        .iter()
        .map(|file| format!("{}={}", file.index + 1, file.path));
    put("index-out", paths.collect::<Vec<_>>().join("\n"));
    put("bt-tracker", torrent.trackers.join(","));
    let edge = u64::from(torrent.first_last_piece_first);
    let edges = [("head", torrent.head_bytes), ("tail", torrent.tail_bytes)];
    let edges = edges.map(|(name, bytes)| (name, bytes.max(edge)));
    let edges = edges.iter().filter(|(_, bytes)| *bytes > 0);
    let edges: Vec<_> = edges
        .map(|(name, bytes)| format!("{name}={}", written_size(*bytes)))
        .collect();
    put("bt-prioritize-piece", edges.join(","));
    for (name, is_on) in [
        ("pause-metadata", torrent.stop_after_metadata),
        ("bt-metadata-only", torrent.metadata_only),
        ("bt-save-metadata", torrent.save_metadata),
    ] {
        if is_on {
            put(name, "true".to_owned());
        }
    }
    if let Some(seconds) = torrent.stall_timeout_secs {
        put("bt-stop-timeout", seconds.to_string());
    }
    match torrent.max_peers {
        Some(u16::MAX) => put("bt-max-peers", "0".to_owned()),
        Some(most) => put("bt-max-peers", most.to_string()),
        None => {}
    }
}

/// Seconds as minutes with five digits behind the point, rounded down so that the same seconds are read again.
fn minutes(seconds: i64) -> String {
    let (whole, digits) = (seconds / 60, seconds % 60 * 100_000 / 60);
    let text = format!("{whole}.{digits:05}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// The URIs of a list with commas.
fn uris(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|uri| !uri.is_empty())
}

/// The trackers of a torrent that `bt-exclude-tracker` leaves.
pub(crate) fn admitted(options: &Options) -> impl Fn(&str) -> bool + '_ {
    let excluded: Vec<&str> = uris(options.get("bt-exclude-tracker").unwrap_or_default()).collect();
    move |tracker| !excluded.iter().any(|uri| *uri == "*" || *uri == tracker)
}

/// Whether `bt-exclude-tracker` may leave out a tracker.
pub(crate) fn excludes_trackers(options: &Options) -> bool {
    options.get("bt-exclude-tracker").is_some_and(|list| !list.is_empty())
}

/// The items of `index-out`: numbers of files, from 1, and their paths.
pub(crate) fn index_out(options: &Options) -> Result<Vec<(u32, &str)>, Fault> {
    let bad = || Fault::bad_option("index-out");
    let lines = options.get("index-out").unwrap_or_default().lines();
    let item = |line: &'_ str| -> Option<(u32, usize)> {
        let (index, path) = line.split_once('=')?;
        let index = index.trim().parse().ok()?;
        ((1..=MAX_INDEX).contains(&index) && !path.trim().is_empty()).then_some((index, line.len() - path.len()))
    };
    lines
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (index, at) = item(line).ok_or_else(bad)?;
            Ok((index, line[at..].trim()))
        })
        .collect()
}

/// A path of `index-out`, which aria2 counts from `dir`, below the directory of the torrent of this name.
pub(crate) fn below_top<'p>(path: &'p str, name: &str) -> &'p str {
    let below = path.strip_prefix(name).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|rest| !rest.is_empty()).unwrap_or(path)
}

/// Whether `select-file` names a file of a document, which are counted from 1. Without the option all are selected.
pub(crate) fn selected(options: &Options) -> Result<impl Fn(u32) -> bool, Fault> {
    let ranges = ranges(options)?.unwrap_or_else(|| vec![1..=u32::MAX]);
    Ok(move |index| ranges.iter().any(|range| range.contains(&index)))
}

/// The ranges of `select-file`; none if all files are selected.
fn ranges(options: &Options) -> Result<Option<Vec<RangeInclusive<u32>>>, Fault> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (1 <= first && first <= last && last <= MAX_INDEX).then_some(first..=last)
    };
    let Some(text) = options.get("select-file") else {
        return Ok(None);
    };
    if text.is_empty() {
        return Ok(None);
    }
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.map(Some).ok_or_else(|| Fault::bad_option("select-file"))
}

/// The places of files from 0, ascending. No torrent has more than [`MAX_FILES`].
fn places(ranges: &[RangeInclusive<u32>]) -> Vec<u32> {
    let most = u32::try_from(MAX_FILES).unwrap_or(u32::MAX);
    let within = |range: &RangeInclusive<u32>| *range.start()..=(*range.end()).min(most);
    let places: std::collections::BTreeSet<u32> = ranges.iter().flat_map(within).map(|index| index - 1).collect();
    places.into_iter().collect()
}

/// Places of files, ascending, as `select-file` has them.
fn written(places: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for place in places {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *place => *last = *place,
            _ => runs.push((*place, *place)),
        }
    }
    let runs = runs.into_iter().map(|(first, last)| {
        if first == last {
            (first + 1).to_string()
        } else {
            format!("{}-{}", first + 1, last + 1)
        }
    });
    runs.collect::<Vec<_>>().join(",")
}
