//! What is known of a feed and its entries after reading, whichever format it had.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    time::Duration,
};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use transfer::SafeUrl;

use super::{MAX_TEXT_BYTES, links::MAX_LINK_BYTES};
use crate::title::truncate;

/// What may be downloaded; a feed cannot name a file of this machine.
const SCHEMES: &[&str] = &["http", "https", "ftp", "ftps", "ftpes", "sftp", "magnet"];

/// The media type of torrents.
const TORRENT: &str = "application/x-bittorrent";

/// When a feed asks to be left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// For how long after a fetch.
    pub ttl: Duration,
    /// In these hours: bit 0 is midnight UTC.
    pub skip_hours: u32,
    /// On these days, by UTC: bit 0 is Monday.
    pub skip_days: u8,
}

/// A feed that was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Feed {
    /// Its title; empty without one.
    pub title: String,
    /// When it asks to be left alone.
    pub hints: Hints,
    /// In the order of the feed.
    pub entries: Vec<Entry>,
    /// How many further entries were not read.
    pub dropped: usize,
}

/// An entry of a feed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entry {
    /// The feed's own identifier of it, or one that was made of what it links to; never empty.
    pub guid: String,
    /// Its title, on one line; empty without one.
    pub title: String,
    /// The page about it.
    pub link: Option<SafeUrl>,
    /// The file.
    pub enclosure: Option<Enclosure>,
    /// When it was published.
    pub published: Option<Timestamp>,
    /// The torrent's, in small hexadecimal digits.
    pub infohash: Option<String>,
    /// A resolver plugin is asked what to download.
    pub resolve_with_plugin: bool,
}

/// The file of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosure {
    /// Where it is.
    pub url: SafeUrl,
    /// Its size, if known.
    pub bytes: Option<u64>,
    /// It is a torrent, whose size is that of its files and not its own.
    pub is_torrent: bool,
}

impl Entry {
    /// What a download of it begins with: the file, or else the page.
    pub fn target(&self) -> Option<&SafeUrl> {
        self.enclosure
            .as_ref()
            .map(|enclosure| &enclosure.url)
            .or(self.link.as_ref())
    }

    /// The size that rules judge: of the file, or of the files of a torrent.
    pub fn bytes(&self) -> Option<u64> {
        self.enclosure
            .as_ref()
            .and_then(|enclosure| enclosure.bytes)
            .filter(|bytes| *bytes > 0)
    }
}

/// What `feed-rs` has no place for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Extras {
    pub(super) size: Option<u64>,
    /// A size in the description, if nothing else says one.
    pub(super) said_size: Option<u64>,
    pub(super) infohash: Option<String>,
    pub(super) magnet: Option<SafeUrl>,
}

impl Extras {
    pub(super) fn set_infohash(&mut self, text: &str) {
        self.infohash = infohash(text).or(self.infohash.take());
    }

    pub(super) fn set_magnet(&mut self, text: &str) {
        let url = SafeUrl::parse(text)
            .ok()
            .filter(|url| url.scheme() == "magnet" && url.expose().len() <= MAX_LINK_BYTES);
        self.magnet = url.or(self.magnet.take());
    }
}

/// Brings together what `feed-rs` read and what was collected beside it.
pub(super) fn feed(parsed: feed_rs::model::Feed, extras: Vec<Extras>, hints: Hints, dropped: usize) -> Feed {
    let title = parsed.title.map_or(String::new(), |title| one_line(&title.content));
    let mut entries: Vec<_> = parsed
        .entries
        .into_iter()
        .zip(extras)
        .map(|(entry, extras)| read(entry, extras))
        .collect();
    identify(&mut entries);
    Feed {
        title,
        hints,
        entries,
        dropped,
    }
}

fn read(entry: feed_rs::model::Entry, extras: Extras) -> Entry {
    let guid = entry.id.trim().to_owned();
    let is_page = |link: &&feed_rs::model::Link| matches!(link.rel.as_deref(), None | Some("alternate" | "via"));
    let link = entry
        .links
        .iter()
        .filter(|link| link.media_type.as_deref() != Some(TORRENT))
        .find(is_page);
    let link = link
        .or_else(|| entry.links.iter().find(is_page))
        .and_then(|link| allowed(&link.href));
    let link = link.or_else(|| allowed(&guid));
    let size = extras.size.or(extras.said_size);
    let magnet = extras.magnet.map(|url| (url, String::new(), None));
    // Indexes of torrents link to the torrent itself.
    let linked = link
        .clone()
        .filter(|url| is_torrent(url, "") || url.scheme() == "magnet");
    let linked = || linked.map(|url| (url, String::new(), None));
    let enclosure = magnet
        .or_else(|| file(&entry))
        .or_else(linked)
        .map(|(url, media_type, length)| {
            let is_torrent = is_torrent(&url, &media_type);
            Enclosure {
                // The length of a torrent is that of the small file, if its publisher knew what the field means.
                bytes: if is_torrent {
                    size
                } else {
                    length.filter(|bytes| *bytes > 0).or(size)
                },
                url,
                is_torrent,
            }
        });
    let infohash = extras.infohash.or_else(|| {
        let url = enclosure.as_ref().map(|enclosure| &enclosure.url).or(link.as_ref())?;
        magnet_infohash(url)
    });
    let published = entry.published.or(entry.updated);
    Entry {
        title: entry.title.map_or(String::new(), |title| one_line(&title.content)),
        published: published.and_then(|time| Timestamp::from_millisecond(time.timestamp_millis()).ok()),
        guid,
        link,
        enclosure,
        infohash,
        resolve_with_plugin: false,
    }
}

