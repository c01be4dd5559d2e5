//! Reads feeds: RSS 0.9x, 1.0 and 2.0, Atom and JSON Feed, with the extensions of trackers and indexers.
//!
//! `feed-rs` decides what the fields of a dialect mean. It has no limits, refuses a whole feed for one bad element and
//! drops namespaces that it does not know. So it is given a document that [`outline`] wrote: repaired, bounded, with
//! absolute URLs, and with nothing in it but what is needed; what `feed-rs` would drop is collected on the way.

mod date;
mod discover;
mod encoding;
mod entry;
mod json;
mod links;
mod outline;
mod provided;
mod repair;
mod size;

use std::time::Duration;

use transfer::SafeUrl;

pub use {
    discover::discover,
    entry::{Enclosure, Entry, Feed, Hints},
    provided::{ProvidedFeed, ProvidedItem},
    size::parse_size,
};

pub(crate) use entry::one_line;

use entry::Extras;

/// The largest feed, in bytes.
pub const MAX_FEED_BYTES: usize = 8 * 1024 * 1024;

/// The most entries that are read of one feed; further ones are counted and dropped. Feeds list the newest first.
pub const MAX_ENTRIES: usize = 2000;

/// Elements inside each other. Feeds need fewer than ten; the text of an Atom entry as XHTML a few more.
pub const MAX_DEPTH: usize = 128;

/// The most that is read of one text or attribute, in bytes; of a title or an identifier a quarter of it is kept.
pub const MAX_TEXT_BYTES: usize = 4 * 1024;

/// The most that a feed may ask to be left alone.
pub const MAX_TTL: Duration = Duration::from_hours(24);

/// Why a document is not read as a feed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedError {
    /// More than [`MAX_FEED_BYTES`].
    #[error("the feed is larger than {MAX_FEED_BYTES} bytes")]
    TooLarge,
    /// Elements deeper than [`MAX_DEPTH`].
    #[error("the feed nests elements deeper than {MAX_DEPTH}")]
    TooDeep,
    /// It declares entities, which could expand to any size.
    #[error("the feed declares entities of its own, which are not read")]
    Entities,
    /// It is a web page: its feeds may be found with [`discover()`].
    #[error("this is a web page and not a feed")]
    WebPage,
    /// It is no feed of a known format.
    #[error("this is not a feed: neither RSS, Atom nor JSON Feed")]
    NotAFeed,
    /// It breaks off or is broken before its first entry.
    #[error("the feed cannot be read: {0}")]
    Broken(String),
}

/// Reads a feed that was fetched from `url`; `content_type` is the header of that name.
pub fn read(bytes: &[u8], url: &SafeUrl, content_type: &str) -> Result<Feed, FeedError> {
    if bytes.len() > MAX_FEED_BYTES {
        return Err(FeedError::TooLarge);
    }
    let text = encoding::decode(bytes, content_type);
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}');
    let outline = if text.starts_with(['{', '[']) {
        json::outline(text, url)?
    } else {
        outline::xml(&repair::repair(text)?, url)?
    };
    let (document, extras) = outline.write();
    let parser = feed_rs::parser::Builder::new()
        // Entries without an identifier get one of ours, which does not change from one fetch to the next.
        .id_generator(|_, _, _| String::new())
        .sanitize_content(false)
        .build();
    let parsed = parser.parse(document.as_bytes());
    let parsed = parsed.map_err(|error| FeedError::Broken(error.to_string()))?;
    debug_assert_eq!(
        parsed.entries.len(),
        extras.len(),
        "feed-rs reads every entry that was written for it"
    );
    Ok(entry::feed(parsed, extras, outline.hints, outline.dropped))
}

/// The text of a document in XML, as far as it can be repaired.
pub(crate) fn repaired(bytes: &[u8], content_type: &str) -> Result<String, FeedError> {
    repair::repair(&encoding::decode(bytes, content_type))
}

/// One element of the document that `feed-rs` reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Piece {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    text: String,
}

/// What a feed says, in one of the two forms that are written for `feed-rs`.
#[derive(Debug, Default)]
struct Outline {
    is_atom: bool,
    channel: Vec<Piece>,
    entries: Vec<(Vec<Piece>, Extras)>,
    hints: Hints,
    /// Entries that were not read, because there were too many.
    dropped: usize,
}

impl Outline {
    /// The document, and what it has no place for, entry by entry.
    fn write(&self) -> (String, Vec<Extras>) {
        let (begin, entry, end) = if self.is_atom {
            (ATOM_BEGIN, "entry", "</feed>")
        } else {
            (RSS_BEGIN, "item", "</channel></rss>")
        };
        let mut document = begin.to_owned();
        let mut extras = Vec::with_capacity(self.entries.len());
        for piece in &self.channel {
            piece.write(&mut document);
        }
        for (pieces, more) in &self.entries {
            document.extend(["<", entry, ">"]);
            for piece in pieces {
                piece.write(&mut document);
            }
            document.extend(["</", entry, ">"]);
            extras.push(more.clone());
        }
        document.push_str(end);
        (document, extras)
    }
}

const ATOM_BEGIN: &str = r#"<feed xmlns="http://www.w3.org/2005/Atom" xmlns:media="http://search.yahoo.com/mrss/">"#;

const RSS_BEGIN: &str = r#"<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/"><channel>"#;

impl Piece {
    fn write(&self, document: &mut String) {
        document.extend(["<", self.name]);
        for (name, value) in &self.attributes {
            document.extend([" ", name, "=\"", &quick_xml::escape::escape(value.as_str()), "\""]);
        }
        document.extend([">", &quick_xml::escape::escape(self.text.trim()), "</", self.name, ">"]);
    }
}
