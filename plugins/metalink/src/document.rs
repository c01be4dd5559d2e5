//! What stands in a document. The two versions differ in where things are and in how they order mirrors, not in what
//! they say, so both are read by one code.

use std::cmp::Reverse;

use roxmltree::{Document as Xml, Node, ParsingOptions};
use svc_plugin::{Error, Result, log};

/// Tags and attributes of one document. The parser takes some 100 bytes for each, and its memory is bounded.
const MAX_MARKS: usize = 120_000;

/// The hashes that the host knows, strongest first, with their digits.
const HASHES: [(&str, usize); 5] = [("sha512", 128), ("sha256", 64), ("sha1", 40), ("md5", 32), ("crc32", 8)];

/// The order of a mirror that has none.
const LAST: u32 = 999_999;

/// A document.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) files: Vec<File>,
}

/// A file of a document.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path, as the document has it: not to be trusted.
    pub(crate) name: String,
    pub(crate) size: Option<u64>,
    /// Names as the host has them, and digits; strongest first.
    pub(crate) hashes: Vec<(&'static str, String)>,
    /// Best first, of any scheme.
    pub(crate) urls: Vec<String>,
    /// Whether it could be had in ways that are not ours.
    pub(crate) has_other_sources: bool,
    pub(crate) max_connections: Option<u32>,
}

/// Reads a document. Mirrors in `location` come before all others.
pub(crate) fn read(text: &str, location: Option<&str>) -> Result<Document> {
    if !text.contains("metalink") {
        return Err(Error::NotMatched);
    }
    let marks = text.bytes().filter(|byte| matches!(byte, b'<' | b'=')).count();
    if marks > MAX_MARKS {
        return Err(Error::Parse(format!("more than {MAX_MARKS} tags and attributes")));
    }
    let options = ParsingOptions {
        // What a document type can do is to define entities that are as long as one likes.
        allow_dtd: false,
        ..ParsingOptions::default()
    };
    let xml = Xml::parse_with_options(text, options).map_err(|error| Error::Parse(error.to_string()))?;
    let root = xml.root_element();
    if root.tag_name().name() != "metalink" {
        return Err(Error::NotMatched);
    }
    let around_files = child(root, "files").unwrap_or(root);
    let files: Vec<_> = children(around_files, "file")
        .map(|node| file(node, location))
        .collect::<Result<_>>()?;
    if files.is_empty() {
        return Err(Error::Parse("the document describes no file".to_owned()));
    }
    let alone = Some(around_files)
        .filter(|_| files.len() == 1)
        .and_then(|around| child(around, "file"));
    Ok(Document {
        title: text_of(root, "identity"),
        description: text_of(root, "description").or_else(|| text_of(alone?, "description")),
        files,
    })
}

fn file(node: Node<'_, '_>, location: Option<&str>) -> Result<File> {
    let resources = child(node, "resources").unwrap_or(node);
    let verification = child(node, "verification").unwrap_or(node);
    let (torrents, mut urls): (Vec<_>, Vec<_>) = children(resources, "url").partition(is_torrent);
    urls.sort_by_key(|url| (Reverse(is_in(*url, location)), order(*url)));
    let size = text_of(node, "size");
    let size = size.map(|size| size.parse().map_err(|_| Error::Parse(format!("{size:?} is no size"))));
    Ok(File {
        name: node.attribute("name").unwrap_or_default().trim().to_owned(),
        size: size.transpose()?,
        hashes: hashes(verification)?,
        urls: urls.into_iter().filter_map(text).collect(),
        has_other_sources: !torrents.is_empty() || child(node, "metaurl").is_some(),
        max_connections: resources
            .attribute("maxconnections")
            .and_then(|count| count.parse().ok()),
    })
}

/// Whether a link of version 3 leads to a torrent instead of the file.
fn is_torrent(url: &Node<'_, '_>) -> bool {
    url.attribute("type")
        .is_some_and(|kind| kind.eq_ignore_ascii_case("bittorrent"))
}

fn is_in(url: Node<'_, '_>, location: Option<&str>) -> bool {
    let attribute = url.attribute("location");
    attribute
        .zip(location)
        .is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
}

/// Version 4 counts from 1 upwards, version 3 from 100 downwards.
fn order(url: Node<'_, '_>) -> u32 {
    let number = |name| url.attribute(name)?.trim().parse::<u32>().ok();
    let preference = || Some(100_u32.saturating_sub(number("preference")?));
    number("priority").or_else(preference).unwrap_or(LAST)
}

fn hashes(around: Node<'_, '_>) -> Result<Vec<(&'static str, String)>> {
    let mut hashes = Vec::new();
    for hash in children(around, "hash") {
        let Some(kind) = hash.attribute("type") else {
            continue;
        };
        let plain = kind.replace('-', "").to_ascii_lowercase();
        let Some(strength) = HASHES.iter().position(|(name, _)| *name == plain) else {
            log::debug(format!("a hash of type {kind} cannot be checked"));
            continue;
        };
        let (name, digits) = HASHES[strength];
        let hex = text(hash).unwrap_or_default().to_ascii_lowercase();
        // Without it, the file would pass as unverified.
        if hex.len() != digits || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::Parse(format!("{hex:?} is no {kind}")));
        }
        hashes.push((strength, name, hex));
    }
    hashes.sort();
    hashes.dedup_by_key(|(strength, ..)| *strength);
    Ok(hashes.into_iter().map(|(_, name, hex)| (name, hex)).collect())
}

fn children<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |child| child.tag_name().name() == name)
}

fn child<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> Option<Node<'a, 'i>> {
    children(node, name).next()
}

fn text_of(node: Node<'_, '_>, name: &'static str) -> Option<String> {
    text(child(node, name)?)
}

fn text(node: Node<'_, '_>) -> Option<String> {
    let text = node.text()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