/// The entry's file: an enclosure, or the largest media content. URL, media type and length.
fn file(entry: &feed_rs::model::Entry) -> Option<(SafeUrl, String, Option<u64>)> {
    let is_file = |link: &&feed_rs::model::Link| {
        // JSON Feed's attachments have a type and no relation.
        link.rel.as_deref() == Some("enclosure") || (link.rel.is_none() && link.media_type.is_some())
    };
    let linked = entry.links.iter().filter(is_file).filter_map(|link| {
        let media_type = link.media_type.clone().unwrap_or_default();
        Some((allowed(&link.href)?, media_type, link.length))
    });
    let media = entry
        .media
        .iter()
        .flat_map(|media| &media.content)
        .filter_map(|content| {
            let url = allowed(content.url.as_ref()?.as_str())?;
            let media_type = content.content_type.as_ref().map_or(String::new(), ToString::to_string);
            Some((url, media_type, content.size))
        });
    let all: Vec<_> = linked.chain(media).collect();
    let rank = |(url, media_type, length): &(SafeUrl, String, Option<u64>)| {
        let is_picture = media_type.starts_with("image/");
        (is_torrent(url, media_type), !is_picture, length.unwrap_or(0))
    };
    // The first of equals.
    all.into_iter().rev().max_by_key(rank)
}

pub(super) fn is_torrent(url: &SafeUrl, media_type: &str) -> bool {
    let path = url.as_url().path().to_ascii_lowercase();
    media_type.eq_ignore_ascii_case(TORRENT) || path.ends_with(".torrent")
}

pub(super) fn allowed(url: &str) -> Option<SafeUrl> {
    SafeUrl::parse(url).ok().filter(|url| SCHEMES.contains(&url.scheme()))
}

/// A text for a list or a log: one line, no control characters, bounded.
pub(crate) fn one_line(text: &str) -> String {
    let text = html_escape::decode_html_entities(text);
    let words: Vec<_> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    truncate(&words.join(" "), MAX_TEXT_BYTES / 4).to_owned()
}

/// An info hash of version 1: 40 hexadecimal digits, or 32 of base 32.
pub(super) fn infohash(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hex = text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hex {
        return Some(text.to_ascii_lowercase());
    }
    let bytes = data_encoding::BASE32
        .decode(text.to_ascii_uppercase().as_bytes())
        .ok()?;
    (bytes.len() == 20).then(|| data_encoding::HEXLOWER.encode(&bytes))
}

pub(super) fn magnet_infohash(url: &SafeUrl) -> Option<String> {
    let mut topics = url.as_url().query_pairs().filter(|(name, _)| name == "xt");
    topics
        .find_map(|(_, topic)| infohash(topic.strip_prefix("urn:btih:")?))
        .filter(|_| url.scheme() == "magnet")
}

/// Gives every entry an identifier of its own: the feed's, unless it gives none, or one to several different entries.
pub(super) fn identify(entries: &mut Vec<Entry>) {
    // A link that several entries without an identifier share is that of the site, and says nothing of them.
    let mut titles: HashMap<String, HashSet<String>> = HashMap::new();
    for entry in entries.iter() {
        titles.entry(made(entry)).or_default().insert(entry.title.clone());
    }
    let made = |entry: &Entry| match titles.get(&made(entry)) {
        Some(titles) if titles.len() > 1 => digest(&format!("{}\n{}", made(entry), entry.title)),
        _ => made(entry),
    };
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    for entry in entries.iter().filter(|entry| !entry.guid.is_empty()) {
        seen.entry(entry.guid.clone()).or_default().push(made(entry));
    }
    for entry in entries.iter_mut() {
        let is_unique = seen
            .get(&entry.guid)
            .is_some_and(|others| others.iter().all(|other| *other == others[0]));
        if !is_unique {
            entry.guid = made(entry);
        } else if entry.guid.len() > MAX_TEXT_BYTES / 4 {
            entry.guid = digest(&entry.guid);
        }
    }
    // An entry that says nothing at all is none, and one that stands there twice is one.
    let mut known = HashSet::new();
    entries.retain(|entry| {
        let says_something = !entry.title.is_empty() || entry.target().is_some();
        says_something && known.insert(entry.guid.clone())
    });
}

/// The identifier of an entry without one: of its file, else its link, else its title.
fn made(entry: &Entry) -> String {
    digest(entry.target().map_or(entry.title.as_str(), SafeUrl::expose))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string does not fail");
            hex
        })
}
