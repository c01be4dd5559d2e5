//! qBittorrent: its directory `BT_backup` with a `.fastresume` file for each torrent, or its database `torrents.db`,
//! depending on its settings. Versions 4.1 to 5; their keys begin with `qBt-`, all others are libtorrent's.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use metainfo::{
    InfoHash, MAX_METAINFO_BYTES,
    bencode::{self, Limits, Value, Writer},
};
use rusqlite::types::ValueRef;

use crate::{
    Found, ImportError, read,
    torrent::{self, Client, Content, numbers, texts, tiers},
};

/// The largest file about one torrent; it has numbers for each piece and file.
const MAX_RESUME_BYTES: u64 = 64 << 20;

/// A ratio or time that is the one for all torrents.
const AS_SET: i64 = -2;

/// What is appended to the names of unfinished files.
const UNFINISHED_SUFFIX: &str = ".!qB";

/// Reads the torrents of a qBittorrent: of its data directory, its profile or `BT_backup` itself, or where they usually are.
pub fn torrents(directory: Option<&Path>, data_home: Option<&Path>) -> Result<Found, ImportError> {
    let places = match directory {
        Some(directory) => ["", "data", "qBittorrent/data"]
            .map(|below| directory.join(below))
            .to_vec(),
        None => data_home.map(|home| home.join("qBittorrent")).into_iter().collect(),
    };
    let mut found = Found::default();
    let mut categories = BTreeSet::new();
    for place in &places {
        let backup = place.join("BT_backup");
        let backup = if backup.is_dir() { backup } else { place.clone() };
        let database = place.join("torrents.db");
        let resumes = if backup.is_dir() {
            read::with_extension(&backup, &["fastresume"])?
        } else {
            Vec::new()
        };
        for path in &resumes {
            of_file(&mut found, &mut categories, path)?;
        }
        if database.is_file() {
            of_database(&mut found, &mut categories, &database)?;
        } else if resumes.is_empty() {
            continue;
        }
        finish(&mut found, &categories);
        return Ok(found);
    }
    let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
    Err(ImportError::Nowhere {
        program: "qBittorrent",
        places: places.join(" or "),
    })
}

fn finish(found: &mut Found, categories: &BTreeSet<String>) {
    if !categories.is_empty() {
        let names: Vec<_> = categories.iter().map(String::as_str).collect();
        found.note(format!("categories and tags are not taken over: {}", names.join(", ")));
    }
}

fn of_file(found: &mut Found, categories: &mut BTreeSet<String>, path: &Path) -> Result<(), ImportError> {
    let title = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let Some(resume) = read::file(path, MAX_RESUME_BYTES)? else {
        return Ok(());
    };
    let torrent = read::file(&path.with_extension("torrent"), MAX_METAINFO_BYTES as u64)?;
    let Ok((resume, _)) = bencode::parse_within(&resume, Limits::METAINFO) else {
        found.refuse(title, format!("{} is damaged", path.display()));
        return Ok(());
    };
    let category = resume.get(b"qBt-category").and_then(Value::as_text);
    categories.extend(category.map(str::to_owned));
    categories.extend(texts(resume.get(b"qBt-tags")));
    categories.remove("");
    let number = |name: &[u8]| resume.get(name).and_then(Value::as_integer);
    let text = |name: &[u8]| resume.get(name).and_then(Value::as_text).unwrap_or_default();
    let own = Own {
        directory: text(b"qBt-savePath").to_owned(),
        name: text(b"qBt-name").to_owned(),
        ratio_milli: number(b"qBt-ratioLimit"),
        minutes: number(b"qBt-seedingTimeLimit"),
        edges_first: number(b"qBt-firstLastPiecePriority") == Some(1),
        // A torrent that waits for its turn is paused, too, but the queue continues it.
        is_paused: number(b"paused") == Some(1) && number(b"auto_managed") != Some(1),
    };
    add(found, &title, resume, torrent, &own)
}

