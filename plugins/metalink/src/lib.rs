//! Downloads what a Metalink document describes: files with their checksums and mirrors, versions 3 and 4 (RFC 5854).
//!
//! *Owns* what such documents say (`document`) and which of it becomes a listing (here).
//!
//! *Never* reaches another host than that of the URL it was given; the mirrors are for the downloads.
//!
//! Start reading at [`Metalink`].

mod document;

use svc_plugin::{prelude::*, text::Url};

use crate::document::{Document, File};

/// Documents are texts of some kilobytes; this is one with thousands of files.
const MAX_DOCUMENT_BYTES: u32 = 2 * 1024 * 1024;

/// Files of one call, which is what the host takes.
const MAX_FILES: usize = 10_000;

/// Places of one file: the first and as many mirrors as the host takes.
const MAX_PLACES: usize = 33;

/// The longest URL that the host takes.
const MAX_URL_BYTES: usize = 8 * 1024;

/// What the user may set.
#[derive(Debug, Settings)]
struct Wanted {
    /// The country whose mirrors come first.
    location: Option<String>,
}

/// Lists what a document describes.
#[derive(Debug)]
pub struct Metalink;

impl Resolver for Metalink {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }
}

impl Preview for Metalink {
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out)
    }
}

svc_plugin::plugin!(Metalink: Resolver, Preview);

fn list(call: &Call, out: &Listing<'_>) -> Result<()> {
    let wanted = Wanted::read()?;
    let response = http::get(call.url())
        .task_cookies()
        .max_bytes(MAX_DOCUMENT_BYTES)
        .send()?;
    let base = Url::parse(response.url())?;
    let document = document::read(&response.text()?, wanted.location.as_deref())?;
    describe(&document, &base, out);
    let mut count = 0;
    for file in &document.files {
        if count == MAX_FILES {
            log::warn(format!("more than {MAX_FILES} files; the rest is left out"));
            break;
        }
        if add(file, count, &base, out) {
            count += 1;
        }
    }
    if count == 0 {
        return Err(Error::Unsupported(
            "no file of the document is on a web server".to_owned(),
        ));
    }
    Ok(())
}

fn describe(document: &Document, base: &Url, out: &Listing<'_>) {
    // A file that is alone needs no folder around it.
    if document.files.len() > 1 {
        let stem = || Some(base.path().last()?.rsplit_once('.')?.0.to_owned());
        if let Some(title) = document.title.clone().or_else(stem) {
            out.title(&title);
        }
    }
    if let Some(text) = &document.description {
        out.description(text);
    }
}

/// Adds a file unless nobody can download it.
fn add(file: &File, index: usize, base: &Url, out: &Listing<'_>) -> bool {
    let name = &file.name;
    if !is_below(name) {
        log::warn(format!("{name:?} is no name of a file below a folder; it is left out"));
        return false;
    }
    let places = file.urls.iter().filter_map(|url| base.join(url).ok());
    let mut places =
        places.filter(|url| matches!(url.scheme(), "http" | "https") && url.as_str().len() <= MAX_URL_BYTES);
    let Some(first) = places.next() else {
        log::warn(format!("{name} is on no web server; it is left out"));
        return false;
    };
    if file.has_other_sources {
        log::info(format!("{name} is also in torrents or the like, which are not used"));
    }
    let link = places
        .take(MAX_PLACES - 1)
        .fold(Link::new(&first), |link, url| link.mirror(url.as_str()));
    let link = match file.max_connections {
        Some(count) => link.max_connections(count),
        None => link,
    };
    let entry = out.add_path(&index.to_string(), name);
    entry.link(link);
    if let Some(size) = file.size {
        entry.size(size);
    }
    for (algorithm, hex) in &file.hashes {
        entry.checksum(algorithm, hex);
    }
    true
}

/// Whether a path stays below the folder it is put into, on every system.
fn is_below(path: &str) -> bool {
    let has_drive = path.as_bytes().get(1) == Some(&b':');
    !has_drive && !path.contains('\\') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}
