use proptest::prelude::*;
use transfer::SafeUrl;

use super::*;

fn wish(start: u64, end: u64) -> RangeWish {
    RangeWish {
        start,
        end: Some(end),
        if_range: None,
    }
}

fn known() -> Facts {
    Facts {
        total: Some(1000),
        etag: Some("\"a\"".into()),
        last_modified: Some("Mon".into()),
    }
}

/// The verdict on an answer to bytes 100..200 of the known file.
fn on_part(status: u16, headers: &[(&str, &str)]) -> Result<Verdict, Unusable> {
    judge(
        Some(&wish(100, 200)),
        &known(),
        &ResponseHead::of(status, headers),
        SystemTime::UNIX_EPOCH,
    )
}

fn failed(found: Result<Verdict, Unusable>) -> FailureKind {
    match found {
        Err(Unusable::Failed(failure)) => failure.kind,
        other => panic!("expected a failure, got {other:?}"),
    }
}

#[test]
fn the_part_that_was_asked_for_is_taken() {
    let on_named = |range: &str| on_part(206, &[("content-range", range), ("etag", "\"a\"")]);
    assert_eq!(
        on_named("bytes 100-199/1000"),
        Ok(Verdict::Part {
            end: 200,
            total: Some(1000)
        })
    );
    assert_eq!(
        on_named("Bytes 100-199/1000"),
        Ok(Verdict::Part {
            end: 200,
            total: Some(1000)
        })
    );
    assert_eq!(
        on_named("bytes 100-149/1000"),
        Ok(Verdict::Part {
            end: 150,
            total: Some(1000)
        })
    );
    assert_eq!(on_named("bytes 100-199/*"), Ok(Verdict::Part { end: 200, total: None }));
    let dated = on_part(
        206,
        &[
            ("content-range", "bytes 100-199/1000"),
            ("last-modified", "Mon"),
            ("content-length", "100"),
        ],
    );
    assert!(dated.is_ok());
}

#[test]
fn another_part_is_never_taken() {
    let mismatches: [&[(&str, &str)]; 9] = [
        &[("content-range", "bytes 0-199/1000")],
        &[("content-range", "bytes 101-199/1000")],
        &[],
        &[("content-range", "bytes 100-/1000")],
        &[("content-range", "bytes 100-1000/1000")],
        &[("content-range", "items 100-199/1000")],
        &[("content-range", "bytes 199-100/1000")],
        &[("content-range", "bytes 100-199/1000"), ("content-length", "99")],
        &[
            ("content-range", "bytes 100-199/1000"),
            ("content-type", "multipart/byteranges; boundary=x"),
        ],
    ];
    for headers in mismatches {
        assert_eq!(failed(on_part(206, headers)), FailureKind::RangeMismatch, "{headers:?}");
    }
    let encoded = on_part(
        206,
        &[("content-range", "bytes 100-199/1000"), ("content-encoding", "gzip")],
    );
    assert_eq!(failed(encoded), FailureKind::Encoding);
}

#[test]
fn a_part_of_another_version_is_told() {
    let changed: [&[(&str, &str)]; 4] = [
        &[("content-range", "bytes 100-199/1000")],
        &[("content-range", "bytes 100-199/1001")],
        &[("content-range", "bytes 100-199/1000"), ("etag", "\"b\"")],
        &[("content-range", "bytes 100-199/1000"), ("last-modified", "Tue")],
    ];
    for headers in changed {
        assert!(
            matches!(on_part(206, headers), Err(Unusable::Changed(_))),
            "{headers:?}"
        );
    }
    // The same strong tag with another date is the same file from another server of a cluster.
    let same = on_part(
        206,
        &[
            ("content-range", "bytes 100-199/1000"),
            ("etag", "\"a\""),
            ("last-modified", "Tue"),
        ],
    );
    assert!(same.is_ok());
}

#[test]
fn the_whole_file_instead_of_a_part_is_told_apart_from_a_new_file() {
    assert_eq!(
        on_part(200, &[("content-length", "1000")]),
        Err(Unusable::IgnoresRanges)
    );
    assert!(matches!(
        on_part(200, &[("content-length", "900")]),
        Err(Unusable::Changed(_))
    ));
    assert!(matches!(
        on_part(200, &[("content-length", "1000"), ("etag", "\"b\"")]),
        Err(Unusable::Changed(_))
    ));
}

#[test]
fn a_part_nobody_asked_for_is_refused() {
    let head = ResponseHead::of(206, &[("content-range", "bytes 0-9/10")]);
    assert_eq!(
        failed(judge(None, &Facts::default(), &head, SystemTime::UNIX_EPOCH)),
        FailureKind::RangeMismatch
    );
}

