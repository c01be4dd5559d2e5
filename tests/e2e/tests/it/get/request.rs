//! What goes out to the server: headers, cookies, credentials, bodies.

use e2e::Svc;
use support::{Origin, Request, Resource, behaviour};

use super::{small, small_origin};
use crate::place::Place;

/// The requests of a successful download of `/f.bin` with these options.
fn requests(options: &[&str]) -> Vec<Request> {
    let origin = small_origin();
    let place = Place::new();
    Svc::get(place.path())
        .args(options)
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    origin.requests()
}

#[track_caller]
fn check_header(options: &[&str], name: &str, expected: Option<&str>) {
    let requests = requests(options);
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.header(name), expected, "{:?}", request.headers);
    }
}

#[test]
fn headers_go_out_as_they_were_given() {
    check_header(
        &["--header", "X-One: 1", "--header", "X-Two: zwei"],
        "x-two",
        Some("zwei"),
    );
    check_header(&["--header", "X-Empty:"], "x-empty", Some(""));
    check_header(&["--user-agent", "Other/1"], "user-agent", Some("Other/1"));
    check_header(
        &["--referer", "https://from.test/page"],
        "referer",
        Some("https://from.test/page"),
    );
    check_header(&["--cookie", "a=1; b=2"], "cookie", Some("a=1; b=2"));
    check_header(
        &["--http-user", "me", "--http-password", "pw"],
        "authorization",
        Some("Basic bWU6cHc="),
    );
}

#[test]
fn what_nobody_asked_for_does_not_go_out() {
    for request in requests(&[]) {
        assert!(
            request
                .header("user-agent")
                .is_some_and(|agent| agent.starts_with("Svc/")),
            "{:?}",
            request.headers
        );
        assert_eq!(request.header("accept-encoding").unwrap_or("identity"), "identity");
        for name in ["cookie", "authorization", "referer"] {
            assert_eq!(request.header(name), None);
        }
    }
}

#[test]
fn headers_that_frame_the_message_stay_ours() {
    for request in requests(&["--header", "Range: bytes=5-9", "--header", "Content-Length: 5"]) {
        assert_ne!(request.range(), Some((5, Some(9))), "{:?}", request.headers);
        assert_eq!(request.header("content-length").unwrap_or("0"), "0");
    }
}

#[test]
fn a_header_cannot_smuggle_another() {
    let place = Place::new();
    let origin = small_origin();
    let run = Svc::get(place.path())
        .args(["--header", "X: 1\r\nY: 2"])
        .arg(origin.url("/f.bin"))
        .run();
    assert_eq!(run.code, Some(32), "{}", run.stderr);
    assert_eq!(origin.requests().len(), 0);
}

#[test]
fn a_password_opens_the_file_and_a_wrong_one_is_told() {
    let origin = Origin::start(vec![
        Resource::new("/f.bin", small()).with(behaviour::basic_auth("me", "pw")),
    ]);
    let get = |password: &str| {
        let place = Place::new();
        let options = ["--http-user", "me", "--http-password", password];
        let run = Svc::get(place.path()).args(options).arg(origin.url("/f.bin")).run();
        if run.code == Some(0) {
            place.assert_file("f.bin", &small());
        }
        run
    };
    get("pw").assert_success();
    let refused = get("hunter2");
    refused.assert_failure(24, "unauthorized");
    assert!(!refused.stderr.contains("hunter2") && !refused.stdout.concat().contains("hunter2"));
}

#[test]
fn credentials_in_the_url_are_used_and_never_shown() {
    let origin = Origin::start(vec![
        Resource::new("/f.bin", small()).with(behaviour::basic_auth("me", "pw-secret")),
    ]);
    let place = Place::new();
    let url = origin.url("/f.bin").replace("http://", "http://me:pw-secret@");
    let run = Svc::get(place.path()).arg(url).run();
    run.assert_success();
    assert!(!run.stdout.concat().contains("pw-secret"), "{:?}", run.stdout);
}

#[test]
fn nothing_secret_follows_a_redirect_to_another_origin() {
    let other = Origin::start(vec![Resource::new("/f.bin", small())]);
    let start = Resource::new("/start", small()).with(behaviour::redirect(302, &other.url("/f.bin")));
    let origin = Origin::start(vec![start]);
    let place = Place::new();
    let secrets = [
        "--http-user",
        "me",
        "--http-password",
        "pw",
        "--cookie",
        "session=1",
        "--header",
        "Proxy-Authorization: Basic x",
        "--header",
        "X-Harmless: yes",
    ];
    Svc::get(place.path())
        .args(secrets)
        .arg(origin.url("/start"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &small());
    assert_eq!(origin.requests()[0].header("cookie"), Some("session=1"));
    for request in other.requests() {
        for name in ["authorization", "cookie", "proxy-authorization"] {
            assert_eq!(request.header(name), None, "{:?}", request.headers);
        }
    }
}

#[test]
fn cookies_that_the_server_sets_come_back() {
    let origin = Origin::start(vec![Resource::new("/f.bin", small()).with(behaviour::cookie_gate)]);
    let place = Place::new();
    Svc::get(place.path())
        .args(["--cookie", "own=1"])
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &small());
    let last = origin.requests().pop().unwrap();
    let cookies = last.header("cookie").unwrap();
    assert!(
        cookies.contains("pass=granted") && cookies.contains("own=1"),
        "{cookies}"
    );
}

#[test]
fn a_form_is_posted_once_and_its_answer_saved() {
    let origin = Origin::start(vec![Resource::new("/export", small()).method("POST")]);
    let place = Place::new();
    let options = [
        "--method",
        "POST",
        "--data",
        "kind=all&year=2026",
        "--out",
        "export.bin",
    ];
    Svc::get(place.path())
        .args(options)
        .arg(origin.url("/export"))
        .run()
        .assert_success();
    place.assert_file("export.bin", &small());
    let requests = origin.requests();
    let [request] = requests.as_slice() else {
        panic!("posted {} times", requests.len())
    };
    assert_eq!(
        (request.method.as_str(), request.body.as_slice()),
        ("POST", &b"kind=all&year=2026"[..])
    );
    assert_eq!(
        request.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(request.header("range"), None);
}
