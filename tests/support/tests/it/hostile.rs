//! Each kind of misbehaviour does on the wire what its description says.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use support::{Chunks, Content, End, Framing, Head, Origin, Pace, Reply, Resource, Scene, behaviour, cases};

use crate::client::{Heard, get, say};

fn content() -> Content {
    Content::seeded(3, 300_000)
}

fn bent(behaviour: impl Fn(&support::Exchange, &mut Reply) + Send + Sync + 'static) -> Origin {
    Origin::start(vec![Resource::new("/f", content()).with(behaviour)])
}

fn scene(name: &str) -> Scene {
    cases()
        .into_iter()
        .find(|case| case.name == name)
        .unwrap_or_else(|| panic!("no case {name}"))
        .stage()
}

fn get_from(scene: &Scene, headers: &str) -> Heard {
    let path = scene.url.splitn(4, '/').nth(3).expect("a URL has a path");
    get(&scene.origins[0], &format!("/{path}"), headers)
}

#[test]
fn cuts_come_after_exactly_so_many_bytes_and_in_each_way() {
    let check = |end: End, framing: Framing, expected: Option<ErrorKind>| {
        let origin = Origin::start(vec![
            Resource::new("/f", content())
                .with(behaviour::framing(framing))
                .with(behaviour::cut(100_000, end)),
        ]);
        let heard = get(&origin, "/f", "");
        assert_eq!(heard.end.err().map(|error| error.kind()), expected, "{end:?}");
        assert_eq!(origin.requests()[0].bytes_sent(), 100_000, "{end:?}");
    };
    check(End::Close, Framing::Length, None);
    check(End::Reset, Framing::Length, Some(ErrorKind::ConnectionReset));
    check(End::Reset, Framing::Close, Some(ErrorKind::ConnectionReset));
    check(End::Stall, Framing::Length, Some(ErrorKind::WouldBlock));
    check(End::Close, Framing::Chunked(Chunks::Plain), None);
}

#[test]
fn a_cut_body_is_the_start_of_the_file() {
    let heard = get(&bent(behaviour::cut(100_000, End::Close)), "/f", "");
    assert_eq!(heard.body(), content().slice(0..100_000));
    assert!(heard.head().contains("Content-Length: 300000"));
}

#[test]
fn chunks_look_as_wanted() {
    let body = |chunks: Chunks| {
        let heard = get(&bent(behaviour::framing(Framing::Chunked(chunks))), "/f", "");
        assert!(heard.head().contains("Transfer-Encoding: chunked") && !heard.head().contains("Content-Length"));
        String::from_utf8_lossy(heard.body()).into_owned()
    };
    assert!(body(Chunks::Plain).starts_with("4000\r\n") && body(Chunks::Plain).ends_with("\r\n0\r\n\r\n"));
    assert!(body(Chunks::Decorated).starts_with("4000;name=value") && body(Chunks::Decorated).contains("X-Trailer"));
    assert!(
        body(Chunks::SizeLine {
            from: 16_384,
            text: "zz"
        })
        .contains("\r\nzz\r\n")
    );
    assert!(!body(Chunks::Unterminated).contains("\r\n4000\r\n\r\n"));
}

