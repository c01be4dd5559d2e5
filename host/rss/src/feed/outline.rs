//! The outline of a feed in XML: what is needed of it, element by element, however broken the rest is.

use std::{borrow::Cow, time::Duration};

use jiff::tz::TimeZone;
use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};
use transfer::SafeUrl;

use super::{
    FeedError, MAX_DEPTH, MAX_ENTRIES, MAX_TEXT_BYTES, MAX_TTL, Outline, Piece, date,
    entry::Extras,
    links::Cost,
    size::{in_text, parse_size},
};

/// Attributes that are read per element; no element of a feed has more.
const MAX_ATTRIBUTES: usize = 32;

/// Elements that are read per entry. A group of media has one for each size of each picture.
const MAX_PIECES: usize = 128;

/// Declarations of namespaces that are read; they are looked through for every element with a prefix.
const MAX_PREFIXES: usize = 64;

/// What an element's namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    /// None, or one of RSS.
    Rss,
    Atom,
    Dublin,
    Media,
    /// `torznab:attr` and `newznab:attr`.
    Indexer,
    /// `torrent:` of several sites, and `nyaa:`.
    Tracker,
    Syndication,
    Other,
}

/// An open element.
struct Frame {
    name: String,
    place: Place,
    default: Namespace,
    base: Option<SafeUrl>,
}

/// What an element is for the outline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Channel,
    Entry,
    /// Within an entry: its children count as the entry's.
    Wrapper,
    SkipHours,
    SkipDays,
    /// Its text is read.
    Field(Field),
    Other,
}

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// An element of this name for `feed-rs`.
    Piece(&'static str),
    Description,
    Size,
    InfoHash,
    Magnet,
    Ttl,
    Period,
    Frequency,
    SkippedHour,
    SkippedDay,
}

/// Reads repaired XML.
pub(super) fn xml(text: &str, url: &SafeUrl) -> Result<Outline, FeedError> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    let mut walk = Walk::new(url);
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            // What was read before the place is a feed that was truncated.
            Err(_) if !walk.outline.entries.is_empty() => break,
            Err(error) => return Err(FeedError::Broken(error.to_string())),
        };
        match event {
            Event::Start(tag) => walk.open(&tag)?,
            Event::Empty(tag) => {
                walk.open(&tag)?;
                walk.close_last();
            }
            Event::End(tag) => walk.close(tag.name().local_name().as_ref()),
            Event::Text(text) => walk.text(&text),
            Event::GeneralRef(reference) => {
                let whole = format!("&{};", &*reference);
                walk.text(&quick_xml::escape::unescape(&whole).unwrap_or(Cow::Borrowed("")));
            }
            Event::Eof => break,
            _ => {}
        }
        walk.cost.check()?;
    }
    while !walk.frames.is_empty() {
        walk.close_last();
    }
    let update = Duration::from_secs(walk.period / walk.frequency.max(1));
    let hints = &mut walk.outline.hints;
    hints.ttl = hints.ttl.max(update).min(MAX_TTL);
    walk.is_feed.then_some(walk.outline).ok_or(FeedError::NotAFeed)
}

/// The walk through a document.
struct Walk<'a> {
    url: &'a SafeUrl,
    frames: Vec<Frame>,
    /// Prefixes as they were declared, wherever that was.
    prefixes: Vec<(String, Namespace)>,
    outline: Outline,
    is_feed: bool,
    /// The entry that is open.
    entry: Option<(Vec<Piece>, Extras)>,
    /// The text of the open field, and the piece it is for.
    piece: Piece,
    /// The syndication period in seconds, and how many updates there are in it; 0 is unknown.
    period: u64,
    frequency: u64,
    cost: Cost,
}

impl<'a> Walk<'a> {
    fn new(url: &'a SafeUrl) -> Self {
        Self {
            url,
            frames: Vec::new(),
            prefixes: Vec::new(),
            outline: Outline::default(),
            is_feed: false,
            entry: None,
            piece: Piece::default(),
            period: 0,
            frequency: 0,
            cost: Cost::default(),
        }
    }

