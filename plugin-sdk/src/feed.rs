//! The arguments of a call of a feed, and its result. Items are passed to the host one by one; it validates each as it
//! arrives, and an invalid one ends the call.

use std::time::Duration;

use crate::{Result, host::feed_sink as host, text::Url};

/// The arguments of a call of a feed.
#[derive(Debug)]
pub struct FeedCall {
    url: Url,
    since_ms: Option<u64>,
    etag: Option<String>,
}

impl FeedCall {
    pub(crate) fn new(url: String, since_ms: Option<u64>, etag: Option<String>) -> Result<Self> {
        let url = Url::parse(url)?;
        Ok(Self { url, since_ms, etag })
    }

    /// The URL that the user gave for the source.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// When the source was last read, in milliseconds since the Unix epoch: older items may be left out.
    pub fn since_ms(&self) -> Option<u64> {
        self.since_ms
    }

    /// What the call before gave to [`Feed::etag`].
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }
}

/// What a feed says now. The host knows which items it has seen, so a feed may list them again.
#[derive(Debug)]
pub struct Feed<'a>(&'a host::Sink);

impl<'a> Feed<'a> {
    pub(crate) fn new(sink: &'a host::Sink) -> Self {
        Self(sink)
    }

    /// Sets the title, which is the name of a source that the user gave none.
    pub fn title(&self, title: &str) {
        self.0.title(title);
    }

    /// Sets a text that the next call has as [`FeedCall::etag`]; at most 1024 bytes.
    pub fn etag(&self, etag: &str) {
        self.0.etag(etag);
    }

    /// Says that nothing has changed since the call before. No item may be added.
    pub fn unchanged(&self, call: &FeedCall) {
        if let Some(etag) = call.etag() {
            self.0.etag(etag);
        }
    }

    /// Asks the host not to call again for so long.
    pub fn ttl(&self, duration: Duration) {
        self.0
            .ttl_seconds(u32::try_from(duration.as_secs()).unwrap_or(u32::MAX));
    }

    /// Adds an item. `guid` must be the same in every call; if it is empty, the host makes one of where the item leads.
    /// `link` is the page about the item; it may be empty if there is an [`Item::enclosure`].
    pub fn add(&self, guid: &str, title: &str, link: impl AsRef<str>) -> Item {
        Item(self.0.add(guid, title, link.as_ref()))
    }
}

/// An item of a feed.
#[derive(Debug)]
pub struct Item(host::Item);

impl Item {
    /// Sets when it was published, in milliseconds since the Unix epoch.
    pub fn published_ms(&self, time: u64) -> &Self {
        self.0.published_ms(time);
        self
    }

    /// Sets a description. If no [`size`](Self::size) is set, one that stands in it (`Size: 1.4 GiB`) counts.
    pub fn summary(&self, text: &str) -> &Self {
        self.0.summary(text);
        self
    }

    /// Sets the length of its file, or of all files of its torrent.
    pub fn size(&self, bytes: u64) -> &Self {
        self.0.size(bytes);
        self
    }

    /// Sets where its file is, and its media type (empty if it is unknown).
    pub fn enclosure(&self, url: impl AsRef<str>, media_type: &str) -> &Self {
        self.0.enclosure(url.as_ref(), media_type);
        self
    }

    /// Sets the info hash of its torrent in hexadecimal digits.
    pub fn infohash(&self, hex: &str) -> &Self {
        self.0.infohash(hex);
        self
    }

    /// Its link is a page whose files a [`Resolver`](crate::Resolver) lists, of this plugin or another one.
    pub fn resolve_with_plugin(&self) -> &Self {
        self.0.resolve_with_plugin(true);
        self
    }
}