#[test]
fn paced_bodies_take_their_time() {
    let started = Instant::now();
    get(&bent(behaviour::paced(1_000_000)), "/f", "");
    assert!(
        started.elapsed() >= Duration::from_millis(280),
        "{:?}",
        started.elapsed()
    );
    let drip = Pace::Drip {
        times: 4,
        pause: Duration::from_millis(50),
    };
    let started = Instant::now();
    let heard = get(&bent(move |_, reply| reply.pace = drip), "/f", "");
    assert!(
        started.elapsed() >= Duration::from_millis(150),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(heard.body(), content().to_vec());
}

#[test]
fn endless_heads_do_not_end() {
    let origin = bent(|_, reply| {
        reply.head = Head::Endless {
            opening: "HTTP/1.1 200 OK\r\n",
            line: "X: y\r\n",
            pause: Duration::ZERO,
        };
    });
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", origin.port())).unwrap();
    std::io::Write::write_all(&mut stream, b"GET /f HTTP/1.1\r\n\r\n").unwrap();
    let mut head = vec![0; 1 << 20];
    std::io::Read::read_exact(&mut stream, &mut head).unwrap();
    assert!(!String::from_utf8(head).unwrap().contains("\r\n\r\n"));
}

#[test]
fn gzip_is_the_whole_file_compressed() {
    let heard = get(
        &bent(behaviour::gzip(behaviour::compressed(&content().to_vec()))),
        "/f",
        "Range: bytes=5-\r\n",
    );
    assert!(heard.head().starts_with("HTTP/1.1 200") && heard.head().contains("Content-Encoding: gzip"));
    assert_eq!(heard.body(), behaviour::compressed(&content().to_vec()));
}

#[test]
fn range_cases_lie_about_ranges() {
    let asked = "Range: bytes=1000000-1999999\r\n";
    let check = |name: &str, status: &str, line: &str, len: usize| {
        let heard = get_from(&scene(name), asked);
        assert!(
            heard.head().starts_with(&format!("HTTP/1.1 {status}")),
            "{name}: {}",
            heard.head()
        );
        assert!(heard.head().contains(line), "{name}: {}", heard.head());
        assert_eq!(heard.body().len(), len, "{name}");
    };
    let total = 3_158_073;
    check("range-ignored", "200", "Content-Length: 3158073", total);
    check("range-ignored-past-the-start", "200", "Content-Length: 3158073", total);
    check(
        "unsatisfiable-for-valid-ranges",
        "416",
        "Content-Range: bytes */3158073",
        11,
    );
    check(
        "range-starts-elsewhere",
        "206",
        "bytes 1001000-1999999/3158073",
        999_000,
    );
    check("range-always-from-zero", "206", "bytes 0-3158072/3158073", total);
    check("range-ends-early", "206", "bytes 1000000-1262143/3158073", 262_144);
    check(
        "range-ends-late",
        "206",
        "bytes 1000000-3158072/3158073",
        total - 1_000_000,
    );
    check(
        "content-range-total-unknown",
        "206",
        "bytes 1000000-1999999/*",
        1_000_000,
    );
    check(
        "range-body-longer-than-announced",
        "206",
        "Content-Length: 1005000",
        1_005_000,
    );
    check(
        "range-body-shorter-than-announced",
        "206",
        "Content-Length: 500000",
        500_000,
    );
    let missing = get_from(&scene("content-range-missing"), asked);
    assert!(missing.head().starts_with("HTTP/1.1 206") && !missing.head().contains("Content-Range"));
    let multipart = get_from(&scene("multipart-byteranges"), asked);
    assert!(multipart.head().contains("multipart/byteranges") && multipart.body().starts_with(b"--CUT\r\n"));
    let elsewhere = get_from(&scene("range-body-from-elsewhere"), asked);
    assert_eq!(
        elsewhere.body(),
        Content::seeded(1, 3_158_073).slice(999_000..1_999_000)
    );
}

#[test]
fn a_changing_file_changes_after_its_first_mib() {
    let scene = scene("etag-changes-and-if-range-ignored");
    for _ in 0..8 {
        let heard = get_from(&scene, "Range: bytes=0-\r\n");
        assert!(heard.head().contains("\"version-0\""));
        assert_eq!(heard.body().len(), 128 * 1024);
    }
    let heard = get_from(&scene, "Range: bytes=9-\r\nIf-Range: \"version-0\"\r\n");
    assert!(
        heard.head().starts_with("HTTP/1.1 206") && heard.head().contains("\"version-1\""),
        "{}",
        heard.head()
    );
    assert_eq!(heard.body(), scene.truths[0].slice(9..scene.truths[0].len()));
}

#[test]
fn answers_beyond_the_ration_are_refused() {
    let scene = scene("one-connection-429");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| get_from(&scene, "Range: bytes=0-3145727\r\n"));
        scene.origins[0].wait_for_requests(1);
        assert!(get_from(&scene, "").head().starts_with("HTTP/1.1 429"));
        assert!(first.join().unwrap().head().starts_with("HTTP/1.1 206"));
    });
}

#[test]
fn an_answer_to_another_request_follows_the_right_one() {
    let scene = scene("answer-to-another-request");
    let request = "GET /files/data.bin HTTP/1.1\r\nHost: x\r\nRange: bytes=0-9\r\n\r\n";
    let heard = say(scene.origins[0].port(), request);
    assert_eq!(
        String::from_utf8_lossy(&heard.bytes)
            .matches("206 Partial Content")
            .count(),
        2
    );
    assert_eq!(heard.end.unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn names_go_out_as_raw_bytes() {
    let heard = get_from(&scene("name-raw-gbk"), "");
    assert!(heard.bytes.windows(9).any(|window| window == b"=\"\xcf\xc2\xd4\xd8.bi"));
}

#[test]
fn signed_links_work_once() {
    let scene = scene("redirect-to-links-that-work-once");
    let origin = &scene.origins[0];
    assert!(get(origin, "/start", "").head().contains("Location: /signed?0"));
    assert!(get(origin, "/signed?0", "").head().starts_with("HTTP/1.1 200"));
    assert!(get(origin, "/signed?0", "").head().starts_with("HTTP/1.1 403"));
    assert!(get(origin, "/start", "").head().contains("Location: /signed?1"));
}
