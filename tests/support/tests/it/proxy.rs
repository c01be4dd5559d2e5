//! Proxies pass on what they are asked to, under names that only they know.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use support::{Content, Origin, Proxied, Proxy, Resource};

use crate::client::say;

fn origin() -> Origin {
    Origin::start(vec![Resource::new("/f", Content::seeded(4, 10_000))])
}

#[test]
fn an_http_proxy_forwards_absolute_urls() {
    let origin = origin();
    let proxy = Proxy::http(&[("files.test", origin.port())], None);
    let heard = say(
        proxy.port(),
        "GET http://files.test/f HTTP/1.1\r\nHost: files.test\r\nRange: bytes=0-4\r\n\r\n",
    );
    assert!(heard.head().starts_with("HTTP/1.1 206"), "{}", heard.head());
    assert_eq!(heard.body(), Content::seeded(4, 10_000).slice(0..5));
    assert_eq!(origin.requests()[0].target, "/f");
    let served = Proxied {
        method: "GET".to_owned(),
        target: "http://files.test/f".to_owned(),
        is_served: true,
    };
    assert_eq!(proxy.requests(), [served]);
}

#[test]
fn an_http_proxy_tunnels_once_it_knows_who_asks() {
    let origin = origin();
    let proxy = Proxy::http(&[("files.test", origin.port())], Some(("me", "pw")));
    let refused = say(proxy.port(), "CONNECT files.test:443 HTTP/1.1\r\n\r\n");
    assert!(refused.head().starts_with("HTTP/1.1 407"), "{}", refused.head());
    let text = "CONNECT files.test:443 HTTP/1.1\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n\
                GET /f HTTP/1.1\r\nConnection: close\r\n\r\n";
    let heard = say(proxy.port(), text);
    assert!(
        heard.head().starts_with("HTTP/1.1 200 Connection established"),
        "{}",
        heard.head()
    );
    assert!(heard.body().ends_with(&Content::seeded(4, 10_000).slice(9_000..10_000)));
}

#[test]
fn a_socks5_proxy_resolves_names_and_checks_passwords() {
    let origin = origin();
    let proxy = Proxy::socks5(&[("files.test", origin.port())], Some(("me", "pw")));
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream
        .write_all(b"\x05\x01\x02\x01\x02me\x02pw\x05\x01\x00\x03\x0afiles.test\x00\x50")
        .unwrap();
    stream
        .write_all(b"GET /f HTTP/1.1\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard[..6], [5, 2, 1, 0, 5, 0]);
    assert!(heard.ends_with(&Content::seeded(4, 10_000).slice(9_000..10_000)));
    assert_eq!(proxy.requests()[0].target, "files.test:80");
}
