use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_700_000_000;

const FILE: &str = "# Netscape HTTP Cookie File\n\
    files.test\tFALSE\t/\tFALSE\t0\tsession\ts1\n\
    .files.test\tTRUE\t/deep\tTRUE\t2000000000\tdeep\td1\n\
    #HttpOnly_.files.test\tTRUE\t/\tFALSE\t2000000000.5\thttp\th1\n\
    .files.test\tTRUE\t/\tFALSE\t1000\texpired\tx\n\
    other.test\tFALSE\t/\tFALSE\t0\tother\to1\n";

fn url(text: &str) -> SafeUrl {
    SafeUrl::parse(text).unwrap()
}

fn cookie(domain: &str, name: &str) -> Cookie {
    Cookie {
        domain: domain.into(),
        includes_subdomains: false,
        path: "/".into(),
        is_secure: false,
        name: name.into(),
        value: Secret::new("v"),
        expires: None,
    }
}

#[test]
fn a_cookie_goes_only_where_it_belongs() {
    let jar = CookieJar::parse(FILE, NOW).unwrap();
    for (address, expected) in [
        ("http://files.test/a", "session=s1; http=h1"),
        ("https://files.test/deep/a", "deep=d1; session=s1; http=h1"),
        ("https://files.test/deep", "deep=d1; session=s1; http=h1"),
        ("http://files.test/deep/a", "session=s1; http=h1"),
        ("https://files.test/deeper", "session=s1; http=h1"),
        ("https://FILES.test/", "session=s1; http=h1"),
        ("https://sub.files.test/", "http=h1"),
        ("https://evilfiles.test/", ""),
        ("https://files.test.evil.test/", ""),
        ("http://test/", ""),
    ] {
        assert_eq!(jar.for_url(&url(address), NOW), expected, "{address}");
    }
    assert_eq!(
        jar.for_url(&url("https://files.test/deep/"), 2_000_000_001),
        "session=s1",
        "the others have expired meanwhile"
    );
}

#[test]
fn addresses_have_no_subdomains() {
    let text = "127.0.0.1\tTRUE\t/\tFALSE\t0\ta\t1\n[::1]\tFALSE\t/\tFALSE\t0\tb\t2\n0.1\tTRUE\t/\tFALSE\t0\tc\t3\n";
    let jar = CookieJar::parse(text, NOW).unwrap();
    assert!(jar.iter().all(|cookie| !cookie.includes_subdomains), "{jar:?}");
    assert_eq!(jar.for_url(&url("http://127.0.0.1:8080/"), NOW), "a=1");
    assert_eq!(jar.for_url(&url("http://[::1]/"), NOW), "b=2");
    let jar: CookieJar = [Cookie {
        includes_subdomains: true,
        ..cookie("0.0.1", "a")
    }]
    .into_iter()
    .collect();
    assert_eq!(jar.for_url(&url("http://127.0.0.1/"), NOW), "");
}

#[test]
fn the_json_of_extensions_says_the_same() {
    let expected = CookieJar::parse(
        ".files.test\tTRUE\t/a\tTRUE\t2000000000\tone\t1\nfiles.test\tFALSE\t/\tFALSE\t0\ttwo\t2\n",
        NOW,
    )
    .unwrap();
    for (tool, text) in [
        (
            "EditThisCookie, Cookie-Editor",
            r#"[{"domain": ".files.test", "expirationDate": 2000000000.7, "hostOnly": false, "httpOnly": true, "name": "one",
                 "path": "/a", "sameSite": "lax", "secure": true, "session": false, "storeId": null, "value": "1", "id": 1},
                {"domain": "files.test", "hostOnly": true, "name": "two", "path": "/", "secure": false, "session": true,
                 "value": "2"},
                {"domain": "files.test", "expirationDate": 5, "hostOnly": true, "name": "old", "path": "/", "value": "3"}]"#,
        ),
        (
            "Playwright",
            r#"{"cookies": [{"name": "one", "value": "1", "domain": ".files.test", "path": "/a", "expires": 2000000000,
                 "httpOnly": true, "secure": true, "sameSite": "Lax"},
                {"name": "two", "value": "2", "domain": "files.test", "path": "/", "expires": -1, "secure": false}],
                "origins": []}"#,
        ),
        (
            "Cookie Quick Manager",
            r#"[{"Host raw": "https://.files.test/", "Name raw": "one", "Path raw": "/a", "Content raw": "1",
                 "Expires": "18-05-2033", "Expires raw": "2000000000", "Send for": "Encrypted connections only",
                 "Send for raw": "true", "HTTP only raw": "true", "This domain only raw": "false"},
                {"Host raw": "http://files.test/", "Name raw": "two", "Path raw": "/", "Content raw": "2",
                 "Expires raw": "0", "Send for raw": "false", "This domain only raw": "true"}]"#,
        ),
    ] {
        assert_eq!(CookieJar::parse(text, NOW).as_ref(), Ok(&expected), "{tool}");
        assert_eq!(
            CookieJar::parse(&format!("\u{feff} {text}"), NOW).as_ref(),
            Ok(&expected),
            "{tool}"
        );
    }
}

