//! What a run prints and how it ends, for people and for scripts.

use e2e::Svc;
use support::{Certificate, Origin, Resource, behaviour};

use super::{small, small_origin};
use crate::place::Place;

#[test]
fn json_lines_tell_beginning_and_end() {
    let origin = small_origin();
    let place = Place::new();
    let url = origin.url("/f.bin");
    let run = Svc::get(place.path()).arg(&url).run();
    run.assert_success();
    assert_eq!(
        run.events().len(),
        run.stdout.len(),
        "every line is JSON: {:?}",
        run.stdout
    );
    assert_eq!(run.event("started").unwrap()["url"], url);
    let finished = run.event("finished").unwrap();
    assert_eq!(finished["path"], place.path().join("f.bin").display().to_string());
    assert_eq!(finished["sizeBytes"], 300_000);
    assert_eq!(finished["receivedBytes"], 300_000);
}

#[test]
fn quiet_is_quiet_until_something_fails() {
    let origin = small_origin();
    let place = Place::new();
    let quiet = |path: &str| {
        Svc::new()
            .args(["get", "--quiet", "--dir"])
            .arg(place.path())
            .arg(origin.url(path))
            .run()
    };
    let run = quiet("/f.bin");
    run.assert_success();
    assert_eq!((run.stdout.as_slice(), run.stderr.as_str()), (&[][..], ""));
    let run = quiet("/missing");
    assert_eq!(run.code, Some(3));
    assert!(run.stdout.is_empty() && run.stderr.contains("404"), "{:?}", run.stderr);
}

#[test]
fn people_are_told_where_the_file_is() {
    let origin = small_origin();
    let place = Place::new();
    let run = Svc::new()
        .args(["get", "--dir"])
        .arg(place.path())
        .arg(origin.url("/f.bin"))
        .run();
    run.assert_success();
    assert!(format!("{}{}", run.stdout.concat(), run.stderr).contains("f.bin"));
}

#[test]
fn every_kind_of_failure_has_its_exit_code() {
    let origin = Origin::start(vec![
        Resource::new("/401", small()).with(behaviour::status(401)),
        Resource::new("/403", small()).with(behaviour::status(403)),
        Resource::new("/410", small()).with(behaviour::status(410)),
        Resource::new("/500", small()).with(behaviour::status(500)),
        Resource::new("/loop", small()).with(behaviour::redirect(302, "/loop")),
        Resource::new("/file", small()).with(behaviour::redirect(302, "file:///etc/passwd")),
        Resource::new("/stall", small()).with(behaviour::silent(support::End::Stall)),
    ]);
    let check = |url: &str, code: i32, kind: &str| {
        let place = Place::new();
        let options = ["--retries", "1", "--retry-wait", "0.02", "--timeout", "0.5"];
        let run = Svc::get(place.path()).args(options).arg(url).run();
        assert_eq!(
            (run.code, run.failure().as_deref()),
            (Some(code), Some(kind)),
            "{url}: {}",
            run.stderr
        );
        assert_eq!(place.finished_names(), Vec::<String>::new());
    };
    check(&origin.url("/401"), 24, "unauthorized");
    check(&origin.url("/403"), 24, "forbidden");
    check(&origin.url("/404"), 3, "not-found");
    check(&origin.url("/410"), 3, "gone");
    check(&origin.url("/500"), 5, "server-error");
    check(&origin.url("/loop"), 23, "too-many-redirects");
    check(&origin.url("/file"), 23, "forbidden-redirect");
    check(&origin.url("/stall"), 2, "timeout");
    check("http://127.0.0.1:9/f", 5, "connect");
    check("http://no-such-host.invalid/f", 5, "resolve");
    let secure = Origin::start_tls(vec![Resource::new("/f", small())], Certificate::SelfSigned);
    check(&secure.url("/f"), 5, "tls");
}

#[test]
fn wrong_usage_ends_with_32_before_anything_is_asked() {
    let origin = small_origin();
    let place = Place::new();
    let url = origin.url("/f.bin");
    for arguments in [
        &["not a url"][..],
        &["gopher://127.0.0.1/f"],
        &["--checksum", "md5=zz", &url],
        &["--segments", "many", &url],
        &["--limit", "fast", &url],
        &["--proxy", "nonsense", &url],
        &["--no-such-option", &url],
        &[],
    ] {
        let run = Svc::get(place.path()).args(arguments).run();
        assert_eq!(run.code, Some(32), "{arguments:?}: {}{:?}", run.stderr, run.stdout);
    }
    assert_eq!(origin.requests().len(), 0);
    assert_eq!(place.names(), Vec::<String>::new());
}
