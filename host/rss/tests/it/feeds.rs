//! Feeds of every format, whole and broken.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rss::feed::{Entry, Feed, FeedError, MAX_DEPTH, MAX_ENTRIES, MAX_FEED_BYTES, discover, read};
use transfer::SafeUrl;

fn url() -> SafeUrl {
    SafeUrl::parse("https://feeds.example/sub/feed.xml").expect("it is a URL")
}

fn feed(text: &str) -> Feed {
    read(text.as_bytes(), &url(), "").unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The only entry of a feed.
fn entry(text: &str) -> Entry {
    let mut feed = feed(text);
    assert_eq!(feed.entries.len(), 1, "{feed:?}");
    feed.entries.remove(0)
}

fn rss(item: &str) -> String {
    format!(r#"<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><item>{item}</item></channel></rss>"#)
}

/// Guid, title, link, file, size, seconds, info hash, on one line each.
fn shown(entry: &Entry) -> String {
    let text = |url: Option<&SafeUrl>| url.map_or("-", |url| url.expose()).to_owned();
    let file = entry.enclosure.as_ref();
    format!(
        "{} | {} | {} | {}{} | {} | {} | {}",
        entry.guid,
        entry.title,
        text(entry.link.as_ref()),
        text(file.map(|file| &file.url)),
        if file.is_some_and(|file| file.is_torrent) {
            " (torrent)"
        } else {
            ""
        },
        entry.bytes().unwrap_or(0),
        entry.published.map_or(0, jiff::Timestamp::as_second),
        entry.infohash.as_deref().unwrap_or("-"),
    )
}

#[test]
fn rss_2_is_read_with_its_enclosure_and_hints() {
    let feed = feed(
        r#"<rss version="2.0"><channel><title>A &amp; B</title><link>/</link><ttl>90</ttl>
        <skipHours><hour>0</hour><hour>24</hour><hour>13</hour></skipHours><skipDays><day>Saturday</day></skipDays>
        <image><title>not the title</title><url>x</url></image>
        <item><title>Show S01E02</title><link>page/2</link><guid isPermaLink="false">id-2</guid>
        <enclosure url="/files/2.mkv" length="1000" type="video/x-matroska"/>
        <pubDate>Fri, 17 May 2024 10:00:00 +0200</pubDate></item></channel></rss>"#,
    );
    assert_eq!(feed.title, "A & B");
    assert_eq!(feed.hints.ttl, Duration::from_mins(90));
    assert_eq!(feed.hints.skip_hours, 1 | 1 << 13);
    assert_eq!(feed.hints.skip_days, 1 << 5);
    let expected = "id-2 | Show S01E02 | https://feeds.example/sub/page/2 | https://feeds.example/files/2.mkv | 1000 | 1715932800 | -";
    assert_eq!(shown(&feed.entries[0]), expected);
}

#[test]
fn an_item_of_rss_1_is_identified_by_what_it_is_about_unless_it_says_otherwise() {
    let item = |more: &str| {
        entry(&format!(
            r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel/>
            <item rdf:about="urn:1"><title>T</title><link>https://a.example/</link>{more}</item></rdf:RDF>"#
        ))
    };
    assert_eq!(item("").guid, "urn:1");
    assert_eq!(item("<guid>2</guid>").guid, "2");
}

#[test]
fn every_dialect_says_the_same_of_one_entry() {
    let item = "<title>T</title><link>https://a.example/1</link>";
    let documents = [
        format!(r#"<rss version="0.91"><channel><title>F</title><item>{item}</item></channel></rss>"#),
        format!(r#"<rss version="0.92"><channel><title>F</title><item>{item}</item></channel></rss>"#),
        format!("<rss><channel><title>F</title><item>{item}</item></channel></rss>"),
        format!(r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/">
            <channel><title>F</title></channel><item>{item}</item></rdf:RDF>"#),
        format!(r#"<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
            <channel rdf:about="x"><title>F</title></channel><item rdf:about="d817b80f9a5befb9163eb63dc83dccd5e2eb8e04e72ca739d41f01bdcbad2e0f">{item}</item></rdf:RDF>"#),
        r#"<feed xmlns="http://www.w3.org/2005/Atom"><title>F</title><entry><title type="html">T</title>
            <link href="https://a.example/1"/></entry></feed>"#.to_owned(),
        r#"<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>F</title><entry><title>T</title>
            <link rel="alternate" type="text/html" href="https://a.example/1"/></entry></feed>"#.to_owned(),
        r#"<atom:feed xmlns:atom="http://www.w3.org/2005/Atom"><atom:title>F</atom:title><atom:entry><atom:title>T</atom:title>
            <atom:link href="https://a.example/1"/></atom:entry></atom:feed>"#.to_owned(),
        r#"{"version": "https://jsonfeed.org/version/1.1", "title": "F", "items": [{"title": "T", "url": "https://a.example/1"}]}"#.to_owned(),
    ];
    let all: Vec<_> = documents.iter().map(|document| feed(document)).collect();
    for (read, document) in all.iter().zip(&documents) {
        assert_eq!(read.title, "F", "{document}");
        assert_eq!(read.entries, all[0].entries, "{document}");
    }
    let link = all[0].entries[0].link.as_ref().map(SafeUrl::expose);
    assert_eq!(link, Some("https://a.example/1"));
    assert_eq!(
        all[0].entries[0].guid.len(),
        64,
        "an entry without an identifier has a digest of what it links to"
    );
}

#[test]
fn atom_has_links_bases_and_dates() {
    let read = entry(
        r#"<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://other.example/a/"><title>F</title>
        <entry xml:base="b/"><id>tag:x,1</id><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">One <b>two</b></div></title>
        <link rel="self" href="self"/><link href="page"/><link rel="enclosure" type="audio/mpeg" length="5" href="../f.mp3"/>
        <updated>2024-05-18T00:00:00Z</updated><published>2024-05-17T10:00:00+02:00</published></entry></feed>"#,
    );
    let expected =
        "tag:x,1 | One two | https://other.example/a/b/page | https://other.example/a/f.mp3 | 5 | 1715932800 | -";
    assert_eq!(shown(&read), expected);
}

#[test]
fn extensions_of_trackers_and_indexers_are_read() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let cases = [
        (
            format!(r#"<title>T</title><guid>g</guid><enclosure url="https://i.example/dl?id=1" length="0" type="application/x-bittorrent"/>
                <torznab:attr xmlns:torznab="http://torznab.com/schemas/2015/feed" name="size" value="2048"/>
                <torznab:attr name="infohash" value="{}"/>"#, hash.to_uppercase()),
            format!("g | T | - | https://i.example/dl?id=1 (torrent) | 2048 | 0 | {hash}"),
        ),
        (
            format!(r#"<title>T</title><guid>g</guid><link>https://nyaa.example/1.torrent</link>
                <nyaa:infoHash xmlns:nyaa="https://nyaa.si/xmlns/nyaa">{hash}</nyaa:infoHash><nyaa:size>1.5 GiB</nyaa:size>"#),
            format!("g | T | https://nyaa.example/1.torrent | https://nyaa.example/1.torrent (torrent) | 1610612736 | 0 | {hash}"),
        ),
        (
            format!(r#"<title>T</title><guid>g</guid><torrent xmlns="http://xmlns.ezrss.it/0.1/"><infoHash>{hash}</infoHash>
                <contentLength>77</contentLength><magnetURI><![CDATA[magnet:?xt=urn:btih:{hash}&dn=T]]></magnetURI></torrent>"#),
            format!("g | T | - | magnet:?xt=urn:btih:{hash}&dn=T | 77 | 0 | {hash}"),
        ),
        (
            r#"<title>T</title><guid>g</guid><enclosure url="https://u.example/1.nzb" length="9" type="application/x-nzb"/>
                <newznab:attr name="size" value="500"/><newznab:attr name="category" value="5000"/>"#.to_owned(),
            "g | T | - | https://u.example/1.nzb | 9 | 0 | -".to_owned(),
        ),
        (
            r#"<title>T</title><guid>g</guid><media:group><media:content url="s.jpg" type="image/jpeg" fileSize="9"/>
                <media:content url="/v.mp4" type="video/mp4" fileSize="4"/></media:group>"#.to_owned(),
            "g | T | - | https://feeds.example/v.mp4 | 4 | 0 | -".to_owned(),
        ),
    ];
    for (item, expected) in cases {
        assert_eq!(shown(&entry(&rss(&item))), expected, "{item}");
    }
}

#[test]
fn broken_xml_keeps_what_can_be_read() {
    let cases = [
        // Bare ampersands, entities of HTML, control characters.
        (
            rss("<title>Tom & Jerry &ndash; 1\u{1}</title><guid>a</guid>"),
            "Tom & Jerry \u{2013} 1",
        ),
        // Markup within a description that is not escaped, and never closed.
        (
            rss("<description><p>one<br>two<img src=x></description><title>T</title><guid>a</guid>"),
            "T",
        ),
        // A title that is not closed.
        (rss("<title>T<link>https://a.example/1</link><guid>a</guid>"), "T"),
        // The document breaks off.
        (
            "<rss><channel><item><title>T</title><guid>a</guid></item><item><titl".to_owned(),
            "T",
        ),
        ("<rss><channel><item><title>T</title><guid>a</guid>".to_owned(), "T"),
        // Escaped twice.
        (rss("<title>Tom &amp;amp; Jerry</title><guid>a</guid>"), "Tom & Jerry"),
        // Garbage before and after.
        (
            format!(
                "\u{feff}\n\n{}\n<script>x</script>",
                rss("<title>T</title><guid>a</guid>")
            ),
            "T",
        ),
        (rss("<title><![CDATA[A <b> & B]]></title><guid>a</guid>"), "A <b> & B"),
        (rss("<title>a\nb\t c</title><guid>a</guid>"), "a b c"),
    ];
    for (document, title) in cases {
        let feed = feed(&document);
        assert_eq!(
            feed.entries.first().map(|entry| entry.title.as_str()),
            Some(title),
            "{document}"
        );
    }
}

#[test]
fn items_that_are_not_closed_are_items_of_their_own() {
    let feed =
        feed("<rss><channel><item><title>1</title><guid>a</guid><item><title>2</title><guid>b</guid></channel></rss>");
    let titles: Vec<_> = feed.entries.iter().map(|entry| entry.title.as_str()).collect();
    assert_eq!(titles, ["1", "2"]);
}

#[test]
fn wrong_members_of_a_json_feed_cost_only_themselves() {
    let feed = feed(
        r#"{"version": "https://jsonfeed.org/version/1", "title": 5, "items": [
        {"id": 7, "title": "A", "attachments": [{"url": "a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 3}, 4]},
        "nonsense", {"id": "8", "title": ["B"], "url": "/b", "date_published": "2024-05-17T10:00:00+02:00"}]}"#,
    );
    let all: Vec<_> = feed.entries.iter().map(shown).collect();
    let expected = [
        "7 | A | - | https://feeds.example/sub/a.mp3 | 3 | 0 | -",
        "8 |  | https://feeds.example/b | - | 0 | 1715932800 | -",
    ];
    assert_eq!(all, expected);
}

#[test]
fn an_identifier_that_several_entries_share_identifies_none() {
    let feed = feed(
        "<rss><channel><item><guid>0</guid><title>1</title><link>https://a.example/1</link></item>
        <item><guid>0</guid><title>2</title><link>https://a.example/2</link></item>
        <item><guid>x</guid><title>3</title></item><item><guid>x</guid><title>3</title></item></channel></rss>",
    );
    let guids: Vec<_> = feed.entries.iter().map(|entry| entry.guid.len()).collect();
    assert_eq!(
        guids,
        [64, 64, 1],
        "two that share one, and one that stands there twice"
    );
}

#[test]
fn a_feed_names_no_file_of_this_machine() {
    for url in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
        "ssh://host/x",
    ] {
        let read = entry(&rss(&format!(
            "<title>T</title><guid>a</guid><link>{url}</link><enclosure url='{url}'/>"
        )));
        assert_eq!(read.target(), None, "{url}");
    }
}

#[test]
fn limits_are_errors_that_say_so() {
    let error = |text: &str| read(text.as_bytes(), &url(), "").unwrap_err();
    assert_eq!(error(&" ".repeat(MAX_FEED_BYTES + 1)), FeedError::TooLarge);
    let deep = format!("<rss><channel><item>{}", "<a>".repeat(MAX_DEPTH + 1));
    assert_eq!(error(&deep), FeedError::TooDeep);
    let bomb = r#"<!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol1 "&lol;&lol;">]><rss><channel><title>&lol1;</title></channel></rss>"#;
    assert_eq!(error(bomb), FeedError::Entities);
    assert_eq!(error("<!doctype html><html><head></head></html>"), FeedError::WebPage);
    assert_eq!(error("<opml/>"), FeedError::NotAFeed);
    assert_eq!(error(r#"{"version": "1", "items": []}"#), FeedError::NotAFeed);
    assert!(matches!(error(&"[".repeat(1000)), FeedError::Broken(_)));
    assert_eq!(error(""), FeedError::NotAFeed);
}

#[test]
fn short_links_at_a_long_address_cost_no_more_than_a_large_feed() {
    let at = |bytes: usize| SafeUrl::parse(&format!("https://feeds.example/{}/", "d".repeat(bytes))).unwrap();
    let error = |text: &str, url: &SafeUrl| read(text.as_bytes(), url, "").unwrap_err();
    let files = vec![r#"{"url":"a"}"#; 16].join(",");
    let items = vec![format!(r#"{{"id":"1","attachments":[{files}]}}"#); MAX_ENTRIES].join(",");
    let json = format!(r#"{{"version":"https://jsonfeed.org/version/1","items":[{items}]}}"#);
    assert_eq!(error(&json, &at(8000)), FeedError::TooLarge);
    let xml = format!(
        "<rss><channel><item>{}</item></channel></rss>",
        "<link>a</link>".repeat(500_000)
    );
    assert_eq!(error(&xml, &at(30_000)), FeedError::TooLarge);
    assert_eq!(error(&xml, &at(8000)), FeedError::TooLarge);
    // What a server chooses of an error's text is short.
    let text = format!(
        r#"{{"version":"https://jsonfeed.org/version/1","items":"{}"}}"#,
        "x".repeat(1_000_000)
    );
    let FeedError::Broken(said) = error(&text, &url()) else {
        panic!("it is no list");
    };
    assert!(said.len() <= 1024, "{} bytes", said.len());
}

#[test]
fn entries_without_an_identifier_that_share_a_link_are_several() {
    let item = |title: &str| format!("<item><title>{title}</title><link>https://site.example/</link></item>");
    let feed = feed(&format!("<rss><channel>{}{}</channel></rss>", item("1.0"), item("1.1")));
    assert_eq!(feed.entries.len(), 2, "{feed:?}");
}

#[test]
fn entries_beyond_the_limit_are_counted() {
    let items: Vec<_> = (0..MAX_ENTRIES + 5)
        .map(|n| format!("<item><title>{n}</title></item>"))
        .collect();
    let items = items.concat();
    let feed = feed(&format!("<rss><channel>{items}</channel></rss>"));
    assert_eq!((feed.entries.len(), feed.dropped), (MAX_ENTRIES, 5));
}

#[test]
fn long_texts_are_cut() {
    let read = entry(&rss(&format!(
        "<title>{}</title><guid>{}</guid>",
        "é".repeat(9000),
        "g".repeat(9000)
    )));
    assert!(read.title.len() <= 1024 && read.guid.len() <= 1024);
}

#[test]
fn a_page_names_its_feeds() {
    let page = br#"<!doctype html><head><base href="https://b.example/x/"><link rel="stylesheet" href="s.css">
        <script>"<link rel=alternate type='application/rss+xml' href='no'>"</script>
        <LINK REL="Alternate" TYPE="application/rss+xml" HREF="feed?a=1&amp;b=2">
        <link rel=alternate type="application/atom+xml; charset=utf-8" href="/atom">
        <link rel=alternate hreflang=de href="/de"><link rel=alternate type="text/xml" href="javascript:x">
        <link rel=alternate type="application/atom+xml" href="/atom">"#;
    let found = discover(page, &url());
    let found: Vec<_> = found.iter().map(SafeUrl::expose).collect();
    assert_eq!(found, ["https://b.example/x/feed?a=1&b=2", "https://b.example/atom"]);
}

#[test]
fn hostile_documents_take_linear_time() {
    let time = |text: &str| {
        // The best of three: other work on the machine is not the document's.
        let each = (0..3).map(|_| {
            let start = Instant::now();
            let _either = read(text.as_bytes(), &url(), "");
            start.elapsed()
        });
        each.min().unwrap_or_default()
    };
    for unit in [
        "<![CDATA[",
        "<!--",
        "&",
        "&#",
        "<a b=\"",
        "<a b='x",
        "<item>",
        "</item>",
        "<!doctype [",
        "<title>",
        "<",
        "]]>",
        "<a xmlns:b='c'/>",
    ] {
        let text = |length: usize| {
            format!(
                "<rss><channel><item><title>T</title>{}",
                unit.repeat(length / unit.len())
            )
        };
        let (short, long) = (time(&text(20_000)), time(&text(160_000)));
        let allowed = short.max(Duration::from_millis(20)) * 24;
        assert!(long < allowed, "{unit:?}: {short:?}, and eight times as much {long:?}");
    }
}

proptest! {
    #[test]
    fn any_document_is_read_or_refused(parts in proptest::collection::vec(
        prop_oneof![
            Just("<rss>"), Just("<channel>"), Just("<item>"), Just("</item>"), Just("<title>"), Just("</title>"), Just("<link"),
            Just(" href='x'"), Just("/>"), Just(">"), Just("<feed xmlns='http://www.w3.org/2005/Atom'>"), Just("<entry>"),
            Just("</entry>"), Just("<![CDATA["), Just("]]>"), Just("<!--"), Just("-->"), Just("&amp;"), Just("&#0;"), Just("&"),
            Just("<guid>"), Just("x"), Just("<media:content url='y'/>"), Just("<a:b xmlns:a=''>"), Just("xml:base='::'"),
            Just("<torrent>"), Just("\u{0}"), Just("é"), Just("<?xml"), Just("?>"), Just("<!DOCTYPE a ["), Just("</channel>"),
        ],
        0..40,
    )) {
        let text = parts.concat();
        if let Ok(feed) = read(text.as_bytes(), &url(), "") {
            prop_assert!(feed.entries.iter().all(|entry| !entry.guid.is_empty()));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _either = read(&bytes, &url(), "text/xml; charset=shift_jis");
        let _either = rss::opml::read(&bytes);
        discover(&bytes, &url());
    }
}
