//! Playlists of HTTP Live Streaming, read by the plugin for them.

use hls::Hls;
use svc_plugin::test::{Host, Page};

use super::Target;

const MASTER: &str = "https://example.org/a/list.m3u8";
const MEDIA: &str = "media.m3u8";

/// A playlist and, behind a zero byte, the playlist of its streams.
pub(super) fn playlist() -> Target {
    Box::new(|data| {
        let (first, second) = data.split_at(data.iter().position(|&byte| byte == 0).unwrap_or(data.len()));
        let second = second.get(1..).unwrap_or_default();
        let page = |body: Vec<u8>| Page::new("audio/mpegurl", body);
        let host = Host::new()
            .page(MASTER, page(with_known_streams(first)))
            .page(&format!("https://example.org/a/{MEDIA}"), page(second.to_vec()));
        let _refused = host.resolve::<Hls>(MASTER);
        let _refused = host.link::<Hls>(MASTER, "video", None);
    })
}

/// A playlist of playlists whose streams are the one that there is: the test host has no other.
fn with_known_streams(playlist: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(playlist);
    if !text.contains("#EXT-X-STREAM-INF") {
        return playlist.to_vec();
    }
    let lines = text.lines().map(|line| {
        let is_uri = !line.trim().is_empty() && !line.trim_start_matches('\u{feff}').trim().starts_with('#');
        if is_uri { MEDIA } else { line }
    });
    lines.collect::<Vec<_>>().join("\n").into_bytes()
}
