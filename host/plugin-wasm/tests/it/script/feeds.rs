use plugin_host::{Feed, FeedEnclosure, FeedItem, FeedRequest};

use super::*;

async fn read(script: &str, request: FeedRequest) -> Result<Feed, PluginFault> {
    let loaded = load(script).await;
    assert_eq!(loaded.interface().exports, ["feed-handler"]);
    let (base, _log) = context();
    let context = CallContext {
        settings: [("search".to_owned(), "linux".to_owned())].into(),
        ..base
    };
    loaded.feed(URL, &request, context, Limits::feed()).await.result
}

#[tokio::test]
async fn a_script_reads_a_feed() {
    let script = "export function feed(call, out) {
        out.title(`${settings.get('search')} ${call.since} ${call.url.segments[1]}`).etag(`${call.etag}2`).ttl(60);
        out.add('1', 'one', 'https://example.org/1').published(5).summary('s').size(7).resolveWithPlugin();
        out.add(2, 'two').enclosure('https://example.org/2.torrent', 'application/x-bittorrent')
            .infohash('A'.repeat(40));
    }";
    let request = FeedRequest {
        since_ms: Some(1_700_000_000_123),
        etag: Some("e".to_owned()),
        ..FeedRequest::default()
    };
    let one = FeedItem {
        guid: "1".to_owned(),
        title: "one".to_owned(),
        link: Some("https://example.org/1".parse().unwrap()),
        published_ms: Some(5),
        summary: Some("s".to_owned()),
        size: Some(7),
        resolve_with_plugin: true,
        ..FeedItem::default()
    };
    let two = FeedItem {
        guid: "2".to_owned(),
        title: "two".to_owned(),
        enclosure: Some(FeedEnclosure {
            url: "https://example.org/2.torrent".parse().unwrap(),
            media_type: "application/x-bittorrent".to_owned(),
        }),
        infohash: Some("a".repeat(40)),
        ..FeedItem::default()
    };
    let feed = Feed {
        title: Some("linux 1700000000123 a b".to_owned()),
        etag: Some("e2".to_owned()),
        ttl_seconds: Some(60),
        items: vec![one, two],
    };
    assert_eq!(read(script, request).await.unwrap(), feed);
}

#[tokio::test]
async fn a_first_call_has_no_time_and_no_etag_and_mistakes_are_faults() {
    let first = "export const feed = async (call, out) =>
        out.title(`${call.since === undefined} ${call.etag === undefined}`);";
    let feed = read(first, FeedRequest::default()).await.unwrap();
    assert_eq!(feed.title.as_deref(), Some("true true"));
    for (script, code) in [
        (
            "export function feed(call, out) { out.add('1', 'x', 'file:///etc/passwd'); }",
            "invalidOutput",
        ),
        (
            "export function feed(call, out) { out.add('1', 'x').published(-1); }",
            "internal",
        ),
        (
            "export function feed(call, out) { for (;;) out.add('1', 'x'); }",
            "memoryLimit",
        ),
        (
            "export function feed() { throw new PluginError('rateLimited', 7); }",
            "rateLimited",
        ),
    ] {
        assert_eq!(
            read(script, FeedRequest::default()).await.unwrap_err().code(),
            code,
            "{script}"
        );
    }
}
