//! Reaching a service, or not.

use std::{net::TcpListener, time::Duration};

use e2e::{Home, Svc};
use support::{Certificate, Content, Origin, Resource};

use super::{Desk, assert_ended, shell};

#[test]
fn a_service_that_answers_is_named_with_its_version() {
    let desk = Desk::new();
    assert_ended(&desk.run(&["ping"]), 0, &desk.service.url());
    assert_eq!(desk.json(&["ping"])["version"], desk.json(&["info"])["version"]);
    assert_ended(&desk.run(&["info"]), 0, "Saves in");
}

#[test]
fn nobody_there_and_nobody_answering_are_told_apart() {
    let home = Home::new();
    let run = shell(&home).args(["ping", "--url", "http://127.0.0.1:1"]).run();
    assert_ended(&run, 5, "cannot reach the service at http://127.0.0.1:1");
    assert!(run.stderr.contains("svc serve"), "{run:?}");
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    for command in ["ping", "list"] {
        let svc = shell(&home).args([command, "--url", &url, "--timeout", "0.3", "--token", "some-key-1"]);
        assert_ended(
            &svc.deadline(Duration::from_secs(20)).run(),
            2,
            "did not answer within 0.3s",
        );
    }
}

#[test]
fn the_systems_proxy_is_never_asked() {
    let desk = Desk::new();
    let svc = desk
        .svc(&["list"])
        .env("http_proxy", "http://127.0.0.1:1")
        .env("ALL_PROXY", "http://127.0.0.1:1");
    assert_ended(&svc.run(), 0, "ID");
}

#[test]
fn tls_is_spoken_with_those_whom_an_authority_knows() {
    let pong = r#"{"success":true,"app":"Svc","version":"7.7.7","message":"pong"}"#;
    let home = Home::new();
    let authority = home.path().join("authority.pem");
    for (certificate, code, told) in [
        (Certificate::Trusted, 0, "7.7.7"),
        (Certificate::WrongName, 5, "cannot speak TLS"),
        (Certificate::SelfSigned, 5, "cannot speak TLS"),
        (Certificate::Expired, 5, "cannot speak TLS"),
    ] {
        let origin = Origin::start_tls(vec![Resource::new("/ping", Content::bytes(pong))], certificate);
        std::fs::write(&authority, origin.authority_pem().unwrap()).unwrap();
        let url = origin.url("");
        let ping = |options: &[&str]| {
            Svc::new()
                .env("HOME", home.path())
                .args(["ping", "--url", &url])
                .args(options)
                .run()
        };
        assert_ended(&ping(&["--ca-certificate", authority.to_str().unwrap()]), code, told);
        assert_ended(&ping(&[]), 5, "cannot speak TLS");
    }
    let run = Svc::new()
        .env("HOME", home.path())
        .args(["ping", "--ca-certificate", "/dev/null"])
        .run();
    assert_ended(&run, 32, "holds no certificate");
}

#[test]
fn a_wrong_key_is_refused_and_not_repeated() {
    let desk = Desk::new();
    let run = desk.run(&["list", "--token", "wrong-key-1"]);
    assert_ended(&run, 24, "does not accept the access key");
    assert!(!run.stderr.contains("wrong-key-1"));
}
