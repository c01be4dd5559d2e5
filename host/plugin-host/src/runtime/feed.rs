//! The results of feed plugins. The runtime has validated and bounded these records. They serialise as fixtures expect
//! them.

use std::collections::BTreeMap;

use serde::Serialize;
use svc_plugin_fixture::record::is_unset;
use url::Url;

/// What a plugin is asked about a feed, beside its URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedRequest {
    /// When the feed was last read, in milliseconds of the Unix epoch.
    pub since_ms: Option<u64>,
    /// The etag that the plugin gave then.
    pub etag: Option<String>,
    /// What the user filled in for the source, by the keys of the manifest.
    pub config: BTreeMap<String, String>,
}

/// A feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Feed {
    pub title: Option<String>,
    /// For the next request.
    pub etag: Option<String>,
    /// How long it asks to be left alone.
    pub ttl_seconds: Option<u32>,
    /// Its items, in the plugin's order.
    pub items: Vec<FeedItem>,
}

impl Feed {
    /// Whether it says that nothing has changed since it gave `etag`.
    pub fn is_unchanged(&self, etag: Option<&str>) -> bool {
        self.items.is_empty() && etag.is_some() && self.etag.as_deref() == etag
    }
}

/// An item of a feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedItem {
    /// The plugin's name for it; empty if it has none.
    pub guid: String,
    pub title: String,
    /// The page about it.
    pub link: Option<Url>,
    /// In milliseconds of the Unix epoch.
    pub published_ms: Option<u64>,
    pub summary: Option<String>,
    /// The length of its file, or of the files of its torrent.
    pub size: Option<u64>,
    pub enclosure: Option<FeedEnclosure>,
    /// Of its torrent, in hexadecimal digits.
    pub infohash: Option<String>,
    /// Its link is for a resolver plugin.
    #[serde(skip_serializing_if = "is_unset")]
    pub resolve_with_plugin: bool,
}

/// The file of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedEnclosure {
    pub url: Url,
    /// Empty if it is unknown.
    pub media_type: String,
}
