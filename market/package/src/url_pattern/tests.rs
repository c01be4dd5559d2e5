use proptest::prelude::*;

use super::*;

fn pattern(text: &str) -> UrlPattern {
    text.parse().unwrap()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[test]
fn sites_of_a_user_are_hosts_with_those_below_them() {
    let sites = " video.example\n\n*.films.example\nnas:8080\n192.168.1.5\n[::1]:90\nhttps://x.example/\na b\n";
    let patterns: Vec<_> = UrlPattern::of_sites(sites).collect();
    let claims = |text: &str| patterns.iter().any(|pattern| pattern.claims(&url(text)));
    for claimed in [
        "https://video.example/watch?v=1",
        "http://www.video.example/",
        "https://films.example/x",
        "http://nas:8080/x",
        "http://192.168.1.5/x",
        "http://[::1]:90/",
    ] {
        assert!(claims(claimed), "{claimed}");
    }
    for other in [
        "https://evilvideo.example/",
        "https://video.example:8443/",
        "http://nas/x",
        "https://x.example/",
        "http://1.192.168.1.5.example/",
        "ftp://video.example/",
    ] {
        assert!(!claims(other), "{other}");
    }
    let every: Vec<_> = UrlPattern::of_sites("*").collect();
    assert!(
        every
            .iter()
            .any(|pattern| pattern.claims(&url("http://anything.test:81/x")))
    );
    assert_eq!(UrlPattern::of_sites(&"a.test\n".repeat(5000)).count(), 2 * MAX_SITES);
    assert_eq!(UrlPattern::of_sites("").count(), 0);
}

#[test]
fn a_pattern_claims_what_it_says() {
    let check = |text: &str, yes: &[&str], no: &[&str]| {
        for (urls, expected) in [(yes, true), (no, false)] {
            for candidate in urls {
                assert_eq!(
                    pattern(text).claims(&url(candidate)),
                    expected,
                    "{text} and {candidate}"
                );
            }
        }
    };
    check(
        "https://drive.acme.com/s/*",
        &[
            "https://drive.acme.com/s/1",
            "https://DRIVE.acme.com/s/a/b?x=1",
            "https://drive.acme.com:443/s/",
        ],
        &[
            "http://drive.acme.com/s/1",
            "https://drive.acme.com/t/1",
            "https://x.drive.acme.com/s/1",
            "https://drive.acme.com:8443/s/1",
        ],
    );
    check(
        "*://*.acme.com/*/file/*.zip",
        &["http://a.acme.com/x/file/y.zip", "https://a.b.acme.com/x/y/file/.zip"],
        &[
            "http://acme.com/x/file/y.zip",
            "http://a.acme.com/file/y.zip",
            "http://a.evilacme.com/x/file/y.zip",
        ],
    );
    check(
        "https://acme.com/watch?v=*",
        &["https://acme.com/watch?v=1"],
        &["https://acme.com/watch", "https://acme.com/watch?w=1"],
    );
    check(
        "https://*/files/*",
        &["https://anything.test/files/1", "https://10.0.0.1:8443/files/1"],
        &["ftp://anything.test/files/1", "https://anything.test/"],
    );
    check(
        "https://acme.com/a",
        &["https://acme.com/a", "https://acme.com/a?query"],
        &["https://acme.com/ab"],
    );
    check(
        "https://acme.com/ab*ba",
        &["https://acme.com/abba"],
        &["https://acme.com/aba"],
    );
}

#[test]
fn patterns_that_mean_nothing_are_refused() {
    for bad in [
        "acme.com/*",
        "https://acme.com",
        "ftp://acme.com/*",
        "https://a*.com/",
        "https:///x",
        "https://a@b.com/",
        "https://acme.com/#x",
    ] {
        assert_eq!(bad.parse::<UrlPattern>(), Err(InvalidUrlPattern::Form), "{bad}");
    }
    let long = format!("https://acme.com/{}", "a".repeat(MAX_PATTERN_BYTES));
    assert_eq!(long.parse::<UrlPattern>(), Err(InvalidUrlPattern::TooLong));
}

#[test]
fn priority_goes_first_then_the_narrower_pattern() {
    let rules = [
        ("any", 0, "https://*/*"),
        ("below", 0, "https://*.acme.com/*"),
        ("exact", 0, "https://a.acme.com/*"),
        ("longer", 0, "https://a.acme.com/s/*"),
        ("first", 1, "https://*/*"),
        ("longer", 0, "https://a.acme.com/*"),
    ];
    let matcher = Matcher::new(rules.map(|(key, priority, text)| (key, priority, pattern(text))));
    assert_eq!(
        matcher.claims(&url("https://a.acme.com/s/1")),
        ["first", "longer", "exact", "below", "any"]
    );
    assert_eq!(matcher.claims(&url("https://acme.org/s/1")), ["first", "any"]);
    assert_eq!(matcher.claims(&url("magnet:?xt=urn:btih:0")), Vec::<&str>::new());
}

fn patterns() -> impl Strategy<Value = String> {
    (
        "(https|http|\\*)",
        "(\\*|(\\*\\.)?(a\\.)?(b\\.com|c\\.org))",
        "/[ab*?]{0,5}",
    )
        .prop_map(|(scheme, host, path)| format!("{scheme}://{host}{path}"))
}

proptest! {
    #[test]
    fn the_table_finds_exactly_the_patterns_that_claim(
        texts in proptest::collection::vec((patterns(), -2..3_i32), 0..12),
        candidate in "(https|http)://(x\\.)?(a\\.)?(b\\.com|c\\.org)/[ab]{0,5}(\\?[ab]{0,3})?",
    ) {
        let candidate = url(&candidate);
        let rules: Vec<_> = texts.iter().enumerate().map(|(key, (text, priority))| (key, *priority, pattern(text))).collect();
        let mut expected: Vec<_> = rules.iter().filter(|(_, _, pattern)| pattern.claims(&candidate)).collect();
        expected.sort_by_key(|(key, priority, pattern)| (Reverse(*priority), Reverse(pattern.specificity()), *key));
        let expected: Vec<_> = expected.into_iter().map(|(key, ..)| *key).collect();
        prop_assert_eq!(Matcher::new(rules).claims(&candidate), expected);
    }

    #[test]
    fn stars_mean_what_a_regular_expression_would_say(glob in "[ab*]{0,8}", text in "[ab]{0,10}") {
        let expression = format!("^{}$", glob.replace('*', ".*"));
        prop_assert_eq!(Glob::new(&glob).matches(&text), regex::Regex::new(&expression).unwrap().is_match(&text));
    }

    #[test]
    fn a_pattern_prints_what_it_reads(text in patterns()) {
        prop_assert_eq!(pattern(&text).to_string(), text);
    }
}
