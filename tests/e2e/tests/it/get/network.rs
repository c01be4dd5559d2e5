//! Mirrors, proxies, TLS, limits and connections.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use e2e::Svc;
use support::{Certificate, Content, End, Origin, Proxy, Resource, Version, behaviour};

use super::{small, small_origin};
use crate::place::Place;

const MIB: u64 = 1 << 20;

/// A name that only proxies of the tests know.
const HOST: &str = "files.test";

fn large() -> Content {
    Content::seeded(51, 8 * MIB + 5)
}

fn mirror(content: Content, number: usize) -> Origin {
    let version = move |_: &support::Visit| Version::numbered(content.clone(), number);
    Origin::start(vec![
        Resource::changing("/f.bin", version).with(behaviour::paced(4 * MIB)),
    ])
}

#[test]
fn mirrors_share_the_work_whatever_their_etags() {
    let (one, two) = (mirror(large(), 0), mirror(large(), 1));
    let place = Place::new();
    let options = ["--segments", "4", "--mirror", &two.url("/f.bin")];
    Svc::get(place.path())
        .args(options)
        .arg(one.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &large());
    assert!(
        one.bytes_sent() > 0 && two.bytes_sent() > 0,
        "{} and {}",
        one.bytes_sent(),
        two.bytes_sent()
    );
}

#[test]
fn a_mirror_steps_in_for_a_dead_origin() {
    let alive = mirror(large(), 0);
    let dead = Origin::start(vec![Resource::new("/f.bin", large()).with(behaviour::status(404))]);
    for first in [dead.url("/f.bin"), "http://127.0.0.1:9/f.bin".to_owned()] {
        let place = Place::new();
        let options = [
            "--retries",
            "2",
            "--retry-wait",
            "0.05",
            "--mirror",
            &alive.url("/f.bin"),
        ];
        Svc::get(place.path()).args(options).arg(first).run().assert_success();
        place.assert_file("f.bin", &large());
    }
}

#[test]
fn a_mirror_that_dies_midway_is_replaced_by_the_other() {
    let dying = Origin::start(vec![
        Resource::new("/f.bin", large())
            .with(behaviour::cut(MIB, End::Reset))
            .with(behaviour::when(|x| x.visit.served >= 2 * MIB, behaviour::status(404))),
    ]);
    let alive = mirror(large(), 0);
    let place = Place::new();
    let options = ["--retry-wait", "0.05", "--mirror", &alive.url("/f.bin")];
    Svc::get(place.path())
        .args(options)
        .arg(dying.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &large());
}

#[test]
fn a_mirror_of_another_size_is_not_mixed_in() {
    let one = mirror(large(), 0);
    let two = mirror(Content::seeded(52, 8 * MIB + 6), 1);
    let place = Place::new();
    let options = ["--segments", "4", "--mirror", &two.url("/f.bin")];
    Svc::get(place.path())
        .args(options)
        .arg(one.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &large());
}

#[test]
fn a_mirror_with_other_bytes_never_ends_in_a_mixed_file() {
    let one = mirror(large(), 0);
    let two = mirror(Content::seeded(52, large().len()), 1);
    let place = Place::new();
    let options = [
        "--segments",
        "4",
        "--checksum",
        &checksum(&place),
        "--mirror",
        &two.url("/f.bin"),
    ];
    let run = Svc::get(place.path()).args(options).arg(one.url("/f.bin")).run();
    if run.code == Some(0) {
        place.assert_file("f.bin", &large());
    } else {
        run.assert_failure(33, "checksum-mismatch");
        assert_eq!(place.finished_names(), Vec::<String>::new());
    }
}

/// The checksum of [`large`], by a program that is not ours.
fn checksum(place: &Place) -> String {
    let path = place.aside("a/original");
    std::fs::write(&path, large().to_vec()).expect("a temporary directory is writable");
    let output = Command::new("sha256sum")
        .arg(&path)
        .output()
        .expect("sha256sum is part of every system");
    std::fs::remove_file(&path).expect("it was just written");
    let hex = String::from_utf8(output.stdout).expect("hexadecimal is ASCII");
    format!("sha-256={}", &hex[..64])
}

#[test]
fn a_checksum_is_checked() {
    let origin = Origin::start(vec![Resource::new("/f.bin", large())]);
    let place = Place::new();
    Svc::get(place.path())
        .args(["--checksum", &checksum(&place)])
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &large());

    let place = Place::new();
    let wrong = "md5=00000000000000000000000000000000";
    let run = Svc::get(place.path())
        .args(["--checksum", wrong])
        .arg(origin.url("/f.bin"))
        .run();
    run.assert_failure(33, "checksum-mismatch");
    assert_eq!(place.finished_names(), Vec::<String>::new());
}

