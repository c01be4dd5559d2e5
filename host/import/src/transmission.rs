//! Transmission: the directories `torrents` and `resume` of its configuration. Versions 2.9 to 4.

use std::path::{Path, PathBuf};

use metainfo::{
    InfoHash, MAX_METAINFO_BYTES,
    bencode::{self, Limits, Value},
};

use crate::{
    Found, ImportError, read,
    torrent::{self, Client, Content, numbers, texts, tiers},
};

/// The largest file about one torrent; it has numbers for each piece and file.
const MAX_RESUME_BYTES: u64 = 64 << 20;

/// `ratio-mode` of a torrent with a limit of its own, and of one without any.
const OWN_RATIO: i64 = 1;
const NO_RATIO: i64 = 2;

/// Reads the torrents of a Transmission: of its configuration directory, or of those where that usually is.
pub fn torrents(directory: Option<&Path>, config_home: Option<&Path>) -> Result<Found, ImportError> {
    let places: Vec<PathBuf> = if let Some(directory) = directory {
        vec![directory.to_owned()]
    } else {
        let programs = ["transmission-daemon", "transmission"].into_iter();
        let of_user = programs.filter_map(|program| Some(config_home?.join(program)));
        let of_system = ["/var/lib/transmission-daemon/info", "/etc/transmission-daemon"].map(PathBuf::from);
        of_user.chain(of_system).collect()
    };
    let Some(place) = places.iter().find(|place| place.join("torrents").is_dir()) else {
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        return Err(ImportError::Nowhere {
            program: "Transmission",
            places: places.join(" or "),
        });
    };
    let mut found = Found::default();
    for path in read::with_extension(&place.join("torrents"), &["torrent", "magnet"])? {
        let stem = path.file_stem().unwrap_or_default();
        let title = stem.to_string_lossy().into_owned();
        let resume = place.join("resume").join(format!("{title}.resume"));
        let resume = read::file(&resume, MAX_RESUME_BYTES)?.unwrap_or_else(|| b"de".to_vec());
        let Ok((resume, _)) = bencode::parse_within(&resume, Limits::METAINFO) else {
            found.refuse(title, "its file in the directory \"resume\" is damaged");
            continue;
        };
        let bytes = read::file(&path, MAX_METAINFO_BYTES as u64)?.unwrap_or_default();
        match content(bytes) {
            Ok(content) => {
                let client = client(&mut found, &title, resume);
                torrent::add(&mut found, &title, content, client)?;
            }
            Err(reason) => found.refuse(title, reason),
        }
    }
    Ok(found)
}

/// A torrent, or a magnet link: in a text since version 4, before as a torrent with `magnet-info` in place of `info`.
fn content(bytes: Vec<u8>) -> Result<Content, String> {
    if let Ok(text) = std::str::from_utf8(&bytes)
        && text.starts_with("magnet:")
    {
        let link = text.trim().parse();
        return link
            .map(Content::Link)
            .map_err(|error: metainfo::InvalidMagnet| error.to_string());
    }
    let value = bencode::parse_within(&bytes, Limits::METAINFO).map(|(value, _)| value);
    let value = value.map_err(|error| format!("its torrent file is damaged: {error}"))?;
    let Some(link) = value.get(b"magnet-info") else {
        return Ok(Content::File(bytes));
    };
    let hash = link.get(b"info_hash").and_then(Value::as_bytes);
    let hash = hash.and_then(|hash| hash.try_into().ok()).map(InfoHash);
    let mut trackers = tiers(value.get(b"announce-list"));
    let announce = value.get(b"announce").and_then(Value::as_text);
    trackers.extend(announce.map(str::to_owned));
    let name = link.get(b"display-name").and_then(Value::as_text);
    let hash = hash.ok_or("its magnet link has no version 1 info hash")?;
    Ok(Content::Link(torrent::link(hash, name, &trackers)))
}

fn client(found: &mut Found, title: &str, resume: Value<'_>) -> Client {
    let number = |value: Option<Value<'_>>| value.and_then(Value::as_integer).unwrap_or_default();
    let text = |name: &[u8]| resume.get(name).and_then(Value::as_text).unwrap_or_default();
    let limit = |name: &[u8]| {
        let limit = resume.get(name);
        let of = |key: &[u8]| number(limit.and_then(|limit| limit.get(key)));
        let is_on = of(b"use-speed-limit") != 0;
        u64::try_from(of(b"speed-Bps")).ok().filter(|_| is_on).unwrap_or(0)
    };
    let ratio = resume.get(b"ratio-limit");
    let ratio_milli = match number(ratio.and_then(|ratio| ratio.get(b"ratio-mode"))) {
        OWN_RATIO => ratio
            .and_then(|ratio| ratio.get(b"ratio-limit")?.as_text())
            .and_then(milli),
        NO_RATIO => Some(-1),
        _ => None,
    };
    if !texts(resume.get(b"labels")).is_empty() {
        found.note("labels are not taken over");
    }
    let idle = resume.get(b"idle-limit").and_then(|limit| limit.get(b"idle-mode"));
    if number(idle) != 0 {
        found.note("limits of idle seeding are not taken over; svc torrent seed --idle sets them");
    }
    let name = text(b"name");
    let unfinished = Path::new(text(b"incomplete-dir"));
    let mut directory = Path::new(text(b"destination"));
    if unfinished.is_absolute() && !name.is_empty() && unfinished.join(name).symlink_metadata().is_ok() {
        found.note(format!(
            "{title}: continues in {} and is not moved to {} once it is complete",
            unfinished.display(),
            directory.display()
        ));
        directory = unfinished;
    }
    Client {
        directory: directory.to_owned(),
        paths: texts(resume.get(b"files")),
        wanted: numbers(resume.get(b"dnd"))
            .into_iter()
            .map(|unwanted| unwanted == 0)
            .collect(),
        is_paused: number(resume.get(b"paused")) != 0,
        is_sequential: number(resume.get(b"sequentialDownload")) != 0,
        download_limit: limit(b"speed-limit-down"),
        upload_limit: limit(b"speed-limit-up"),
        ratio_milli,
        ..Client::default()
    }
}

/// A ratio such as `1.500000` in thousandths.
fn milli(text: &str) -> Option<i64> {
    let (whole, digits) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = digits.chars().chain("000".chars()).take(3).collect();
    format!("{whole}{digits}").parse().ok()
}
