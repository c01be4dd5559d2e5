//! Lists what `yt-dlp` finds at a page: one file in several qualities, or the pages of a list.
//!
//! *Owns* which formats become files and variants (`files`), and which pages are looked at (here).
//!
//! *Never* sends a request itself: the host runs the program, and moves the bytes.
//!
//! Start reading at [`YtDlp`].

mod files;

use std::time::Duration;

use svc_plugin::{
    prelude::*,
    tools::{self, Media, Page},
};

use crate::files::{File, link_to};

/// The most pages of a list.
const MAX_PAGES: usize = 2000;

/// The longest URL of a page in a list, because it is the id of an entry.
const MAX_ID_BYTES: usize = 1000;

/// The longest title in a file name, in characters.
const MAX_TITLE: usize = 120;

/// The files of the pages of a list. What they are is known when a page is looked at, so they are all of the most common kind.
const KIND_IN_LISTS: &str = "mp4";

/// Lists the media of a page.
#[derive(Debug)]
pub struct YtDlp;

impl Resolver for YtDlp {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, out).map_err(|error| {
            if is_named(call) {
                return error;
            }
            // All pages were asked for, of which most have nothing.
            log::info(error.to_string());
            Error::NotMatched
        })
    }

    fn link(call: &Call, entry: &str, variant: Option<&str>) -> Result<Link> {
        if is_web(entry) {
            let media = tools::discover(entry)?;
            let all = files::files(&media);
            let file = all.iter().find(|file| file.is_kind(KIND_IN_LISTS));
            let file = file.ok_or_else(|| {
                let message =
                    format!("{entry} has no {KIND_IN_LISTS} file; add that page by itself to see what it has");
                Error::Unsupported(message)
            })?;
            return Ok(link_to(file.best()));
        }
        let media = tools::discover(call.url())?;
        let all = files::files(&media);
        let file = all.iter().find(|file| file.id == entry);
        let format = file.and_then(|file| match variant {
            Some(id) => file.format(id),
            None => Some(file.best()),
        });
        let format = format.ok_or_else(|| Error::NotFound("the page no longer has this format".to_owned()))?;
        Ok(link_to(format))
    }
}

svc_plugin::plugin!(YtDlp: Resolver);

/// Whether the user named the site of the page, as opposed to all.
fn is_named(call: &Call) -> bool {
    let (host, port) = (call.url().host(), call.url().port());
    let host_and_port = port.map(|port| format!("{host}:{port}"));
    let sites = env::setting("sites").unwrap_or_default();
    sites.lines().map(str::trim).filter(|site| *site != "*").any(|site| {
        let site = site.strip_prefix("*.").unwrap_or(site).to_ascii_lowercase();
        let is_of = |name: &str| name == site || name.strip_suffix(&site).is_some_and(|rest| rest.ends_with('.'));
        !site.is_empty() && (is_of(host) || host_and_port.as_deref().is_some_and(is_of))
    })
}

fn is_web(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn list(call: &Call, out: &Listing<'_>) -> Result<()> {
    let media = tools::discover(call.url())?;
    if media.is_live {
        return Err(Error::Unsupported("it is still being broadcast".to_owned()));
    }
    if let [only] = &media.formats[..]
        && only.url == call.url().as_str()
    {
        // The page is the file.
        return Err(Error::NotMatched);
    }
    let files = files::files(&media);
    let title = title(&media.title, &media.id);
    if !title.is_empty() {
        out.title(&title);
    }
    if !files.is_empty() {
        add_files(&media, &title, &files, out);
        return Ok(());
    }
    if !media.formats.is_empty() {
        return Err(Error::Unsupported(format!("it is sent as {}", ways(&media))));
    }
    add_pages(&media.entries, out)
}

fn add_files(media: &Media, title: &str, files: &[File<'_>], out: &Listing<'_>) {
    let title = if title.is_empty() { "media" } else { title };
    for file in files {
        let entry = out.add(&file.id, &format!("{title}{}", file.suffix()));
        entry.kind(file.kind);
        describe(&entry, file.best().size.or(file.best().about_size), media.duration_ms);
        if !file.is_selected {
            entry.not_selected();
        }
        if let [only] = file.formats() {
            entry.link(link_to(only));
            continue;
        }
        for (rank, format) in (0..).zip(file.formats()) {
            let variant = entry.variant(&format.id, &files::label(format), rank);
            describe(&variant, format.size, None);
            variant.link(link_to(format));
        }
    }
}

fn describe(entry: &Entry, size: Option<u64>, duration_ms: Option<u64>) {
    if let Some(size) = size {
        entry.size(size);
    }
    if let Some(duration) = duration_ms {
        entry.duration(Duration::from_millis(duration));
    }
}

fn add_pages(pages: &[Page], out: &Listing<'_>) -> Result<()> {
    let usable = pages
        .iter()
        .filter(|page| is_web(&page.url) && page.url.len() <= MAX_ID_BYTES);
    let mut count = 0;
    for page in usable.take(MAX_PAGES) {
        let title = title(&page.title, &page.id);
        let name = if title.is_empty() {
            format!("{}", count + 1)
        } else {
            title
        };
        let entry = out.add(&page.url, &format!("{name}.{KIND_IN_LISTS}"));
        entry.kind(FileKind::VideoStream);
        describe(&entry, None, page.duration_ms);
        count += 1;
    }
    if count == 0 {
        return Err(Error::NotFound("yt-dlp finds nothing there".to_owned()));
    }
    if pages.len() > count {
        out.left_out(LeftOut::TooManyFiles, "", pages.len() - count);
    }
    Ok(())
}

/// A title that can be part of a file name: one line, not too long, and without what would make folders.
fn title(title: &str, id: &str) -> String {
    let text = if title.trim().is_empty() { id } else { title };
    let clean = |c: char| if c.is_control() || "/\\".contains(c) { ' ' } else { c };
    let clean: String = text.chars().map(clean).collect();
    let words: Vec<_> = clean.split_whitespace().collect();
    words.join(" ").chars().take(MAX_TITLE).collect()
}

/// How formats are sent that cannot be downloaded.
fn ways(media: &Media) -> String {
    let mut ways: Vec<_> = media
        .formats
        .iter()
        .map(|format| {
            if format.has_drm {
                "copy-protected"
            } else {
                &format.protocol
            }
        })
        .collect();
    ways.sort_unstable();
    ways.dedup();
    format!("{}, which cannot be downloaded with this plugin", ways.join(" and "))
}