    fn open(&mut self, tag: &BytesStart<'_>) -> Result<(), FeedError> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(FeedError::TooDeep);
        }
        let attributes = attributes(tag);
        let mut default = self.frames.last().map_or(Namespace::Rss, |frame| frame.default);
        for (name, value) in &attributes {
            if name == "xmlns" {
                default = namespace(value);
            } else if let Some(prefix) = name
                .strip_prefix("xmlns:")
                .filter(|_| self.prefixes.len() < MAX_PREFIXES)
            {
                self.prefixes.push((prefix.to_owned(), namespace(value)));
            }
        }
        let name = tag.name();
        let local = name.local_name().as_ref().to_owned();
        let namespace = match name.prefix() {
            Some(prefix) => self.namespace_of(prefix.as_ref()),
            None => default,
        };
        let base = attributes.iter().find(|(name, _)| name == "xml:base");
        let base = base.and_then(|(_, base)| self.absolute(base));
        if self.frames.is_empty() {
            self.root(&local, namespace)?;
        }
        self.end_unclosed(&local, namespace);
        let base = base.or_else(|| self.frames.last().and_then(|frame| frame.base.clone()));
        self.frames.push(Frame {
            name: local.clone(),
            place: Place::Other,
            default,
            base,
        });
        let place = self.place(&local, namespace, &attributes);
        if let Some(frame) = self.frames.last_mut() {
            frame.place = place;
        }
        Ok(())
    }

    fn root(&mut self, local: &str, namespace: Namespace) -> Result<(), FeedError> {
        match local {
            "rss" | "RDF" | "rdf" | "channel" => self.is_feed = true,
            "feed" => (self.is_feed, self.outline.is_atom) = (true, true),
            _ if local.eq_ignore_ascii_case("html") => return Err(FeedError::WebPage),
            _ if self.outline.entries.is_empty() && !self.is_feed => return Err(FeedError::NotAFeed),
            _ => {}
        }
        let is_dialect = matches!(namespace, Namespace::Rss | Namespace::Atom | Namespace::Other);
        is_dialect.then_some(()).ok_or(FeedError::NotAFeed)
    }

    /// Ends elements that were left open: items do not nest, and a title holds no link.
    fn end_unclosed(&mut self, local: &str, namespace: Namespace) {
        let is_plain = matches!(namespace, Namespace::Rss);
        let last = self.frames.last().map(|frame| frame.place);
        if is_plain && local == "item" && self.entry.is_some() {
            while self.entry.is_some() {
                self.close_last();
            }
        } else if is_plain
            && matches!(last, Some(Place::Field(Field::Piece(_))))
            && matches!(
                local,
                "title" | "link" | "guid" | "pubDate" | "enclosure" | "description"
            )
        {
            self.close_last();
        }
    }

    /// What the element that was just opened is; begins entries and fields.
    fn place(&mut self, local: &str, namespace: Namespace, attributes: &[(String, String)]) -> Place {
        let parent = self.frames.len().checked_sub(2).map(|at| self.frames[at].place);
        let is_plain = matches!(namespace, Namespace::Rss | Namespace::Atom);
        let is_entry = is_plain && local == if self.outline.is_atom { "entry" } else { "item" };
        if is_entry && self.entry.is_none() {
            self.entry = Some(Default::default());
            // RSS 1.0 names an item by what it is about. A `guid`, which follows, counts more.
            if let Some((_, about)) = attributes.iter().find(|(name, _)| name == "rdf:about") {
                self.keep(Piece {
                    name: "guid",
                    attributes: vec![("isPermaLink", "false".to_owned())],
                    text: about.clone(),
                });
            }
            return Place::Entry;
        }
        match parent {
            None if self.outline.is_atom || local == "channel" => Place::Channel,
            Some(Place::Other) if local == "channel" => Place::Channel,
            Some(Place::SkipHours) if local == "hour" => self.field(Field::SkippedHour),
            Some(Place::SkipDays) if local == "day" => self.field(Field::SkippedDay),
            Some(Place::Channel) => self.of_channel(local, namespace),
            Some(Place::Entry | Place::Wrapper) => self.of_entry(local, namespace, attributes),
            _ => Place::Other,
        }
    }

    fn of_channel(&mut self, local: &str, namespace: Namespace) -> Place {
        match (namespace, local) {
            (Namespace::Rss | Namespace::Atom, "title") => self.field(Field::Piece("title")),
            (Namespace::Rss, "ttl") => self.field(Field::Ttl),
            (Namespace::Rss, "skipHours") => Place::SkipHours,
            (Namespace::Rss, "skipDays") => Place::SkipDays,
            (Namespace::Syndication, "updatePeriod") => self.field(Field::Period),
            (Namespace::Syndication, "updateFrequency") => self.field(Field::Frequency),
            _ => Place::Other,
        }
    }

    fn of_entry(&mut self, local: &str, namespace: Namespace, attributes: &[(String, String)]) -> Place {
        use Namespace::{Atom, Dublin, Indexer, Media, Rss, Tracker};
        let is_atom = self.outline.is_atom;
        match (namespace, local) {
            (Rss | Atom, "title") => self.field(Field::Piece("title")),
            (Rss | Atom, "link") if attributes.iter().any(|(name, _)| name == "href") => self.link(attributes),
            (Rss, "link") => self.field(Field::Piece("link")),
            (Rss | Atom, "guid" | "id") => self.field(Field::Piece(if is_atom { "id" } else { "guid" })),
            (Rss | Atom, "enclosure") => self.linked("enclosure", "url", attributes, &["length", "type"]),
            (Media, "content") => self.linked("media:content", "url", attributes, &["fileSize", "type"]),
            (Media, "group") => Place::Wrapper,
            // The last one that is read counts for feed-rs; the day of publication comes after that of changes.
            (Rss | Atom, "updated" | "modified") if is_atom => self.field(Field::Piece("updated")),
            (Rss | Atom, "published" | "issued" | "pubDate" | "pubdate") | (Dublin, "date") => {
                self.field(Field::Piece(if is_atom { "published" } else { "pubDate" }))
            }
            (Rss | Atom, "description" | "summary" | "content") => self.field(Field::Description),
            (Rss, "size") => self.field(Field::Size),
            (Indexer, "attr") => self.indexer(attributes),
            (Rss | Tracker, "torrent") => Place::Wrapper,
            (_, "contentLength") | (Tracker, "size") => self.field(Field::Size),
            (Tracker, "infoHash") | (_, "infoHash" | "info_hash") => self.field(Field::InfoHash),
            (Tracker, "magnetURI") => self.field(Field::Magnet),
            _ => Place::Other,
        }
    }

    fn field(&mut self, field: Field) -> Place {
        let name = if let Field::Piece(name) = field { name } else { "" };
        self.piece = Piece {
            name,
            ..Piece::default()
        };
        Place::Field(field)
    }

    /// A link of Atom. In an entry of RSS it is one of its extensions.
    fn link(&mut self, attributes: &[(String, String)]) -> Place {
        let name = if self.outline.is_atom { "link" } else { "atom:link" };
        let rel = attributes
            .iter()
            .find(|(name, _)| name == "rel")
            .map_or("alternate", |(_, rel)| rel);
        if name == "link" {
            return self.linked(name, "href", attributes, &["rel", "type", "length"]);
        }
        // feed-rs reads enclosures of RSS in one form only.
        match rel {
            "enclosure" => {
                let renamed = |name: &str| if name == "href" { "url" } else { name }.to_owned();
                let renamed: Vec<_> = attributes
                    .iter()
                    .map(|(name, value)| (renamed(name), value.clone()))
                    .collect();
                self.linked("enclosure", "url", &renamed, &["length", "type"])
            }
            _ => Place::Other,
        }
    }

    /// An element whose content is a URL in an attribute.
    fn linked(
        &mut self,
        name: &'static str,
        of: &'static str,
        from: &[(String, String)],
        more: &[&'static str],
    ) -> Place {
        let value = |wanted: &str| from.iter().find(|(name, _)| name == wanted).map(|(_, value)| value);
        if let Some(url) = value(of).and_then(|url| self.absolute(url)) {
            let mut piece = Piece {
                name,
                attributes: vec![(of, url.expose().to_owned())],
                text: String::new(),
            };
            let rest = more
                .iter()
                .filter_map(|name| Some((*name, value(name)?.trim().to_owned())));
            piece
                .attributes
                .extend(rest.filter(|(_, value)| value.len() <= MAX_TEXT_BYTES));
            self.keep(piece);
        }
        Place::Other
    }

    /// `<torznab:attr name="size" value="…"/>`.
    fn indexer(&mut self, attributes: &[(String, String)]) -> Place {
        let value = |wanted: &str| {
            attributes
                .iter()
                .find(|(name, _)| name == wanted)
                .map(|(_, value)| value.as_str())
        };
        if let (Some(name), Some(value), Some((_, extras))) = (value("name"), value("value"), &mut self.entry) {
            match name.to_ascii_lowercase().as_str() {
                "size" => extras.size = value.trim().parse().ok().or(extras.size),
                "infohash" => extras.set_infohash(value),
                "magneturl" => extras.set_magnet(value),
                _ => {}
            }
        }
        Place::Other
    }

    fn absolute(&mut self, url: &str) -> Option<SafeUrl> {
        let base = self
            .frames
            .last()
            .and_then(|frame| frame.base.as_ref())
            .unwrap_or(self.url);
        // Programs that wrap lines break URLs, too.
        let url = url.trim().replace(['\n', '\r', '\t'], "");
        self.cost.resolve(base, &url)
    }

    fn text(&mut self, text: &str) {
        let is_open = self
            .frames
            .iter()
            .rev()
            .any(|frame| matches!(frame.place, Place::Field(_)));
        let left = MAX_TEXT_BYTES.saturating_sub(self.piece.text.len());
        if is_open && left > 0 {
            self.piece.text.push_str(&text[..text.floor_char_boundary(left)]);
        }
    }

    fn close(&mut self, name: &str) {
        let depth = self.frames.iter().rposition(|frame| frame.name == name);
        // An end of what is not open ends nothing.
        let Some(depth) = depth else { return };
        while self.frames.len() > depth {
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        // The frame stays while its text is resolved against its base.
        match self.frames.last().map(|frame| frame.place) {
            Some(Place::Field(field)) => self.end_field(field),
            Some(Place::Entry) => {
                let entry = self.entry.take();
                if self.outline.entries.len() < MAX_ENTRIES {
                    self.outline.entries.extend(entry);
                } else {
                    self.outline.dropped += 1;
                }
            }
            _ => {}
        }
        self.frames.pop();
    }

    fn end_field(&mut self, field: Field) {
        let mut piece = std::mem::take(&mut self.piece);
        let text = piece.text.trim().to_owned();
        let extras = self.entry.as_mut().map(|(_, extras)| extras);
        match (field, extras) {
            (Field::Piece("link"), _) if !text.is_empty() => {
                if let Some(url) = self.absolute(&text) {
                    url.expose().clone_into(&mut piece.text);
                    self.keep(piece);
                }
            }
            (Field::Piece("pubDate" | "published" | "updated"), _) if !text.is_empty() => {
                if let Some(time) = date::without_zone(&text, &TimeZone::system()) {
                    piece.text = time.to_string();
                }
                self.keep(piece);
            }
            (Field::Piece(_), _) if !text.is_empty() => self.keep(piece),
            (Field::Size, Some(extras)) => extras.size = extras.size.or_else(|| parse_size(&text)),
            (Field::Description, Some(extras)) => extras.said_size = extras.said_size.or_else(|| in_text(&text)),
            (Field::InfoHash, Some(extras)) => extras.set_infohash(&text),
            (Field::Magnet, Some(extras)) => extras.set_magnet(&text),
            _ => self.end_hint(field, &text),
        }
    }

    fn end_hint(&mut self, field: Field, text: &str) {
        let hints = &mut self.outline.hints;
        match field {
            Field::Ttl => {
                let minutes: u64 = text.parse().unwrap_or(0);
                hints.ttl = Duration::from_secs(minutes.saturating_mul(60)).min(MAX_TTL);
            }
            Field::Period => {
                const DAY: u64 = 24 * 3600;
                self.period = match text {
                    "hourly" => 3600,
                    "daily" => DAY,
                    "weekly" => 7 * DAY,
                    "monthly" => 30 * DAY,
                    "yearly" => 365 * DAY,
                    _ => 0,
                };
            }
            Field::Frequency => self.frequency = text.parse().unwrap_or(0),
            Field::SkippedHour => {
                // 24 was midnight in RSS 0.91.
                let hour = text.parse::<u32>().ok().map(|hour| hour % 24);
                hints.skip_hours |= hour.map_or(0, |hour| 1 << hour);
            }
            Field::SkippedDay => {
                const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
                let lower = text.to_ascii_lowercase();
                let day = DAYS.iter().position(|day| lower.starts_with(day));
                hints.skip_days |= day.map_or(0, |day| 1 << day);
            }
            _ => {}
        }
    }

    fn keep(&mut self, piece: Piece) {
        self.cost.keep(&piece);
        match &mut self.entry {
            Some((pieces, _)) if pieces.len() < MAX_PIECES => pieces.push(piece),
            None if self.outline.channel.len() < MAX_PIECES => self.outline.channel.push(piece),
            _ => {}
        }
    }

    fn namespace_of(&self, prefix: &str) -> Namespace {
        let declared = self.prefixes.iter().rev().find(|(known, _)| known == prefix);
        // Feeds forget to declare what everybody knows.
        declared.map_or_else(|| namespace(&format!("prefix:{prefix}")), |(_, namespace)| *namespace)
    }
}

fn attributes(tag: &BytesStart<'_>) -> Vec<(String, String)> {
    let mut all = tag.attributes();
    let readable = all.with_checks(false).take(MAX_ATTRIBUTES).filter_map(Result::ok);
    let pairs = readable.map(|attribute| {
        let raw: &str = &attribute.value;
        let value = quick_xml::escape::unescape(raw).unwrap_or(Cow::Borrowed(raw));
        (attribute.key.as_ref().to_owned(), value.into_owned())
    });
    pairs.collect()
}

/// The namespace of a URI; of a conventional prefix if none was declared.
fn namespace(uri: &str) -> Namespace {
    const KNOWN: &[(&str, Namespace)] = &[
        ("torznab", Namespace::Indexer),
        ("newznab", Namespace::Indexer),
        ("ezrss", Namespace::Tracker),
        ("nyaa", Namespace::Tracker),
        ("prefix:torrent", Namespace::Tracker),
        ("mrss", Namespace::Media),
        ("prefix:media", Namespace::Media),
        ("purl.org/dc/", Namespace::Dublin),
        ("prefix:dc", Namespace::Dublin),
        ("modules/syndication", Namespace::Syndication),
        ("prefix:sy", Namespace::Syndication),
        ("w3.org/2005/atom", Namespace::Atom),
        ("purl.org/atom/ns", Namespace::Atom),
        ("prefix:atom", Namespace::Atom),
        ("prefix:a10", Namespace::Atom),
        ("purl.org/rss/1.0/modules", Namespace::Other),
        ("purl.org/rss/1.0", Namespace::Rss),
        ("netscape.com/rdf", Namespace::Rss),
        ("prefix:rss", Namespace::Rss),
        ("backend.userland.com/rss", Namespace::Rss),
        ("blogs.law.harvard.edu/tech/rss", Namespace::Rss),
        ("mikanani", Namespace::Tracker),
    ];
    let lower = uri.to_ascii_lowercase();
    let known = KNOWN.iter().find(|(part, _)| lower.contains(part));
    known.map_or(
        if uri.is_empty() {
            Namespace::Rss
        } else {
            Namespace::Other
        },
        |(_, namespace)| *namespace,
    )
}
