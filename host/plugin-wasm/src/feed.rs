//! Validates and bounds a feed while the plugin builds it.

use plugin_host::{Exceeded, Feed, FeedEnclosure, FeedItem, PluginFault};

use crate::{
    limits::OutputLimits,
    listing::{check_limit, invalid, parse_url},
};

/// The longest identifier or etag.
const MAX_ID_BYTES: usize = 1024;

/// Hexadecimal digits of the info hashes of both versions of BitTorrent.
const INFOHASH_DIGITS: [usize; 2] = [40, 64];

/// Builds a feed within its limits.
#[derive(Debug)]
pub(crate) struct FeedBuilder {
    feed: Feed,
    limits: OutputLimits,
    bytes_left: usize,
}

/// The guest's handle of the call's only feed.
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct SinkHandle;

/// Refers to an item of the feed.
#[derive(Debug, Clone, Copy)]
#[expect(unreachable_pub, reason = "the generated bindings hand it on as public")]
pub struct ItemRef(usize);

impl FeedBuilder {
    pub(crate) fn new(limits: OutputLimits) -> Self {
        Self {
            feed: Feed::default(),
            bytes_left: limits.bytes,
            limits,
        }
    }

    pub(crate) fn finish(self) -> Feed {
        self.feed
    }

    pub(crate) fn set_title(&mut self, title: String) -> Result<(), PluginFault> {
        self.count(title.len())?;
        self.feed.title = Some(title);
        Ok(())
    }

    pub(crate) fn set_etag(&mut self, etag: String) -> Result<(), PluginFault> {
        check_id("etag", &etag)?;
        self.count(etag.len())?;
        self.feed.etag = Some(etag);
        Ok(())
    }

    pub(crate) fn set_ttl(&mut self, seconds: u32) {
        self.feed.ttl_seconds = Some(seconds);
    }

    /// Adds an item; an empty link is none.
    pub(crate) fn add(&mut self, guid: String, title: String, link: &str) -> Result<ItemRef, PluginFault> {
        check_limit("items", self.feed.items.len(), self.limits.entries)?;
        check_id("guid", &guid)?;
        // Includes the size of the struct, so that many empty items are bounded, too.
        self.count(size_of::<FeedItem>() + guid.len() + title.len() + link.len())?;
        let link = (!link.is_empty()).then(|| parse_url("link", link, &self.limits));
        self.feed.items.push(FeedItem {
            guid,
            title,
            link: link.transpose()?,
            ..FeedItem::default()
        });
        Ok(ItemRef(self.feed.items.len() - 1))
    }

    /// An item, for fields without validation.
    pub(crate) fn item_mut(&mut self, at: ItemRef) -> &mut FeedItem {
        &mut self.feed.items[at.0]
    }

    pub(crate) fn set_summary(&mut self, at: ItemRef, summary: String) -> Result<(), PluginFault> {
        self.count(summary.len())?;
        self.item_mut(at).summary = Some(summary);
        Ok(())
    }

    pub(crate) fn set_enclosure(&mut self, at: ItemRef, url: &str, media_type: String) -> Result<(), PluginFault> {
        self.count(url.len() + media_type.len())?;
        let url = parse_url("enclosure", url, &self.limits)?;
        self.item_mut(at).enclosure = Some(FeedEnclosure { url, media_type });
        Ok(())
    }

    pub(crate) fn set_infohash(&mut self, at: ItemRef, hex: &str) -> Result<(), PluginFault> {
        let is_hex = hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || !INFOHASH_DIGITS.contains(&hex.len()) {
            return Err(invalid("infohash", "it needs 40 or 64 hexadecimal digits"));
        }
        self.count(hex.len())?;
        self.item_mut(at).infohash = Some(hex.to_ascii_lowercase());
        Ok(())
    }

    fn count(&mut self, bytes: usize) -> Result<(), PluginFault> {
        let exceeded = PluginFault::Limit(Exceeded::Output("bytes of output", self.limits.bytes));
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(exceeded)?;
        Ok(())
    }
}

fn check_id(field: &'static str, id: &str) -> Result<(), PluginFault> {
    if id.len() > MAX_ID_BYTES {
        return Err(invalid(field, format!("it is longer than {MAX_ID_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn builder() -> FeedBuilder {
        FeedBuilder::new(OutputLimits {
            entries: 2,
            bytes: 2048,
            ..Limits::feed().output
        })
    }

    #[test]
    fn a_feed_ends_at_its_limits() {
        let mut builder = builder();
        let at = builder.add("1".into(), "a".into(), "").unwrap();
        builder.add("2".into(), "b".into(), "https://example.org/").unwrap();
        let over = |what, limit| PluginFault::Limit(Exceeded::Output(what, limit));
        assert_eq!(builder.add("3".into(), "c".into(), "").unwrap_err(), over("items", 2));
        let long = "x".repeat(3000);
        assert_eq!(builder.set_title(long.clone()), Err(over("bytes of output", 2048)));
        assert_eq!(
            builder.set_summary(at, long.clone()),
            Err(over("bytes of output", 2048))
        );
        assert!(builder.set_etag(long.clone()).is_err());
        assert!(self::builder().add(long, String::new(), "").is_err());
    }

    #[test]
    fn what_cannot_be_downloaded_is_no_item() {
        let mut builder = builder();
        for url in ["x", "file:///etc/passwd", "javascript:alert(1)", "data:,x"] {
            assert!(builder.add("1".into(), String::new(), url).is_err(), "{url}");
        }
        let at = builder.add("1".into(), String::new(), "").unwrap();
        assert!(builder.set_enclosure(at, "file:///etc/passwd", String::new()).is_err());
        assert!(builder.set_enclosure(at, "", String::new()).is_err());
        for hash in ["", "abc", &"g".repeat(40), &"a".repeat(41)] {
            assert!(builder.set_infohash(at, hash).is_err(), "{hash}");
        }
        builder.set_infohash(at, &"A".repeat(40)).unwrap();
        assert_eq!(builder.finish().items[0].infohash.as_deref(), Some(&*"a".repeat(40)));
    }
}
