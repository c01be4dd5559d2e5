//! Documents as mirror networks publish them, and as nobody should.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use metalink::Metalink;
use proptest::prelude::*;
use svc_plugin::{
    Error, Result,
    test::{Host, Listing, Page, replay_all},
};

const URL: &str = "https://example.org/pub/some.meta4";

fn host(document: impl Into<Vec<u8>>) -> Host {
    Host::new().page(URL, Page::new("application/metalink4+xml", document))
}

fn resolve(document: &str) -> Result<Listing> {
    host(document).resolve::<Metalink>(URL)
}

/// A document of version 4 with these files.
fn files(files: &str) -> String {
    format!(r#"<?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">{files}</metalink>"#)
}

/// The URLs of the only file, best first.
fn places(host: &Host) -> Vec<String> {
    let mut listing = host.resolve::<Metalink>(URL).unwrap();
    let link = listing.entries.remove(0).link.unwrap();
    std::iter::once(link.url).chain(link.mirrors).collect()
}

#[test]
fn fixtures() {
    replay_all::<Metalink>("fixtures");
}

#[test]
fn the_users_country_comes_first_and_the_rest_keeps_its_order() {
    let document = files(
        r#"<file name="a"><url priority="2" location="DE">https://de2/</url><url priority="1">https://any/</url>
        <url priority="1" location="de">https://de1/</url><url>https://last/</url></file>"#,
    );
    let order = |location| places(&host(document.as_str()).setting("location", location));
    assert_eq!(
        order(""),
        ["https://any/", "https://de1/", "https://de2/", "https://last/"]
    );
    assert_eq!(
        order("de"),
        ["https://de1/", "https://de2/", "https://any/", "https://last/"]
    );
}

#[test]
fn names_that_leave_their_folder_are_left_out() {
    for name in [
        "../a",
        "a/../../b",
        "/etc/passwd",
        "C:\\a",
        "a\\..\\b",
        "a//b",
        "./a",
        "a/",
        "",
        "c:a",
    ] {
        let document = files(&format!(
            r#"<file name="{name}"><url>https://a/</url></file><file name="x/good"><url>https://a/</url></file>"#
        ));
        let host = host(document);
        let listing = host.resolve::<Metalink>(URL).unwrap();
        let names: Vec<_> = listing
            .entries
            .iter()
            .map(|entry| (entry.folder.as_str(), entry.name.as_str()))
            .collect();
        assert_eq!(names, [("x", "good")], "{name}");
        assert!(host.log()[0].starts_with("Warn"), "{name}");
    }
}

#[test]
fn a_document_type_is_refused_whatever_it_defines() {
    let bomb = r#"<!DOCTYPE metalink [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
        <metalink><file name="&b;"><url>https://a/</url></file></metalink>"#;
    assert!(matches!(resolve(bomb), Err(Error::Parse(_))));
    let outside = r#"<!DOCTYPE metalink SYSTEM "file:///etc/passwd"><metalink/>"#;
    assert!(matches!(resolve(outside), Err(Error::Parse(_))));
}

#[test]
fn documents_that_would_fill_the_memory_are_refused() {
    for flood in ["<a/>", "<a>", "<a b='1' c='2'/>"] {
        let document = files(&flood.repeat(100_000));
        assert!(matches!(resolve(&document), Err(Error::Parse(_))), "{flood}");
    }
}

#[test]
fn what_is_no_metalink_is_left_to_others_and_what_is_broken_is_said() {
    let check = |document: &str, expect: fn(&Error) -> bool| {
        let error = resolve(document).unwrap_err();
        assert!(expect(&error), "{document}: {error:?}");
    };
    check("<html><body>Not here</body></html>", |error| {
        *error == Error::NotMatched
    });
    check("PK\u{3}\u{4}", |error| *error == Error::NotMatched);
    check("<feed><metalink/></feed>", |error| *error == Error::NotMatched);
    let is_parse = |error: &Error| matches!(error, Error::Parse(_));
    check("<metalink><file", is_parse);
    check(&files(""), is_parse);
    check(
        &files(r#"<file name="a"><size>many</size><url>https://a/</url></file>"#),
        is_parse,
    );
    check(
        &files(r#"<file name="a"><hash type="sha-256">abc</hash><url>https://a/</url></file>"#),
        is_parse,
    );
    let is_unsupported = |error: &Error| matches!(error, Error::Unsupported(_));
    check(&files(r#"<file name="a"><url>ftp://a/b</url></file>"#), is_unsupported);
}

#[test]
fn a_file_has_no_more_mirrors_than_the_host_takes() {
    let urls = "<url>https://a/</url>".repeat(100);
    assert_eq!(
        places(&host(files(&format!(r#"<file name="a">{urls}</file>"#)))).len(),
        33
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_a_site_answers_is_a_listing_or_a_clear_error(
        at in 0_usize..1500, length in 0_usize..40, noise in "(<|>|&|\"|/|\\]|metalink|file|url|hash|[a-z0-9 =]){0,12}",
    ) {
        let mut bytes = include_bytes!("../fixtures/documents/v4.meta4").to_vec();
        let at = at.min(bytes.len());
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, noise.into_bytes());
        match host(bytes).resolve::<Metalink>(URL) {
            Ok(listing) => prop_assert!(!listing.entries.is_empty()),
            Err(Error::Parse(_) | Error::NotMatched | Error::Unsupported(_)) => {}
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