#[test]
fn a_range_past_the_end_is_told_apart_from_a_refusal() {
    assert_eq!(
        failed(on_part(416, &[("content-range", "bytes */1000")])),
        FailureKind::RangeMismatch
    );
    assert!(matches!(
        on_part(416, &[("content-range", "bytes */100")]),
        Err(Unusable::Changed(_))
    ));
    assert_eq!(on_part(416, &[]), Ok(Verdict::PastEnd { total: None }));
}

#[test]
fn statuses_say_what_they_mean() {
    let table = [
        (401, FailureKind::Unauthorized),
        (403, FailureKind::Forbidden),
        (404, FailureKind::NotFound),
        (410, FailureKind::Gone),
        (429, FailureKind::Busy),
        (500, FailureKind::ServerError),
        (503, FailureKind::Busy),
        (204, FailureKind::UnexpectedStatus),
        (304, FailureKind::UnexpectedStatus),
        (418, FailureKind::UnexpectedStatus),
    ];
    for (status, kind) in table {
        assert_eq!(failed(on_part(status, &[])), kind, "{status}");
    }
}

#[test]
fn only_what_proves_equality_goes_into_if_range() {
    let facts = |etag: Option<&str>, date: Option<&str>| Facts {
        total: None,
        etag: etag.map(str::to_owned),
        last_modified: date.map(str::to_owned),
    };
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    assert_eq!(facts(Some("\"a\""), Some(date)).if_range().as_deref(), Some("\"a\""));
    assert_eq!(facts(Some("W/\"a\""), Some(date)).if_range(), None);
    assert_eq!(facts(None, Some(date)).if_range().as_deref(), Some(date));
    assert_eq!(facts(Some("a"), Some(date)).if_range(), None, "an unquoted tag is none");
    assert_eq!(facts(Some("\"a\"b\""), None).if_range(), None);
    assert_eq!(facts(None, Some("Mon")).if_range(), None, "that is no date");
}

#[test]
fn a_folded_or_controlled_validator_is_none() {
    let facts = |name, value| {
        Facts::of(
            &ResponseHead::of(200, &[(name, value)]),
            Verdict::Whole { length: None },
        )
    };
    for value in [
        "\"a\"\r\n X-Evil: 1",
        "\"a\r\n b\"",
        "\"a\n b\"",
        "\"a\u{7f}\"",
        "\"a\tb\"",
        "\"\u{85}\"",
    ] {
        assert_eq!(facts("etag", value), Facts::default(), "{value:?}");
    }
    assert_eq!(
        facts("last-modified", "Sun, 06 Nov 1994\r\n 08:49:37 GMT"),
        Facts::default()
    );
    assert_eq!(facts("etag", "abc").etag.as_deref(), Some("abc"), "compared, not sent");
}

fn promised(name: &str, headers: &[(&str, &str)]) -> Option<FailureKind> {
    let source = Source::new(SafeUrl::parse("http://a.test/").unwrap());
    let head = ResponseHead::of(200, headers);
    not_the_file(&source, Some(&FileName::sanitise(name)), &head, Some(5)).map(|failure| failure.kind)
}

#[test]
fn a_web_page_is_not_an_archive() {
    let page = [("content-type", "text/html; charset=utf-8")];
    for name in ["a.zip", "a.iso", "movie.MP4", "a.tar.gz", "a.bin", "paper.pdf"] {
        assert_eq!(promised(name, &page), Some(FailureKind::NotTheFile), "{name}");
    }
    for name in ["index.html", "get.php", "readme", "a.txt", "v1.2", "example.com"] {
        assert_eq!(promised(name, &page), None, "{name}");
    }
    let attachment = [
        ("content-type", "text/html"),
        ("content-disposition", "attachment; filename=a.zip"),
    ];
    assert_eq!(promised("a.zip", &attachment), None);
}

#[test]
fn a_promised_size_must_be_kept() {
    let source = Source {
        promised_size: Some(6),
        ..Source::new(SafeUrl::parse("http://a.test/").unwrap())
    };
    assert!(not_the_file(&source, None, &ResponseHead::of(200, &[]), Some(5)).is_some());
    assert!(not_the_file(&source, None, &ResponseHead::of(200, &[]), Some(6)).is_none());
}

proptest! {
    #[test]
    fn no_content_range_is_taken_for_another_start(text in "bytes [0-9*/ -]{0,20}", start in 0u64..50) {
        let head = ResponseHead::of(206, &[("content-range", &text)]);
        let asked = RangeWish { start, end: None, if_range: None };
        if let Ok(Verdict::Part { end, total }) = judge(Some(&asked), &Facts::default(), &head, SystemTime::UNIX_EPOCH) {
            prop_assert!(end > start && total.is_none_or(|total| end <= total));
            let first = text["bytes ".len()..].trim().split('-').next().unwrap().trim().to_owned();
            prop_assert_eq!(first.parse::<u64>().ok(), Some(start), "{}", text);
        }
    }
}
