//! Without a behaviour, an origin does what RFC 9110 and 9112 want.

use std::{io::Write as _, net::TcpStream};

use support::{Content, Origin, Resource, Version, behaviour};

use crate::client::{get, say};

fn content() -> Content {
    Content::seeded(3, 100_000)
}

fn origin() -> Origin {
    Origin::start(vec![Resource::new("/f", content())])
}

#[test]
fn the_whole_file_comes_with_length_validators_and_accept_ranges() {
    let origin = origin();
    let heard = get(&origin, "/f", "");
    for line in [
        "HTTP/1.1 200 OK",
        "Content-Length: 100000",
        "Accept-Ranges: bytes",
        "ETag: \"version-0\"",
    ] {
        assert!(heard.head().contains(line), "{line} is missing in {}", heard.head());
    }
    assert_eq!(heard.body(), content().to_vec());
    assert_eq!(origin.requests()[0].bytes_sent(), 100_000);
}

#[test]
fn single_ranges_are_honoured() {
    let origin = origin();
    let check = |range: &str, status: &str, content_range: &str, body: &[u8]| {
        let heard = get(&origin, "/f", &format!("Range: {range}\r\n"));
        assert!(
            heard.head().starts_with(&format!("HTTP/1.1 {status}")),
            "{range}: {}",
            heard.head()
        );
        assert!(heard.head().contains(content_range), "{range}: {}", heard.head());
        assert_eq!(heard.body(), body, "{range}");
    };
    check(
        "bytes=0-9",
        "206",
        "Content-Range: bytes 0-9/100000",
        &content().slice(0..10),
    );
    check(
        "bytes=99990-",
        "206",
        "Content-Range: bytes 99990-99999/100000",
        &content().slice(99_990..100_000),
    );
    check(
        "bytes=99990-200000",
        "206",
        "Content-Range: bytes 99990-99999/100000",
        &content().slice(99_990..100_000),
    );
    check(
        "bytes=-5",
        "206",
        "Content-Range: bytes 99995-99999/100000",
        &content().slice(99_995..100_000),
    );
    check(
        "bytes=100000-",
        "416",
        "Content-Range: bytes */100000",
        b"there are no such bytes\n",
    );
    check("bytes=0-1,5-6", "200", "Content-Length: 100000", &content().to_vec());
    check("lines=0-1", "200", "Content-Length: 100000", &content().to_vec());
}

#[test]
fn if_range_is_honoured_with_strong_validators_only() {
    let origin = Origin::start(vec![
        Resource::new("/strong", content()),
        Resource::changing("/weak", |_| Version {
            etag: Some("W/\"w\"".to_owned()),
            ..Version::unnamed(content())
        }),
    ]);
    let check = |path: &str, validator: &str, status: &str| {
        let heard = get(&origin, path, &format!("Range: bytes=5-9\r\nIf-Range: {validator}\r\n"));
        assert!(
            heard.head().starts_with(&format!("HTTP/1.1 {status}")),
            "{path} {validator}: {}",
            heard.head()
        );
    };
    check("/strong", "\"version-0\"", "206");
    check("/strong", "Wed, 21 Oct 2015 07:28:00 GMT", "206");
    check("/strong", "\"version-1\"", "200");
    check("/weak", "W/\"w\"", "200");
}

#[test]
fn head_has_the_headers_and_no_body() {
    let heard = say(
        origin().port(),
        "HEAD /f HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    );
    assert!(heard.head().contains("Content-Length: 100000"));
    assert_eq!(heard.body(), b"");
    assert!(heard.end.is_ok());
}

#[test]
fn connections_are_kept_alive_and_counted() {
    let origin = origin();
    let twice = "GET /f HTTP/1.1\r\nHost: x\r\nRange: bytes=0-3\r\n\r\n".repeat(2);
    let heard = say(origin.port(), &twice);
    assert_eq!(
        String::from_utf8_lossy(&heard.bytes)
            .matches("206 Partial Content")
            .count(),
        2
    );
    let _second = get(&origin, "/f", "");
    let connections: Vec<_> = origin.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
    assert!(origin.max_connections_seen() >= 1);
}

#[test]
fn requests_can_be_waited_for() {
    let origin = origin();
    let mut stream = TcpStream::connect(("127.0.0.1", origin.port())).unwrap();
    stream.write_all(b"GET /f HTTP/1.1\r\nX-Mark: here\r\n\r\n").unwrap();
    assert_eq!(origin.wait_for_requests(1)[0].header("x-mark"), Some("here"));
}

#[test]
fn unknown_paths_and_methods_are_refused() {
    let origin = origin();
    assert!(get(&origin, "/g", "").head().starts_with("HTTP/1.1 404"));
    let posted = say(
        origin.port(),
        "POST /f HTTP/1.1\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
    );
    assert!(posted.head().starts_with("HTTP/1.1 405"));
    assert_eq!(origin.requests()[1].body, b"hi");
}

#[test]
fn passwords_and_cookies_open_gates() {
    let origin = Origin::start(vec![
        Resource::new("/locked", content()).with(behaviour::basic_auth("me", "pw")),
        Resource::new("/gated", content()).with(behaviour::cookie_gate),
    ]);
    assert!(get(&origin, "/locked", "").head().contains("WWW-Authenticate: Basic"));
    assert!(
        get(&origin, "/locked", "Authorization: Basic bWU6cHc=\r\n")
            .head()
            .starts_with("HTTP/1.1 200")
    );
    let turned_away = get(&origin, "/gated", "").head();
    assert!(turned_away.contains("Location: /gated") && turned_away.contains("Set-Cookie: pass=granted"));
    assert!(
        get(&origin, "/gated", "Cookie: a=b; pass=granted\r\n")
            .head()
            .starts_with("HTTP/1.1 200")
    );
}

#[test]
fn dropping_an_origin_ends_its_connections() {
    let origin = Origin::start(vec![
        Resource::new("/f", content()).with(behaviour::silent(support::End::Stall)),
    ]);
    let port = origin.port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /f HTTP/1.1\r\n\r\n").unwrap();
    origin.wait_for_requests(1);
    drop(origin);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}
