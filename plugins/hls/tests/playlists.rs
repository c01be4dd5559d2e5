//! Playlists as sites publish them, and as nobody should.

use hls::Hls;
use proptest::prelude::*;
use svc_plugin::{
    Error, Result,
    test::{Cipher, Host, Link, Page, replay_all},
};

const URL: &str = "https://example.org/a/list.m3u8";

fn link(playlist: impl Into<Vec<u8>>) -> Result<Link> {
    let host = Host::new().page(URL, Page::new("audio/mpegurl", playlist));
    host.link::<Hls>(URL, "video", None)
}

/// A recording with these lines in it.
fn recording(lines: &str) -> Result<Link> {
    link(format!("#EXTM3U\n#EXT-X-TARGETDURATION:5\n{lines}\n#EXT-X-ENDLIST\n"))
}

#[test]
fn fixtures() {
    replay_all::<Hls>("fixtures");
}

#[test]
fn a_new_beginning_is_joined_where_it_changes_and_a_gap_is_left_out() {
    let lines = "#EXT-X-MAP:URI=\"i1\"\n1\n#EXT-X-MAP:URI=\"i1\"\n2\n#EXT-X-GAP\n3\n#EXT-X-MAP:URI=\"i2\"\n4";
    let urls = recording(lines)
        .unwrap()
        .segments
        .into_iter()
        .map(|segment| segment.url);
    let names: Vec<_> = urls.map(|url| url.rsplit('/').next().unwrap().to_owned()).collect();
    assert_eq!(names, ["i1", "1", "2", "i2", "4"]);
}

#[test]
fn a_segment_left_out_still_counts() {
    let link = recording("#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXT-X-GAP\n0\n1").unwrap();
    let iv = 1u128.to_be_bytes().to_vec();
    assert_eq!(
        link.segments[0].cipher,
        Some(Cipher::KeyAt("https://example.org/a/k".to_owned(), iv))
    );
}

#[test]
fn line_ends_marks_and_spaces_do_not_matter() {
    let link = link("\u{feff}#EXTM3U\r\n\r\n#EXT-X-TARGETDURATION:5\r\n#EXTINF:5,\r\n  1.ts \r\n#EXT-X-ENDLIST\r\n");
    assert_eq!(link.unwrap().segments[0].url, "https://example.org/a/1.ts");
}

#[test]
fn what_cannot_be_is_a_parse_error() {
    for lines in [
        "#EXT-X-BYTERANGE:5\n1.ts",
        "#EXT-X-BYTERANGE:x@5\n1.ts",
        "#EXT-X-BYTERANGE:18446744073709551615@5\n1.ts",
        "#EXT-X-KEY:METHOD=AES-128\n1.ts",
        "#EXT-X-KEY:URI=\"k\"\n1.ts",
        "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=12\n1.ts",
        "#EXT-X-MAP:BYTERANGE=\"5@0\"\n1.ts",
        "#EXT-X-MEDIA-SEQUENCE:-1\n1.ts",
    ] {
        let result = recording(lines);
        assert!(matches!(result, Err(Error::Parse(_))), "{lines}: {result:?}");
    }
}

#[test]
fn what_the_host_cannot_take_is_said_before_it_is_given() {
    let result = recording(&"1.ts\n".repeat(50_001));
    assert!(matches!(result, Err(Error::Unsupported(_))));
    assert_eq!(recording(&"1.ts\n".repeat(50_000)).unwrap().segments.len(), 50_000);
}

proptest! {
    #[test]
    fn any_text_is_a_playlist_or_an_error(text in ".*") {
        let _any = link(text);
    }

    #[test]
    fn any_lines_are_a_recording_or_an_error(lines in prop::collection::vec(line(), 0..20)) {
        let _any = recording(&lines.join("\n"));
    }
}

fn line() -> impl Strategy<Value = String> {
    let tag = prop_oneof![
        Just("EXTINF"),
        Just("EXT-X-BYTERANGE"),
        Just("EXT-X-KEY"),
        Just("EXT-X-MAP"),
        Just("EXT-X-MEDIA-SEQUENCE"),
        Just("EXT-X-MEDIA"),
    ];
    let value = "[A-Z0-9=\",@.:x-]{0,40}";
    prop_oneof![
        "[a-z0-9/.?:#%]{0,20}",
        (tag, value).prop_map(|(tag, value)| format!("#{tag}:{value}")),
        (any::<u64>(), any::<u64>()).prop_map(|(length, first)| format!("#EXT-X-BYTERANGE:{length}@{first}")),
        ".{0,16}".prop_map(|iv| format!("#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x{iv}")),
    ]
}
