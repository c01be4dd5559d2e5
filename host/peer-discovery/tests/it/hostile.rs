//! Trackers that misbehave on purpose: each costs a bounded time and memory, and says so in its view.

use std::time::Instant;

use Expected::{Failure, Peers};
use peer_discovery::{MAX_BATCH, TrackerStatus};
use tokio::time::timeout;

use crate::house::{House, HttpTracker, PATIENCE, answer, next, udp_tracker, view};

/// What comes of an answer: so many peers, or a message with this in it.
#[derive(Clone)]
enum Expected {
    Peers(usize),
    Failure(&'static str),
}

fn with_head(head: &str, body: &[u8]) -> Vec<u8> {
    [head.as_bytes(), b"Connection: close\r\n\r\n", body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    with_head(
        &format!("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: {to}\r\n"),
        b"",
    )
}

fn peers(count: usize) -> Vec<u8> {
    let mut body = format!("d5:peers{}:", count * 6).into_bytes();
    for number in 0..count {
        let [.., a, b] = number.to_be_bytes();
        body.extend_from_slice(&[93, 184, a, b, 0x1a, 0xe1]);
    }
    body.push(b'e');
    body
}

fn dictionaries(count: usize) -> Vec<u8> {
    let peer = b"d2:ip13:93.184.216.344:porti6881ee".repeat(count);
    [&b"d5:peersl"[..], &peer, b"ee"].concat()
}

/// What it is, what is sent, what comes of it.
type Case = (&'static str, Vec<u8>, Expected);

/// Answers that are none.
fn no_answers() -> Vec<Case> {
    vec![
        (
            "a web page",
            answer(b"<html>not here</html>"),
            Failure("not one of a tracker"),
        ),
        ("nothing", answer(b""), Failure("not one of a tracker")),
        ("no HTTP", b"220 ftp.test ready\r\n".to_vec(), Failure("")),
        (
            "a body that ends too early",
            with_head("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n", b"d5:peers"),
            Failure(""),
        ),
        (
            "not found",
            with_head("HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n", b"x"),
            Failure("HTTP 404"),
        ),
        (
            "a refusal with a status",
            with_head(
                "HTTP/1.1 403 No\r\nContent-Length: 26\r\n",
                b"d14:failure reason4:bad!e\n",
            ),
            Failure("bad!"),
        ),
        (
            "a refusal that controls terminals",
            answer(b"d14:failure reason9:no\x1b[2J\r\nhe"),
            Failure("no [2J  h"),
        ),
    ]
}

/// Answers that lead elsewhere or beyond a limit.
fn other_answers() -> Vec<Case> {
    vec![
        (
            "a refusal without end",
            answer(format!("d14:failure reason100000:{}e", "x".repeat(100_000)).as_bytes()),
            Failure("…"),
        ),
        (
            "a failed redirect",
            redirect("http://192.168.1.1:7777/announce"),
            Failure("not a public address"),
        ),
        (
            "a redirect to metadata",
            redirect("http://169.254.169.254/latest"),
            Failure("not a public address"),
        ),
        (
            "a redirect to another scheme",
            redirect("file:///etc/passwd"),
            Failure("scheme"),
        ),
        (
            "a redirect to itself",
            redirect("/announce"),
            Failure("redirects more than"),
        ),
        (
            "a million peers",
            answer(&peers(1_000_000)),
            Failure("longer than 512 KiB"),
        ),
        (
            "dictionaries beyond any number",
            answer(&dictionaries(14_000)),
            Failure("not one of a tracker"),
        ),
        (
            "a list of lists of lists",
            answer(&b"l".repeat(100_000)),
            Failure("not one of a tracker"),
        ),
    ]
}

/// Answers of which a part can be used.
fn odd_answers() -> Vec<Case> {
    vec![
        (
            "thirteen bytes of peers",
            answer(b"d5:peers13:\x5d\xb8\xd8\x22\0\x01\x5d\xb8\xd8\x22\0\x02\xffe"),
            Peers(2),
        ),
        (
            "a negative interval",
            answer(b"d8:intervali-1e5:peers6:\x5d\xb8\xd8\x22\0\x01e"),
            Peers(1),
        ),
        (
            "peers that cannot be",
            answer(b"d5:peers18:\0\0\0\0\0\x01\xe0\0\0\x01\0\x01\x5d\xb8\xd8\x22\0\x01e"),
            Peers(1),
        ),
        ("fifty thousand peers", answer(&peers(50_000)), Peers(MAX_BATCH)),
        (
            "dictionaries of two thousand peers",
            answer(&dictionaries(2_000)),
            Peers(MAX_BATCH),
        ),
    ]
}

#[tokio::test]
async fn every_answer_over_http_is_read_within_limits_or_refused() {
    let house = House::with_trackers();
    for (name, sent, expected) in [no_answers(), other_answers(), odd_answers()].concat() {
        let tracker = HttpTracker::answering(vec![sent]).await;
        let mut torrent = house.add(&[&tracker.url]).await;
        match expected {
            Peers(count) => assert_eq!(next(&mut torrent).await.len(), count, "{name}"),
            Failure(text) => {
                let failed = view(&torrent, |view| view.status == TrackerStatus::Failed).await;
                let message = failed.message.unwrap();
                assert!(message.contains(text), "{name}: {message}");
                assert!(
                    message.chars().count() <= 201 && !message.contains(char::is_control),
                    "{name}: {message}"
                );
            }
        }
    }
    house.close().await;
}

#[tokio::test]
async fn a_body_without_end_is_left() {
    let tracker = HttpTracker::endless(with_head("HTTP/1.1 200 OK\r\n", b"d5:peers9999999:")).await;
    let house = House::with_trackers();
    let torrent = house.add(&[&tracker.url]).await;
    let begin = Instant::now();
    let failed = view(&torrent, |view| view.status == TrackerStatus::Failed).await;
    assert!(failed.message.unwrap().contains("longer than 512 KiB"));
    assert!(begin.elapsed() < PATIENCE);
    house.close().await;
}

#[tokio::test]
async fn a_refusal_and_noise_over_udp() {
    let (socket, url) = udp_tracker().await;
    let house = House::with_trackers();
    let torrent = house.add(&[&url]).await;
    let mut buffer = [0; 2048];
    let (_, from) = timeout(PATIENCE, socket.recv_from(&mut buffer)).await.unwrap().unwrap();
    for length in [0, 1, 7, 8, 1400] {
        socket.send_to(&vec![0xff; length], from).await.unwrap();
    }
    let refused = [&[0, 0, 0, 3][..], &buffer[12..16], b"go\x1baway"].concat();
    socket.send_to(&refused, from).await.unwrap();
    let failed = view(&torrent, |view| view.status == TrackerStatus::Failed).await;
    assert_eq!(failed.message.as_deref(), Some("go away"));
    house.close().await;
}

#[tokio::test]
async fn a_tracker_over_udp_needs_a_port() {
    let house = House::with_trackers();
    let torrent = house.add(&["udp://127.0.0.1/announce"]).await;
    let failed = view(&torrent, |view| view.status == TrackerStatus::Failed).await;
    assert!(failed.message.unwrap().contains("no port"));
    house.close().await;
}
