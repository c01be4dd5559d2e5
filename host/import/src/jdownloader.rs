//! JDownloader 2: the list of downloads that it writes to `cfg/downloadList….zip`. An entry `03` of the archive describes a
//! package in JSON, an entry `03_007` a link of it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use protocol::CreateTaskRequest;
use serde::Deserialize;
use transfer::SafeUrl;
use zip::ZipArchive;

use crate::{Download, Found, ImportError, read};

/// The largest entry. One link has at most some kilobytes.
const MAX_ENTRY_BYTES: u64 = 1 << 20;

/// The most entries of one list.
const MAX_ENTRIES: usize = 200_000;

/// What the URL of a link begins with whose container hides it.
const HIDDEN: &str = "CRYPTED:";

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Package {
    download_folder: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Link {
    name: Option<String>,
    // JDownloader writes both, by version.
    #[serde(alias = "URL")]
    url: Option<String>,
    #[serde(alias = "browserURL")]
    browser_url: Option<String>,
    enabled: Option<bool>,
    final_link_state: Option<String>,
}

/// Reads the unfinished links of a list, or of the newest list in a directory of JDownloader.
pub fn links(path: &Path) -> Result<Found, ImportError> {
    let list = list(path)?;
    let unexpected = |what: String| ImportError::Unexpected {
        path: list.clone(),
        what,
    };
    let file = File::open(&list).map_err(|source| ImportError::Unreadable {
        path: list.clone(),
        source,
    })?;
    let mut archive = ZipArchive::new(file)
        .map_err(|error| unexpected(format!("no list of JDownloader 2, which is a ZIP archive: {error}")))?;
    if archive.len() > MAX_ENTRIES {
        return Err(ImportError::TooMany);
    }
    let (mut packages, mut links) = (BTreeMap::new(), BTreeMap::new());
    for index in 0..archive.len() {
        let entry = archive
            .by_index(index)
            .map_err(|error| unexpected(format!("damaged: {error}")))?;
        let Some((package, link)) = entry.name().ok().and_then(|name| numbers(&name)) else {
            continue;
        };
        let mut text = Vec::new();
        let read = entry.take(MAX_ENTRY_BYTES + 1).read_to_end(&mut text);
        read.map_err(|error| unexpected(format!("damaged: {error}")))?;
        if text.len() as u64 > MAX_ENTRY_BYTES {
            let (path, limit) = (list, MAX_ENTRY_BYTES);
            return Err(ImportError::TooLarge { path, limit });
        }
        let damaged = |error: serde_json::Error| unexpected(format!("no list of JDownloader 2: {error}"));
        match link {
            None => drop(packages.insert(package, serde_json::from_slice::<Package>(&text).map_err(damaged)?)),
            Some(link) => drop(links.insert((package, link), serde_json::from_slice::<Link>(&text).map_err(damaged)?)),
        }
    }
    let mut found = Found::default();
    for ((package, _), link) in links {
        let folder = packages
            .get(&package)
            .and_then(|package| package.download_folder.as_deref());
        add(&mut found, link, folder.unwrap_or_default())?;
    }
    Ok(found)
}

/// The list itself, or the newest in `cfg`, whose names are numbered.
fn list(path: &Path) -> Result<PathBuf, ImportError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let configuration = path.join("cfg");
    let configuration = if configuration.is_dir() {
        configuration
    } else {
        path.to_owned()
    };
    let lists = read::with_extension(&configuration, &["zip"])?.into_iter();
    let number = |path: &PathBuf| {
        let stem = path.file_stem()?.to_str()?;
        let digits = stem.strip_prefix("downloadList")?;
        if digits.is_empty() {
            Some(0)
        } else {
            digits.parse::<u64>().ok()
        }
    };
    let newest = lists.filter_map(|path| Some((number(&path)?, path))).max();
    newest.map(|(_, path)| path).ok_or_else(|| ImportError::Nowhere {
        program: "JDownloader",
        places: configuration.display().to_string(),
    })
}

/// The numbers of a package, and of its link.
fn numbers(name: &str) -> Option<(u64, Option<u64>)> {
    let (package, link) = match name.split_once('_') {
        Some((package, link)) => (package, Some(link)),
        None => (name, None),
    };
    Some((package.parse().ok()?, link.map(str::parse).transpose().ok()?))
}

fn add(found: &mut Found, link: Link, folder: &str) -> Result<(), ImportError> {
    let title = link.name.clone().unwrap_or_default();
    if link
        .final_link_state
        .as_deref()
        .is_some_and(|state| state.starts_with("FINISHED"))
    {
        return Ok(());
    }
    let hidden = |url: &String| url.starts_with(HIDDEN);
    if link.url.as_ref().is_some_and(hidden) {
        found.refuse(
            title,
            "its address is hidden by the container that it came from; add the page that you had it from",
        );
        return Ok(());
    }
    // The one of a plugin of JDownloader has its own scheme; the page is what a plugin here knows.
    let urls = [link.url, link.browser_url].into_iter().flatten();
    let mut urls = urls.filter_map(|url| SafeUrl::parse(&url).ok());
    let Some(url) = urls.find(|url| matches!(url.scheme(), "http" | "https" | "ftp" | "ftps" | "sftp" | "magnet"))
    else {
        found.refuse(title, "its address is one that only JDownloader can open");
        return Ok(());
    };
    let folder = if Path::new(folder).is_absolute() { folder } else { "" };
    let key = ["jdownloader", url.expose(), folder, &title].join("\0");
    found.add(Download {
        title: if title.is_empty() {
            url.to_string()
        } else {
            title.clone()
        },
        request: CreateTaskRequest {
            url: url.expose().to_owned(),
            // A page has another name than the file behind it.
            save_dir: folder.to_owned(),
            start_paused: link.enabled == Some(false),
            ..CreateTaskRequest::default()
        },
        torrent: None,
        key: key.into_bytes(),
    })
}
