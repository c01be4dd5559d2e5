//! Lists the files of items of the Internet Archive.
//!
//! *Owns* which part of an item a URL means (here) and what the archive says about items (`item`).
//!
//! *Never* reaches another host than archive.org.
//!
//! Start reading at [`ArchiveItem`].

mod item;

use svc_plugin::{
    prelude::*,
    text::{Url, encode_path, encode_segment},
};

use crate::item::{File, Item, Source};

/// Files of one call, which is what the host takes.
const PAGE_FILES: usize = 10_000;

/// What the user may set.
#[derive(Debug, Settings)]
struct Wanted {
    #[setting(default = "originals")]
    selected: Selected,
}

/// Which files are selected unless the user chooses others.
#[derive(Debug, PartialEq, Settings)]
enum Selected {
    Originals,
    All,
}

/// Lists items.
#[derive(Debug)]
pub struct ArchiveItem;

impl Resolver for ArchiveItem {
    fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, 0, out)
    }

    fn more(call: &Call, token: &str, out: &Listing<'_>) -> Result<()> {
        list(call, token.parse()?, out)
    }
}

impl Preview for ArchiveItem {
    fn preview(call: &Call, out: &Listing<'_>) -> Result<()> {
        list(call, 0, out)
    }
}

svc_plugin::plugin!(ArchiveItem: Resolver, Preview);

/// What a URL means.
struct Target {
    item: String,
    /// A file or folder of the item; empty is all of it.
    path: String,
    /// Whether the URL would give bytes without us.
    is_download: bool,
}

impl Target {
    fn of(url: &Url) -> Result<Self> {
        let item = url
            .segment(1)
            .filter(|item| is_identifier(item))
            .ok_or(Error::NotMatched)?;
        let path: Vec<_> = url.path()[2..]
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        Ok(Self {
            item: item.to_owned(),
            path: path.join("/"),
            is_download: url.segment(0) == Some("download"),
        })
    }
}

/// Accounts begin with an at sign.
fn is_identifier(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.bytes().all(is_known) && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Adds a page of files, beginning with the one at `first`.
fn list(call: &Call, first: usize, out: &Listing<'_>) -> Result<()> {
    let wanted = Wanted::read()?;
    let target = Target::of(call.url())?;
    let response = http::get(format!("https://archive.org/metadata/{}", target.item)).send()?;
    let item = Item::read(&response.text()?)?;
    let files = chosen(&target, &item)?;
    describe(&target, &item, out)?;
    let is_alone = matches!(files.as_slice(), [file] if file.name == target.path);
    for (index, file) in files.iter().enumerate().skip(first).take(PAGE_FILES) {
        let is_selected = is_alone || wanted.selected == Selected::All || file.source == Source::Original;
        add(&target.item, index, file, is_selected, out);
    }
    if files.len() > first.saturating_add(PAGE_FILES) {
        out.next_page(&(first + PAGE_FILES).to_string());
    }
    Ok(())
}

/// The files that a URL means.
fn chosen<'i>(target: &Target, item: &'i Item) -> Result<Vec<&'i File>> {
    if target.path.is_empty() {
        return Ok(item.files.iter().collect());
    }
    if let Some(file) = item.files.iter().find(|file| file.name == target.path) {
        return Ok(vec![file]);
    }
    let folder = format!("{}/", target.path);
    let below: Vec<_> = item
        .files
        .iter()
        .filter(|file| file.name.starts_with(&folder))
        .collect();
    match (below.is_empty(), target.is_download) {
        (false, _) => Ok(below),
        // The archive also serves what is inside of its archives, which it does not list.
        (true, true) => Err(Error::NotMatched),
        // A page of a book, a moment of a film: the item is meant.
        (true, false) => Ok(item.files.iter().collect()),
    }
}

fn describe(target: &Target, item: &Item, out: &Listing<'_>) -> Result<()> {
    out.title(item.title.as_deref().unwrap_or(&target.item));
    if let Some(html) = &item.description {
        let texts = text::select(&format!("<div id=description>{html}</div>"), "#description")?;
        out.description(texts.first().map_or(html, |node| &node.text).trim());
    }
    out.cover(&format!(
        "https://archive.org/services/img/{}",
        encode_segment(&target.item)
    ));
    Ok(())
}

fn add(item: &str, index: usize, file: &File, is_selected: bool, out: &Listing<'_>) {
    let entry = out.add_path(&index.to_string(), &file.name);
    entry.link(Link::new(format!(
        "https://archive.org/download/{item}/{}",
        encode_path(&file.name)
    )));
    if let Some(size) = file.size {
        entry.size(size);
    }
    if let Some(time) = file.modified_ms {
        entry.modified_ms(time);
    }
    if let Some(duration) = file.duration {
        entry.duration(duration);
    }
    // The list of files stands in itself, so its own digest cannot be right.
    if file.name != format!("{item}_files.xml") {
        for (algorithm, hex) in &file.digests {
            entry.checksum(algorithm, hex);
        }
    }
    if !is_selected {
        entry.not_selected();
    }
}
