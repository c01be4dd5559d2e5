//! A source that lies, as a service meets it: what is installed goes on, and nothing of a lie is installed.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{fs, path::Path, process::Command};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};

use super::{
    market, offer, plugin, preview, run,
    shop::{Shop, try_adopt},
    source,
};
use crate::service::plugins::Server;

const FILES: [(&str, &[u8]); 1] = [("one.json", br#"{"files": ["a.bin"]}"#)];

/// A service with a plugin of a source, and a newer version there.
fn installed(shop: &Shop, home: &Home) -> Service {
    shop.key("ann");
    shop.release("one@ann", "1.0.0", "ann", &[]);
    let service = home.serve();
    service.wait_until_ready();
    shop.adopt(&service);
    run(&service, &["install", "one", "--yes"]);
    service
}

/// Refreshes and gives what the source is then.
fn refreshed(service: &Service) -> Value {
    service.call("POST", "/api/v1/market/refresh", Some(&json!({})));
    source(service, "lies")
}

fn refused(service: &Service) -> String {
    let body = json!({"pluginId": "one@ann"});
    let answer = service
        .ask("POST", "/api/v1/market/install", Some(&body))
        .expect("it answers");
    assert_eq!(answer.status, 400, "{}", answer.body);
    answer.body["message"].as_str().expect("it says why").to_owned()
}

/// Leaves the first half of a file.
fn truncate(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
}

fn copy(from: &Path, to: &Path) {
    let _may_not_be_there = fs::remove_dir_all(to);
    assert!(
        Command::new("cp")
            .arg("-r")
            .args([from, to])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn what_is_cut_off_or_taken_back_is_not_believed_and_what_is_installed_goes_on() {
    let (home, server, shop) = (Home::new(), Server::with(&FILES), Shop::open("lies"));
    let service = installed(&shop, &home);
    let one = format!("{}one.json", server.url);
    let works = || assert_eq!(preview(&service, &one)["name"], "1.0.0");
    let before = shop.path("before");
    copy(&shop.site(), &before);
    shop.release("one@ann", "1.1.0", "ann", &[]);
    let after = shop.path("after");
    copy(&shop.site(), &after);

    // Half of every index, and of what makes one of another.
    let diffs = fs::read_dir(shop.site().join("diff")).unwrap();
    let diffs = diffs.map(|entry| entry.unwrap().path());
    diffs
        .chain([shop.site().join("index.3.json")])
        .for_each(|path| truncate(&path));
    let cut = refreshed(&service);
    assert_eq!(
        (&cut["status"], &cut["errorReason"]),
        (&json!("failing"), &json!("marketIndexInvalid")),
        "{cut}"
    );
    assert_eq!(offer(&service, "one@ann")["version"], "1.0.0");
    works();

    // A whole index and half a package.
    copy(&after, &shop.site());
    truncate(&shop.site().join("packages/one@ann-1.1.0.zip"));
    assert_eq!(refreshed(&service)["status"], "fresh");
    assert_eq!(offer(&service, "one@ann")["version"], "1.1.0");
    let told = refused(&service);
    assert!(told.contains("package"), "{told}");
    assert_eq!(plugin(&service, "one@ann")["version"], "1.0.0");
    works();

    // What was there before is put back.
    copy(&before, &shop.site());
    let rolled_back = refreshed(&service);
    assert_eq!(
        (&rolled_back["status"], &rolled_back["errorReason"]),
        (&json!("failing"), &json!("marketIndexRollback")),
        "{rolled_back}"
    );
    assert_eq!(offer(&service, "one@ann")["version"], "1.1.0");
    refused(&service);
    works();

    // The truth again.
    copy(&after, &shop.site());
    assert_eq!(refreshed(&service)["status"], "fresh");
    run(&service, &["update", "--yes"]);
    wait_until("the new version runs", || preview(&service, &one)["name"] == "1.1.0");
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn a_source_that_has_no_news_any_more_is_stale_and_what_is_installed_goes_on() {
    let (home, server, shop) = (Home::new(), Server::with(&FILES), Shop::open("lies"));
    let service = installed(&shop, &home);
    let one = format!("{}one.json", server.url);
    shop.release("one@ann", "1.1.0", "ann", &[]);
    // News that count for some seconds.
    let soon = Command::new("date")
        .args(["-u", "-d", "5 seconds", "+%Y-%m-%dT%H:%M:%SZ"])
        .output()
        .unwrap();
    let soon = String::from_utf8(soon.stdout).unwrap().trim().to_owned();
    shop.forge_timestamp(|timestamp| timestamp["expires"] = soon.into());
    refreshed(&service);
    assert_eq!(offer(&service, "one@ann")["version"], "1.1.0");
    wait_until("the news are over", || offer(&service, "one@ann")["stale"] == true);
    assert_eq!(refreshed(&service)["status"], "stale");
    let told = refused(&service);
    assert!(told.contains("stale") || told.contains("expired"), "{told}");
    let listed = run(&service, &["list"]);
    assert!(listed.contains("stale source"), "{listed}");
    assert_eq!(market(&service, &["install", "one", "--yes"]).code, Some(5));
    assert_eq!(plugin(&service, "one@ann")["version"], "1.0.0");
    assert_eq!(preview(&service, &one)["name"], "1.0.0");
    // A machine that begins now does not believe it at all.
    let other = Home::new();
    let stranger = other.serve();
    stranger.wait_until_ready();
    assert_eq!(try_adopt(&stranger, &shop.link()).status, 400);
    assert!(source(&stranger, "lies").is_null());
    shop.publish();
    assert_eq!(refreshed(&service)["status"], "fresh");
    run(&service, &["update", "--yes"]);
    wait_until("the new version runs", || preview(&service, &one)["name"] == "1.1.0");
}

#[test]
fn another_source_with_the_same_plugin_does_not_replace_it() {
    let (home, server, shop) = (Home::new(), Server::with(&FILES), Shop::open("lies"));
    let service = installed(&shop, &home);
    let squatter = Shop::open("squatter");
    squatter.key("ann");
    squatter.release("one@ann", "9.0.0", "ann", &[]);
    squatter.adopt(&service);
    // It is not even offered: who has it from one source hears of it from that one.
    assert_eq!(offer(&service, "one@ann")["source"], "lies");
    assert_eq!(run(&service, &["update"]), "there is nothing newer");
    let asked = json!({"pluginId": "one@ann", "source": "squatter"});
    let answer = service.ask("POST", "/api/v1/market/install", Some(&asked));
    let answer = answer.expect("it answers");
    assert_eq!(answer.status, 400, "{}", answer.body);
    assert!(
        answer.body["message"].as_str().unwrap().contains("lies"),
        "{}",
        answer.body
    );
    assert_eq!(preview(&service, &format!("{}one.json", server.url))["name"], "1.0.0");
    // A machine that has neither is asked which one is meant.
    let other = Home::new();
    let stranger = other.serve();
    stranger.wait_until_ready();
    shop.adopt(&stranger);
    squatter.adopt(&stranger);
    let several = market(&stranger, &["install", "one", "--yes"]);
    assert!(
        several.code == Some(32) && several.stderr.contains("lies, squatter"),
        "{several:?}"
    );
    run(&stranger, &["install", "one", "--source", "lies", "--yes"]);
    assert_eq!(plugin(&stranger, "one@ann")["version"], "1.0.0");
}

#[test]
fn a_source_that_leads_elsewhere_on_this_machine_is_not_followed() {
    let (home, shop) = (Home::new(), Shop::open("lies"));
    shop.key("ann");
    shop.release("one@ann", "1.0.0", "ann", &[]);
    let name = "timestamp.minisig";
    let leads_here = behaviour::redirect(302, &shop.url_of(name));
    let origin = Origin::start(vec![
        Resource::new(&format!("/{name}"), Content::bytes("")).with(leads_here),
    ]);
    let service = home.serve();
    service.wait_until_ready();
    let refused = try_adopt(&service, &shop.link_at(&origin.url("/")));
    assert_eq!(refused.status, 400, "{}", refused.body);
    let told = refused.body["message"].as_str().unwrap();
    assert!(told.contains("http://127.0.0.1 is not allowed"), "{told}");
    assert!(source(&service, "lies").is_null());
}
