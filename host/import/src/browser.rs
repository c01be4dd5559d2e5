//! Downloads that a browser did not finish: Chromium and its relatives (`History`), Firefox (`places.sqlite`).

use std::path::{Path, PathBuf};

use protocol::CreateTaskRequest;
use rusqlite::{Connection, OptionalExtension as _, Row};
use serde::Deserialize;
use transfer::SafeUrl;

use crate::{Download, Found, ImportError, read};

/// Of Chromium's table `downloads`: cancelled by the user, and complete.
const CHROMIUM_COMPLETE: i64 = 1;
const CHROMIUM_CANCELLED: i64 = 2;

/// The last of the addresses that a download was redirected through is that of the file.
const CHROMIUM: &str = "SELECT target_path, referrer,
    (SELECT url FROM downloads_url_chains WHERE id = downloads.id ORDER BY chain_index LIMIT 1)
    FROM downloads WHERE state NOT IN (?1, ?2) ORDER BY start_time";

/// Of `downloads/metaData` in Firefox: it failed, or is paused.
const FIREFOX_FAILED: i64 = 2;
const FIREFOX_PAUSED: i64 = 4;

const FIREFOX: &str = "SELECT place.url, meta.content, target.content FROM moz_annos meta
    JOIN moz_places place ON place.id = meta.place_id
    LEFT JOIN moz_annos target ON target.place_id = meta.place_id AND target.anno_attribute_id =
        (SELECT id FROM moz_anno_attributes WHERE name = 'downloads/destinationFileURI')
    WHERE meta.anno_attribute_id = (SELECT id FROM moz_anno_attributes WHERE name = 'downloads/metaData')
    ORDER BY meta.dateAdded";

#[derive(Debug, Deserialize)]
struct FirefoxState {
    state: i64,
}

/// Reads the unfinished downloads of a browser's profile: of its directory, or of the database in it.
pub fn downloads(path: &Path) -> Result<Found, ImportError> {
    let names = ["", "History", "Default/History", "places.sqlite"];
    let mut paths = names.iter().map(|name| {
        if name.is_empty() {
            path.to_owned()
        } else {
            path.join(name)
        }
    });
    let Some(path) = paths.find(|path| path.is_file()) else {
        return Err(ImportError::Nowhere {
            program: "the browser",
            places: path.display().to_string(),
        });
    };
    let database = read::database(&path)?;
    let failed = |source| ImportError::Database {
        path: path.clone(),
        source,
    };
    let has = |table: &str| -> rusqlite::Result<bool> {
        let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        Ok(database.query_row(sql, [table], |_| Ok(())).optional()?.is_some())
    };
    let mut found = Found::default();
    let rows = if has("downloads_url_chains").map_err(failed)? {
        chromium(&database)
    } else if has("moz_annos").map_err(failed)? {
        firefox(&database)
    } else {
        let what = "neither a History of Chromium nor a places.sqlite of Firefox".to_owned();
        return Err(ImportError::Unexpected { path, what });
    };
    for row in rows.map_err(failed)? {
        add(&mut found, row)?;
    }
    Ok(found)
}

struct Unfinished {
    url: String,
    path: Option<PathBuf>,
    referrer: String,
}

fn chromium(database: &Connection) -> rusqlite::Result<Vec<Unfinished>> {
    let mut rows = database.prepare(CHROMIUM)?;
    let read = |row: &Row<'_>| {
        Ok(Unfinished {
            path: row.get::<_, Option<String>>(0)?.map(PathBuf::from),
            referrer: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
            url: row.get::<_, Option<String>>(2)?.unwrap_or_default(),
        })
    };
    rows.query_map([CHROMIUM_COMPLETE, CHROMIUM_CANCELLED], read)?.collect()
}

fn firefox(database: &Connection) -> rusqlite::Result<Vec<Unfinished>> {
    let mut rows = database.prepare(FIREFOX)?;
    let read = |row: &Row<'_>| {
        let state = row.get::<_, Option<String>>(1)?.unwrap_or_default();
        let state = serde_json::from_str::<FirefoxState>(&state).map(|state| state.state);
        let target = row.get::<_, Option<String>>(2)?.and_then(|target| file_path(&target));
        let unfinished = Unfinished {
            url: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            path: target,
            referrer: String::new(),
        };
        Ok(matches!(state, Ok(FIREFOX_FAILED | FIREFOX_PAUSED)).then_some(unfinished))
    };
    rows.query_map([], read)?.filter_map(Result::transpose).collect()
}

/// The path of a URL such as `file:///home/me/a%20b`.
fn file_path(url: &str) -> Option<PathBuf> {
    let url = SafeUrl::parse(url).ok().filter(|url| url.scheme() == "file")?;
    url.as_url().to_file_path().ok()
}

fn add(found: &mut Found, unfinished: Unfinished) -> Result<(), ImportError> {
    let name = unfinished.path.as_deref().and_then(Path::file_name);
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let url = SafeUrl::parse(&unfinished.url).ok();
    let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https" | "ftp")) else {
        // blob:, data: and the like exist in the browser only.
        found.refuse(name, "its address is one that only the browser can open");
        return Ok(());
    };
    let directory = unfinished
        .path
        .as_deref()
        .and_then(Path::parent)
        .filter(|path| path.is_absolute());
    let directory = directory.map(|path| path.display().to_string()).unwrap_or_default();
    found.note("cookies stay in the browser: a download that needs a login fails until svc cookies import has them");
    let key = ["browser", url.expose(), &directory, &name].join("\0");
    found.add(Download {
        title: if name.is_empty() { url.to_string() } else { name.clone() },
        request: CreateTaskRequest {
            url: url.expose().to_owned(),
            file_name: name,
            save_dir: directory,
            referrer: unfinished.referrer,
            ..CreateTaskRequest::default()
        },
        torrent: None,
        key: key.into_bytes(),
    })
}
