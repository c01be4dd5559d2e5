//! Feeds that plugins read: bounded by the sandbox, but not yet clean, and not yet with identifiers.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    MAX_TTL,
    entry::{Enclosure, Entry, Feed, Hints, allowed, identify, infohash, is_torrent, magnet_infohash, one_line},
    size,
};

/// A feed as a plugin gives it.
#[derive(Debug, Clone, Default)]
pub struct ProvidedFeed {
    /// Its title; empty without one.
    pub title: String,
    /// For the next call; empty without one.
    pub etag: String,
    /// How long it asks to be left alone.
    pub ttl: Duration,
    /// In the plugin's order.
    pub items: Vec<ProvidedItem>,
}

/// An item of such a feed.
#[derive(Debug, Clone, Default)]
pub struct ProvidedItem {
    /// The plugin's own identifier of it; empty without one.
    pub guid: String,
    /// Its title.
    pub title: String,
    /// The page about it; empty without one.
    pub link: String,
    /// Its file; empty without one.
    pub enclosure: String,
    /// The media type of the file; empty if it is unknown.
    pub media_type: String,
    /// The size of its file, or of the files of its torrent.
    pub size: Option<u64>,
    /// What is said of it; a size in it counts if there is none.
    pub summary: String,
    /// When it was published, in milliseconds of the Unix epoch.
    pub published_ms: Option<u64>,
    /// Its torrent's, in hexadecimal digits.
    pub infohash: String,
    /// A resolver plugin must say what there is at the link.
    pub resolve_with_plugin: bool,
}

impl From<ProvidedFeed> for Feed {
    fn from(provided: ProvidedFeed) -> Self {
        let mut entries = provided.items.iter().map(entry).collect();
        identify(&mut entries);
        Self {
            title: one_line(&provided.title),
            hints: Hints {
                ttl: provided.ttl.min(MAX_TTL),
                ..Hints::default()
            },
            entries,
            dropped: 0,
        }
    }
}

fn entry(item: &ProvidedItem) -> Entry {
    let link = allowed(&item.link);
    let file = allowed(&item.enclosure).filter(|_| !item.resolve_with_plugin);
    // What there is at the link has the size.
    let target = file.or_else(|| link.clone());
    let enclosure = target.map(|url| Enclosure {
        bytes: item
            .size
            .filter(|bytes| *bytes > 0)
            .or_else(|| size::in_text(&item.summary)),
        is_torrent: is_torrent(&url, &item.media_type),
        url,
    });
    let in_magnet = || magnet_infohash(&enclosure.as_ref()?.url);
    let published = item.published_ms.and_then(|time| i64::try_from(time).ok());
    Entry {
        infohash: infohash(&item.infohash).or_else(in_magnet),
        guid: item.guid.trim().to_owned(),
        title: one_line(&item.title),
        link,
        enclosure,
        published: published.and_then(|time| Timestamp::from_millisecond(time).ok()),
        resolve_with_plugin: item.resolve_with_plugin,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(item: ProvidedItem) -> Option<Entry> {
        let feed = ProvidedFeed {
            items: vec![item],
            ..ProvidedFeed::default()
        };
        Feed::from(feed).entries.pop()
    }

    #[test]
    fn a_plugin_s_items_are_cleaned_like_those_of_any_feed() {
        let item = ProvidedItem {
            title: " a\u{1b}[2J\n b ".to_owned(),
            link: "https://example.org/1".to_owned(),
            enclosure: "https://example.org/1.torrent".to_owned(),
            size: Some(5),
            infohash: "A".repeat(40),
            published_ms: Some(1_000),
            ..ProvidedItem::default()
        };
        let entry = read(item.clone()).unwrap();
        assert_eq!(entry.title, "a [2J b");
        assert!(!entry.guid.is_empty(), "one is made");
        assert_eq!(
            (entry.bytes(), entry.infohash.as_deref()),
            (Some(5), Some(&*"a".repeat(40)))
        );
        assert!(entry.enclosure.as_ref().unwrap().is_torrent);
        assert_eq!(entry.published.unwrap().as_second(), 1);
        let local = ProvidedItem {
            title: String::new(),
            link: "file:///etc/passwd".to_owned(),
            enclosure: "javascript:alert(1)".to_owned(),
            published_ms: Some(u64::MAX),
            ..item
        };
        assert_eq!(read(local), None, "it leads nowhere");
    }

    #[test]
    fn what_a_resolver_plugin_must_say_is_at_the_link_and_has_the_size() {
        let entry = read(ProvidedItem {
            guid: "1".to_owned(),
            link: "https://example.org/page".to_owned(),
            enclosure: "https://example.org/file".to_owned(),
            size: Some(5),
            resolve_with_plugin: true,
            ..ProvidedItem::default()
        });
        let entry = entry.unwrap();
        assert_eq!(entry.target().unwrap().expose(), "https://example.org/page");
        assert_eq!((entry.bytes(), entry.resolve_with_plugin), (Some(5), true));
    }

    #[test]
    fn a_plugin_may_ask_for_a_day_and_not_for_ever() {
        let feed = Feed::from(ProvidedFeed {
            ttl: Duration::MAX,
            ..ProvidedFeed::default()
        });
        assert_eq!(feed.hints.ttl, MAX_TTL);
    }
}