fn of_database(found: &mut Found, categories: &mut BTreeSet<String>, path: &Path) -> Result<(), ImportError> {
    let failed = |source| ImportError::Database {
        path: path.to_owned(),
        source,
    };
    let database = read::database(path)?;
    let mut rows = database
        .prepare("SELECT * FROM torrents ORDER BY queue_position")
        .map_err(failed)?;
    let names: Vec<String> = rows.column_names().map(str::to_owned).collect();
    let mut rows = rows.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        // Versions have different columns.
        let value = |name: &str| {
            let column = names.iter().position(|column| column == name)?;
            row.get_ref(column).ok()
        };
        let text = |name: &str| {
            value(name)
                .and_then(|value| value.as_str().ok())
                .unwrap_or_default()
                .to_owned()
        };
        let number = |name: &str| value(name).and_then(|value| value.as_i64().ok());
        let blob = |name: &str| match value(name) {
            Some(ValueRef::Blob(bytes)) => Some(bytes.to_vec()),
            _ => None,
        };
        let title = text("torrent_id");
        categories.insert(text("category"));
        categories.extend(text("tags").split(',').map(str::to_owned));
        categories.remove("");
        let resume = blob("libtorrent_resume_data").filter(|bytes| bytes.len() as u64 <= MAX_RESUME_BYTES);
        let Some(Ok((resume, _))) = resume
            .as_deref()
            .map(|bytes| bencode::parse_within(bytes, Limits::METAINFO))
        else {
            found.refuse(title, "its row in torrents.db is damaged");
            continue;
        };
        let own = Own {
            directory: text("target_save_path"),
            name: text("name"),
            ratio_milli: number("ratio_limit"),
            minutes: number("seeding_time_limit"),
            edges_first: number("has_outer_pieces_priority") == Some(1),
            is_paused: number("stopped") == Some(1),
        };
        add(found, &title, resume, blob("metadata"), &own)?;
    }
    Ok(())
}

/// What qBittorrent itself says of a torrent, beside libtorrent.
struct Own {
    /// Where it is to be once it is complete.
    directory: String,
    name: String,
    /// -2000: as for all, -1000: none.
    ratio_milli: Option<i64>,
    /// -2: as for all, -1: none.
    minutes: Option<i64>,
    edges_first: bool,
    is_paused: bool,
}

fn add(
    found: &mut Found,
    title: &str,
    resume: Value<'_>,
    torrent: Option<Vec<u8>>,
    own: &Own,
) -> Result<(), ImportError> {
    let text = |name: &[u8]| resume.get(name).and_then(Value::as_text).unwrap_or_default();
    let limit = |name: &[u8]| {
        let limit = resume.get(name).and_then(Value::as_integer).unwrap_or_default();
        u64::try_from(limit).unwrap_or(0)
    };
    // libtorrent's is where the files are now.
    let directory = [text(b"save_path"), &own.directory]
        .into_iter()
        .find(|path| Path::new(path).is_absolute());
    let directory = directory.map(PathBuf::from).unwrap_or_default();
    if Path::new(&own.directory).is_absolute() && Path::new(&own.directory) != directory {
        found.note(format!(
            "{title}: continues in {} and is not moved to {} once it is complete",
            directory.display(),
            own.directory
        ));
    }
    let mut is_unfinished = false;
    let mut paths = texts(resume.get(b"mapped_files"));
    for path in &mut paths {
        if let Some(name) = path.strip_suffix(UNFINISHED_SUFFIX) {
            is_unfinished = true;
            *path = name.to_owned();
        }
    }
    if is_unfinished {
        found.note(format!(
            "{title}: files with {UNFINISHED_SUFFIX} are not used; switch that ending off in qBittorrent before the import"
        ));
    }
    let client = Client {
        directory,
        paths,
        wanted: numbers(resume.get(b"file_priority"))
            .into_iter()
            .map(|priority| priority > 0)
            .collect(),
        is_paused: own.is_paused,
        is_sequential: resume.get(b"sequential_download").and_then(Value::as_integer) == Some(1),
        edges_first: own.edges_first,
        download_limit: limit(b"download_rate_limit"),
        upload_limit: limit(b"upload_rate_limit"),
        ratio_milli: own
            .ratio_milli
            .filter(|milli| *milli > AS_SET * 1000)
            .map(|milli| milli.max(-1)),
        seed_secs: own
            .minutes
            .filter(|minutes| *minutes > AS_SET)
            .map(|minutes| if minutes < 0 { -1 } else { minutes.saturating_mul(60) }),
        trackers: tiers(resume.get(b"trackers")),
        webseeds: texts(resume.get(b"url-list")),
    };
    let content = match (torrent, resume.get(b"info")) {
        (Some(file), _) => Content::File(file),
        // libtorrent stores the metadata of a magnet link here.
        (None, Some(info)) => Content::File(Writer::dict(|dict| dict.entry("info").raw(info.raw()))),
        (None, None) => {
            let hash = resume.get(b"info-hash").and_then(Value::as_bytes);
            let hash = hash
                .and_then(|hash| <[u8; 20]>::try_from(hash).ok())
                .filter(|hash| *hash != [0; 20]);
            let Some(hash) = hash else {
                found.refuse(title, "it has no version 1 info hash, and version 2 is not supported");
                return Ok(());
            };
            let names = [own.name.as_str(), text(b"name")];
            let name = names.into_iter().find(|name| !name.is_empty());
            Content::Link(torrent::link(InfoHash(hash), name, &client.trackers))
        }
    };
    torrent::add(found, title, content, client)
}
