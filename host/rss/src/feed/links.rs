//! Links of a feed, resolved within bounds.

use transfer::SafeUrl;

use super::{FeedError, MAX_FEED_BYTES, Piece};

/// The longest link of a feed, in bytes; signed links reach 4 KiB.
pub(super) const MAX_LINK_BYTES: usize = 8 * 1024;

/// What is read to resolve all links. A link of one letter costs as much as its base is long.
const MAX_RESOLVED_BYTES: usize = 4 * MAX_FEED_BYTES;

/// What is kept of a feed: a link of one letter may become one of [`MAX_LINK_BYTES`].
const MAX_KEPT_BYTES: usize = 2 * MAX_FEED_BYTES;

/// Counts what a feed costs beyond its own length.
#[derive(Debug, Default)]
pub(super) struct Cost {
    resolved_bytes: usize,
    kept_bytes: usize,
}

impl Cost {
    /// A link resolved against `base`; `None` if it cannot be one, is too long, or the feed has cost too much.
    pub(super) fn resolve(&mut self, base: &SafeUrl, text: &str) -> Option<SafeUrl> {
        self.resolved_bytes += base.expose().len() + text.len();
        if self.check().is_err() {
            return None;
        }
        let url = SafeUrl::parse(text).or_else(|_| base.join(text)).ok()?;
        (url.expose().len() <= MAX_LINK_BYTES).then_some(url)
    }

    /// Counts what is kept.
    pub(super) fn keep(&mut self, piece: &Piece) {
        let attributes = piece.attributes.iter().map(|(_, value)| value.len());
        self.kept_bytes += piece.text.len() + attributes.sum::<usize>();
    }

    /// Whether it is still within bounds.
    pub(super) fn check(&self) -> Result<(), FeedError> {
        let is_within = self.resolved_bytes <= MAX_RESOLVED_BYTES && self.kept_bytes <= MAX_KEPT_BYTES;
        is_within.then_some(()).ok_or(FeedError::TooLarge)
    }
}
