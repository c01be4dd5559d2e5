//! HTTP Digest against an origin and a proxy in Python, which curl can log in to as well.

use std::{fs, process::Command};

use e2e::{Running, Svc, python};
use serde_json::{Value, json};

use crate::place::Place;

const PASSWORD: &str = "open sesame";

/// The origin, its port, and what it saw.
struct Origin {
    running: Running,
    port: u16,
}

impl Origin {
    fn start(setting: &Value) -> Self {
        let mut running = python::client("clients/digest_origin.py")
            .arg(setting.to_string())
            .spawn();
        let line = running.wait_for_line(|line| line.parse::<u16>().is_ok());
        let port = line.expect("it says its port").parse().expect("a port is a number");
        Self { running, port }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Every request so far, in order.
    fn seen(&mut self) -> Vec<Value> {
        let mark = format!("/mark-{}", std::process::id());
        let asked = Command::new("/usr/bin/curl")
            .args(["-s", "-o", "/dev/null", &self.url(&mark)])
            .status();
        assert!(asked.expect("curl is there").success());
        let mut seen = Vec::new();
        while let Some(request) = self.running.wait_for(|_| true) {
            if request["path"] == mark {
                break;
            }
            if request.is_object() {
                seen.push(request);
            }
        }
        seen
    }
}

fn body() -> Vec<u8> {
    (0..3_000_001_u64)
        .map(|n| u8::try_from(n * 7 % 251).expect("it is below 251"))
        .collect()
}

fn get(place: &Place, url: &str) -> Svc {
    Svc::get(place.path())
        .args([
            "--retries",
            "0",
            "--segments",
            "4",
            "--http-user",
            "me",
            "-o",
            "f.bin",
            "-k",
            "256K",
        ])
        .env("SVC_HTTP_PASSWORD", PASSWORD)
        .arg(url)
}

fn assert_arrived(place: &Place) {
    assert!(fs::read(place.path().join("f.bin")).expect("the file is there") == body());
}

/// Every algorithm and variant, with connections side by side.
#[test]
fn a_challenge_of_any_kind_is_answered() {
    for setting in [
        json!({"algorithm": "MD5"}),
        json!({"algorithm": "MD5", "qop": ""}),
        json!({"algorithm": "MD5-sess"}),
        json!({"algorithm": "SHA-256"}),
        json!({"algorithm": "SHA-256-sess", "next_nonce": true}),
        json!({"algorithm": "SHA-256", "qop": "auth-int, auth", "userhash": true}),
        json!({"algorithm": "SHA-256", "also_basic": true, "next_nonce": true}),
        json!({"algorithm": "MD5", "stale_after": 2}),
    ] {
        let mut origin = Origin::start(&setting);
        let place = Place::new();
        get(&place, &origin.url("/f.bin?a=1")).run().assert_success();
        assert_arrived(&place);
        let seen = origin.seen();
        let answered = seen.iter().filter(|request| request["answer"] == 200).count();
        assert!(answered >= 2, "{setting}: only {answered} requests were let in");
        if setting["stale_after"].is_number() {
            assert!(
                seen.iter().any(|request| request["stale"] == true),
                "{setting}: nothing was stale"
            );
        } else {
            let refused = seen.iter().filter(|request| request["answer"] == 401).count();
            assert!(refused <= 5, "{setting}: {refused} requests were refused");
        }
    }
}

/// The origin is a fair one: curl logs in to it as well.
#[test]
fn curl_logs_in_to_the_origin_of_these_tests() {
    for algorithm in ["MD5", "MD5-sess", "SHA-256"] {
        let origin = Origin::start(&json!({"algorithm": algorithm}));
        let place = Place::new();
        let file = place.path().join("f.bin");
        let run = Command::new("/usr/bin/curl")
            .args(["-sf", "--digest", "-u", &format!("me:{PASSWORD}"), "-o"])
            .arg(&file)
            .arg(origin.url("/f.bin"))
            .status();
        assert!(run.expect("curl is there").success(), "{algorithm}");
        assert_arrived(&place);
    }
}

#[test]
fn a_wrong_password_fails_after_one_answer() {
    let mut origin = Origin::start(&json!({"password": "another"}));
    let place = Place::new();
    let run = get(&place, &origin.url("/f.bin")).run();
    assert_ne!(run.code, Some(0));
    assert_eq!(run.failure().as_deref(), Some("unauthorized"), "{}", run.stderr);
    let seen = origin.seen();
    let digests = seen.iter().filter(|request| {
        request["given"]
            .as_str()
            .is_some_and(|given| given.starts_with("Digest"))
    });
    assert_eq!(digests.count(), 1, "{seen:?}");
    assert!(!run.stderr.contains(PASSWORD) && !run.stdout.concat().contains(PASSWORD));
}

/// The place that a redirect leads to asks for Digest, too, and must not get an answer.
#[test]
fn another_origins_challenge_is_not_answered() {
    let mut other = Origin::start(&json!({}));
    let mut first = Origin::start(&json!({"redirect": other.url("/f.bin")}));
    let place = Place::new();
    let run = get(&place, &first.url("/elsewhere")).run();
    assert_ne!(run.code, Some(0));
    for request in other.seen() {
        assert_eq!(request["given"], "", "{request}");
    }
    assert_eq!(first.seen().len(), 1);
}

#[test]
fn a_proxy_that_asks_for_digest_gets_an_answer() {
    let origin = support::Origin::start(vec![support::Resource::new("/f.bin", support::Content::bytes(body()))]);
    for setting in [
        json!({"proxy": true, "algorithm": "MD5"}),
        json!({"proxy": true, "algorithm": "SHA-256", "stale_after": 1}),
    ] {
        let mut proxy = Origin::start(&setting);
        let place = Place::new();
        let through = format!("http://me:open%20sesame@127.0.0.1:{}", proxy.port);
        Svc::get(place.path())
            .args([
                "--retries",
                "0",
                "--segments",
                "2",
                "-k",
                "256K",
                "--proxy",
                &through,
                "-o",
                "f.bin",
            ])
            .arg(origin.url("/f.bin"))
            .run()
            .assert_success();
        assert_arrived(&place);
        assert!(proxy.seen().iter().any(|request| request["answer"] == 200));
    }
    for request in origin.requests() {
        assert_eq!(request.header("proxy-authorization"), None);
    }
}
