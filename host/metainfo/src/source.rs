//! URLs that a torrent names.

use transfer::SafeUrl;
use url::Url;

/// Schemes of trackers. Those of WebRTC (`ws`, `wss`) lead to browsers only.
pub const TRACKER_SCHEMES: [&str; 3] = ["http", "https", "udp"];

const WEBSEED_SCHEMES: [&str; 2] = ["http", "https"];

/// The URL of a tracker, if its scheme is known and it has a host.
pub fn tracker(text: &str) -> Option<SafeUrl> {
    usable(text, &TRACKER_SCHEMES)
}

/// The URL of a webseed, if its scheme is known and it has a host.
pub fn webseed(text: &str) -> Option<SafeUrl> {
    usable(text, &WEBSEED_SCHEMES)
}

fn usable(text: &str, schemes: &[&str]) -> Option<SafeUrl> {
    let url = SafeUrl::parse(text).ok()?;
    let has_host = |url: &Url| url.host_str().is_some_and(|host| !host.is_empty());
    (schemes.contains(&url.scheme()) && has_host(url.as_url())).then_some(url)
}
