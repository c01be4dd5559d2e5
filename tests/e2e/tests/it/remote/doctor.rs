//! `svc doctor`, with and without a service.

use e2e::{Home, Svc, service::KEY};
use serde_json::Value;
use support::{Content, Origin, Resource};

use super::{Desk, assert_ended, shell};

fn findings(svc: Svc) -> (Option<i32>, Vec<Value>) {
    let run = svc.args(["doctor", "--json"]).run();
    let text = run.stdout.join("\n");
    assert!(!text.contains(KEY), "{text}");
    let report: Value = serde_json::from_str(&text).expect("--json prints JSON");
    (
        run.code,
        report["findings"].as_array().expect("findings are a list").clone(),
    )
}

fn level(findings: &[Value], check: &str) -> String {
    let found = findings.iter().find(|finding| finding["check"] == check);
    let found = found.unwrap_or_else(|| panic!("{check} was not looked at: {findings:#?}"));
    found["level"].as_str().expect("a level is a text").to_owned()
}

#[test]
fn with_a_running_service_all_is_well() {
    let desk = Desk::new();
    let (code, findings) = findings(desk.svc(&[]));
    assert_eq!(code, Some(0), "{findings:#?}");
    for check in [
        "service",
        "access",
        "daemon",
        "agent's lock",
        "daemon's lock",
        "save directory",
        "service's clock",
    ] {
        assert_eq!(level(&findings, check), "ok", "{findings:#?}");
    }
    // The key of these tests is short.
    assert_eq!(level(&findings, "access key"), "warn");
}

#[test]
fn before_the_first_start_nothing_is_broken() {
    let home = Home::new();
    let svc = shell(&home)
        .env("SVC_URL", "http://127.0.0.1:1")
        .env("SVC_SAVE_DIR", home.downloads());
    let (code, findings) = findings(svc);
    assert_eq!(code, Some(0), "{findings:#?}");
    assert_eq!(level(&findings, "data directory"), "warn");
    assert_eq!(level(&findings, "service"), "warn");
    assert_eq!(level(&findings, "save directory"), "ok");
    assert!(!home.data().exists());
}

#[test]
fn another_program_at_the_address_is_a_failure() {
    let origin = Origin::start(vec![Resource::new("/ping", Content::bytes("pong"))]);
    let home = Home::new();
    let (code, findings) = findings(shell(&home).env("SVC_URL", origin.url("")));
    assert_eq!(code, Some(1));
    assert_eq!(level(&findings, "service"), "fail");
}

#[test]
fn variables_that_cannot_be_used_are_named() {
    let home = Home::new();
    let svc = shell(&home)
        .env("SVC_BIND", "everywhere")
        .env("SVC_URL", "http://127.0.0.1:1");
    assert_ended(
        &svc.env("SVC_TOKEN", "short").arg("doctor").run(),
        1,
        "SVC_BIND cannot be used",
    );
}