#[test]
fn an_http_proxy_is_asked_for_plain_urls() {
    let origin = small_origin();
    let proxy = Proxy::http(&[(HOST, origin.port())], Some(("me", "pw")));
    let place = Place::new();
    let through = format!("http://me:pw@127.0.0.1:{}", proxy.port());
    Svc::get(place.path())
        .args(["--proxy", &through])
        .arg(format!("http://{HOST}/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &small());
    assert!(
        proxy
            .requests()
            .iter()
            .any(|request| request.is_served && request.target.contains(HOST))
    );
    assert!(
        origin
            .requests()
            .iter()
            .all(|request| request.header("proxy-authorization").is_none())
    );
}

#[test]
fn an_http_proxy_tunnels_tls() {
    let origin = Origin::start_tls(vec![Resource::new("/f.bin", small())], Certificate::Trusted);
    let proxy = Proxy::http(&[("localhost", origin.port())], None);
    let place = Place::new();
    let ca = place.aside("ca.pem");
    std::fs::write(&ca, origin.authority_pem().unwrap()).unwrap();
    let through = format!("http://127.0.0.1:{}", proxy.port());
    let svc = Svc::get(place.path())
        .arg("--ca-certificate")
        .arg(&ca)
        .args(["--proxy", &through]);
    svc.arg("https://localhost/f.bin").run().assert_success();
    place.assert_file("f.bin", &small());
    assert_eq!(proxy.requests()[0].method, "CONNECT");
    assert_eq!(proxy.requests()[0].target, "localhost:443");
}

#[test]
fn a_servers_own_certificate_is_trusted_if_the_user_names_exactly_it() {
    let serve = || Origin::start_tls(vec![Resource::new("/f.bin", small())], Certificate::OwnAuthority);
    let (origin, other) = (serve(), serve());
    let place = Place::new();
    let ca = place.aside("own.pem");
    std::fs::write(&ca, origin.authority_pem().unwrap()).unwrap();
    let svc = || Svc::get(place.path()).arg("--ca-certificate").arg(&ca);
    svc().arg(origin.url("/f.bin")).run().assert_success();
    place.assert_file("f.bin", &small());
    let run = svc().arg(other.url("/other.bin")).run();
    assert_eq!(run.failure().as_deref(), Some("tls"), "{run:?}");
}

#[test]
fn a_socks5_proxy_resolves_the_name() {
    let origin = small_origin();
    for credentials in [None, Some(("me", "pw"))] {
        let proxy = Proxy::socks5(&[(HOST, origin.port())], credentials);
        let user = if credentials.is_some() { "me:pw@" } else { "" };
        let place = Place::new();
        let through = format!("socks5://{user}127.0.0.1:{}", proxy.port());
        Svc::get(place.path())
            .args(["--proxy", &through])
            .arg(format!("http://{HOST}/f.bin"))
            .run()
            .assert_success();
        place.assert_file("f.bin", &small());
        assert_eq!(proxy.requests()[0].target, format!("{HOST}:80"));
    }
}

#[test]
fn a_socks4_proxy_resolves_the_name_and_has_no_logins() {
    let origin = small_origin();
    let proxy = Proxy::socks4(&[(HOST, origin.port())]);
    let place = Place::new();
    let get = |login: &str| {
        let through = format!("socks4://{login}127.0.0.1:{}", proxy.port());
        let svc = Svc::get(place.path()).args(["--retries", "0", "--proxy", &through]);
        svc.arg(format!("http://{HOST}/f.bin")).run()
    };
    get("").assert_success();
    place.assert_file("f.bin", &small());
    assert_eq!(proxy.requests()[0].target, format!("{HOST}:80"));
    let refused = get("me:secret@");
    assert!(
        refused.stderr.contains("use socks5") && !refused.stderr.contains("secret"),
        "{}",
        refused.stderr
    );
    assert_eq!(proxy.requests().len(), 1);
}

#[test]
fn a_proxy_that_refuses_is_named() {
    let origin = small_origin();
    let proxy = Proxy::http(&[], Some(("me", "right")));
    let place = Place::new();
    let through = format!("http://me:wrong@127.0.0.1:{}", proxy.port());
    let run = Svc::get(place.path())
        .args(["--retries", "0", "--proxy", &through])
        .arg(origin.url("/f.bin"))
        .run();
    let kind = run.failure().unwrap();
    assert!(kind == "unauthorized" || kind == "proxy", "{kind}");
    assert_eq!(origin.requests().len(), 0, "it went around the proxy");
    assert!(!run.stdout.concat().contains("wrong") && !run.stderr.contains("wrong"));
}

#[test]
fn a_limit_is_kept() {
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::seeded(1, 3 * MIB))]);
    let place = Place::new();
    let started = Instant::now();
    Svc::get(place.path())
        .args(["--limit", "1M", "--segments", "3"])
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    assert!(
        started.elapsed() >= Duration::from_millis(2400),
        "3 MiB at 1 MiB/s took {:?}",
        started.elapsed()
    );
}

#[test]
fn connections_stay_below_their_number() {
    for (segments, most) in [("1", "16"), ("8", "3")] {
        let origin = mirror(large(), 0);
        let place = Place::new();
        let options = ["--segments", segments, "--max-connections", most, "--min-split", "64K"];
        Svc::get(place.path())
            .args(options)
            .arg(origin.url("/f.bin"))
            .run()
            .assert_success();
        place.assert_file("f.bin", &large());
        let allowed = segments.parse::<usize>().unwrap().min(most.parse().unwrap());
        assert!(
            origin.max_connections_seen() <= allowed,
            "{} of {allowed}",
            origin.max_connections_seen()
        );
    }
}

#[test]
fn segments_run_at_the_same_time() {
    let origin = mirror(large(), 0);
    let place = Place::new();
    Svc::get(place.path())
        .args(["--segments", "4"])
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("f.bin", &large());
    assert!(
        origin.max_connections_seen() >= 4,
        "only {}",
        origin.max_connections_seen()
    );
    let again = origin.bytes_sent() - large().len();
    assert!(
        again <= 64 * 1024 * 4,
        "{again} bytes were sent twice although nothing failed"
    );
}