#[test]
fn a_text_of_another_kind_is_refused_with_its_place_and_without_its_content() {
    for (text, problem) in [
        ("# ok\nsecret: 1\n", "line 2: a cookie has seven fields"),
        ("a.test\tTRUE\t/\tTRUE\tnever\tsecret\tv", "line 1: the expiry"),
        ("a.test\tTRUE\t/\tTRUE\t0\tsecret\tv; x=y", "no cookie may have"),
        ("a b\tTRUE\t/\tTRUE\t0\tsecret\tv", "line 1: the domain"),
        ("\tTRUE\t/\tTRUE\t0\tsecret\tv", "line 1: the domain"),
        ("{\"secret\": []}", "the JSON cannot be read at line 1"),
        ("[{\"name\": [\"secret\"]}]", "the JSON cannot be read at line 1"),
        ("[\"secret\"]", "the JSON cannot be read at line 1"),
        (
            "[{\"name\": \"secret\", \"value\": \"secret\"}]",
            "cookie 1: it has no `domain`",
        ),
        (
            "[{\"name\": \"n\", \"value\": \"secret\\r\\nX: y\", \"domain\": \"a.test\"}]",
            "cookie 1: the cookie has a character",
        ),
        (
            "[{\"name\": \"n\", \"value\": \"secret\", \"domain\": \"a.test\", \"expires\": \"secret\"}]",
            "cookie 1: the expiry",
        ),
    ] {
        let message = CookieJar::parse(text, 0).unwrap_err().to_string();
        assert!(message.contains(problem), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
    let long = format!("a.test\tTRUE\t/\tTRUE\t0\tn\t{}", "v".repeat(MAX_PAIR_BYTES));
    assert!(CookieJar::parse(&long, 0).is_err());
    let many = |count: usize| {
        let lines = (0..count).map(|number| format!("a.test\tTRUE\t/\tTRUE\t0\tn{number}\tv\n"));
        CookieJar::parse(&lines.collect::<String>(), 0).map(|jar| jar.iter().count())
    };
    assert_eq!(many(MAX_PER_DOMAIN), Ok(MAX_PER_DOMAIN));
    assert_eq!(
        many(MAX_PER_DOMAIN + 1),
        Err(InvalidCookies::Line {
            line: MAX_PER_DOMAIN + 1,
            problem: Problem::TooMany
        })
    );
}

#[test]
fn what_exports_do_by_the_way_is_understood() {
    let text = "a.test\tFALSE\t/\tFALSE\t0\tempty\r\n\
        a.test\tFALSE\t/\tFALSE\t0\ttwice\tfirst\n\
        a.test\tFALSE\t/\tFALSE\t0\ttwice\tlast\n\
        a.test\tFALSE\t\tFALSE\t0\t\tnameless\n\
        B\u{fc}cher.test\tFALSE\t/\tFALSE\t-1\tname\tvalue\n";
    let jar = CookieJar::parse(text, NOW).unwrap();
    assert_eq!(jar.for_url(&url("http://a.test/"), NOW), "empty=; twice=last; nameless");
    assert_eq!(jar.for_url(&url("http://xn--bcher-kva.test/"), NOW), "name=value");
    assert!(CookieJar::parse("# only a comment\n\n", NOW).unwrap().is_empty());
    assert!(CookieJar::parse("[]", NOW).unwrap().is_empty());
    assert!(format!("{jar:?}").contains("***"), "values do not print");
    assert!(!format!("{jar:?}").contains("last"), "values do not print");
}

proptest! {
    #[test]
    fn no_text_breaks_the_readers(text in "\\PC*", tabs in "([a-z.#=;\\[{\"0-9\t\n])*") {
        for text in [text.as_str(), &tabs, &format!("[{text}"), &format!("{{{tabs}")] {
            let _refused = CookieJar::parse(text, NOW);
        }
    }

    /// A cookie never leaves its domain, whatever the file says.
    #[test]
    fn no_cookie_leaves_its_domain(
        domain in "\\.?[a-c]{1,2}(\\.[a-c]{1,2}){0,2}",
        host in "[a-c]{1,2}(\\.[a-c]{1,2}){0,3}",
        subdomains in "TRUE|FALSE",
    ) {
        let jar = CookieJar::parse(&format!("{domain}\t{subdomains}\t/\tFALSE\t0\tn\tv"), NOW).unwrap();
        let bare = domain.trim_start_matches('.');
        let is_below = host.ends_with(&format!(".{bare}")) && (subdomains == "TRUE" || domain.starts_with('.'));
        let sent = !jar.for_url(&url(&format!("http://{host}/")), NOW).is_empty();
        prop_assert_eq!(sent, host == bare || is_below);
    }
}
