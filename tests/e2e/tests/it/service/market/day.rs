//! A source's life as its maintainer and its users live it.

use e2e::{
    Home,
    service::{Service, wait_until},
};
use serde_json::json;

use super::{market, offer, plugin, preview, run, shop::Shop, source};
use crate::service::{guest, plugins::Server};

/// What both plugins list.
const FILES: [(&str, &[u8]); 4] = [
    ("one.json", br#"{"files": ["a.bin"]}"#),
    ("two.json", br#"{"files": ["b.bin"]}"#),
    ("a.bin", &[1; 1000]),
    ("b.bin", &[2; 10]),
];

const REFRESH: &str = "/api/v1/market/refresh";
const INSTALL: &str = "/api/v1/market/install";

#[test]
fn plugins_of_two_authors_are_published_adopted_updated_and_revoked_and_keys_change() {
    let (home, server, shop) = (Home::new(), Server::with(&FILES), Shop::open("tests"));
    for author in ["ann", "bob"] {
        shop.key(author);
    }
    shop.release("one@ann", "1.0.0", "ann", &[]);
    shop.release("two@bob", "1.0.0", "bob", &[]);
    let checked = shop.market("verify SITE");
    assert!(
        checked.contains("2 plugins, 2 packages, all as they should be"),
        "{checked}"
    );

    let service = home.serve();
    service.wait_until_ready();
    let (one, two) = (format!("{}one.json", server.url), format!("{}two.json", server.url));
    adopt(&service, &shop);
    install(&service, &one, &two);
    let first_key = signer(&service);
    update(&service, &shop, &one);
    revoke(&service, &shop, &two);
    change_keys_of_the_index_and_of_an_author(&shop);
    lose_a_root_key(&shop);
    run(&service, &["sources", "refresh"]);
    assert_eq!(source(&service, "tests")["status"], "fresh");
    meet_the_new_author(&service, &one);
    wait_until("the newest version runs", || preview(&service, &one)["name"] == "1.2.0");
    let second_key = signer(&service);
    assert_ne!(first_key, second_key);

    // All of that is known after a restart, too, also to somebody who comes now.
    assert_eq!(service.terminate().code, Some(0));
    let service = home.serve();
    service.wait_until_ready();
    wait_until("the plugin runs", || preview(&service, &one)["name"] == "1.2.0");
    assert_eq!(plugin(&service, "two@bob")["loadStatus"], "Revoked");
    let other = Home::new();
    let stranger = other.serve();
    stranger.wait_until_ready();
    shop.adopt(&stranger);
    run(&stranger, &["install", "one", "--yes"]);
    assert_eq!(plugin(&stranger, "one@ann")["signedBy"], second_key);
}

/// Whose key the plugin `one` is signed with.
fn signer(service: &Service) -> serde_json::Value {
    plugin(service, "one@ann")["signedBy"].clone()
}

fn adopt(service: &Service, shop: &Shop) {
    // Nobody can be asked here: the fingerprint is shown and has to be given.
    let shown = market(service, &["sources", "add", &shop.link()]);
    assert_eq!(shown.code, Some(32), "{shown:?}");
    let fingerprint = shown
        .stderr
        .split("Fingerprint of its key: ")
        .nth(1)
        .expect("it is shown");
    let fingerprint = fingerprint.lines().next().expect("it is a line");
    let wrong = fingerprint.replace(fingerprint.chars().next().expect("it is not empty"), "0");
    assert_ne!(
        market(
            service,
            &["sources", "add", &shop.link(), "--fingerprint", &format!("{wrong}0")]
        )
        .code,
        Some(0)
    );
    let added = run(service, &["sources", "add", &shop.link(), "--fingerprint", fingerprint]);
    assert_eq!(added, "added tests: Tests, 2 plugins");
    let found = run(service, &["search", "index", "ann"]);
    assert!(found.contains("one@ann") && !found.contains("two@bob"), "{found}");
}

fn install(service: &Service, one: &str, two: &str) {
    // What may be done is agreed to before anything is installed.
    let refused = market(service, &["install", "one"]);
    assert_eq!(refused.code, Some(32), "{refused:?}");
    assert!(
        refused.stderr.contains("may contact the host of the link"),
        "{refused:?}"
    );
    assert!(plugin(service, "one@ann").is_null());
    run(service, &["install", "one", "two", "--yes"]);
    assert_eq!(plugin(service, "one@ann")["source"], "tests");
    assert_eq!(preview(service, one)["name"], "1.0.0");
    assert_eq!(preview(service, two)["items"][0]["name"], "b.bin");
}

fn update(service: &Service, shop: &Shop, one: &str) {
    // A version that asks for more waits, and the one before goes on.
    shop.release("one@ann", "1.1.0", "ann", &["https://more.test"]);
    service.call("POST", REFRESH, Some(&json!({})));
    assert_eq!(offer(service, "one@ann")["updateAvailable"], true);
    let waiting = service.call(
        "POST",
        INSTALL,
        Some(&json!({"pluginId": "one@ann", "version": "1.1.0"})),
    );
    let pending = plugin(service, "one@ann")["pending"].clone();
    assert_eq!(pending["added"], json!(["host https://more.test"]));
    assert_eq!(waiting["pendingConsent"], pending["digest"]);
    assert_eq!(preview(service, one)["name"], "1.0.0");
    let agreed = json!({"enabled": true, "consent": pending["digest"]});
    assert_eq!(guest::switch(service, "one@ann", &agreed).status, 200);
    wait_until("the new version runs", || preview(service, one)["name"] == "1.1.0");
    run(service, &["rollback", "one"]);
    wait_until("the old version runs", || preview(service, one)["name"] == "1.0.0");
    // Who went back is not taken forward again by the way.
    let kept = run(service, &["update", "--yes"]);
    assert!(kept.contains("one@ann is pinned"), "{kept}");
    run(service, &["update", "one", "--yes"]);
    wait_until("the new version runs again", || {
        preview(service, one)["name"] == "1.1.0"
    });
}

fn revoke(service: &Service, shop: &Shop, two: &str) {
    // One refresh after it was revoked, a malicious plugin does not run.
    shop.market("revoke SITE two@bob --level malicious --reason cookies --key KEYS/revocations.key");
    shop.publish();
    run(service, &["sources", "refresh", "tests"]);
    let revoked = plugin(service, "two@bob");
    assert_eq!(
        (
            &revoked["loadStatus"],
            &revoked["enabled"],
            &revoked["revoked"]["reason"]
        ),
        (&json!("Revoked"), &json!(false), &json!("cookies"))
    );
    assert_eq!(preview(service, two)["items"], json!([]));
    let listed = run(service, &["list"]);
    assert!(listed.contains("malicious: cookies"), "{listed}");
    let again = service
        .ask("POST", INSTALL, Some(&json!({"pluginId": "two@bob"})))
        .expect("it answers");
    assert_eq!(again.status, 400, "{}", again.body);
}

fn change_keys_of_the_index_and_of_an_author(shop: &Shop) {
    // Another key of the index.
    let old = shop.public_key("index");
    shop.key("index-2");
    shop.market(&format!(
        "rotate SITE index --add KEYS/index-2.key --remove {old} --root-key KEYS/root-1.key --root-key KEYS/root-3.key"
    ));
    std::fs::rename(shop.path("keys/index-2.key"), shop.path("keys/index.key")).expect("it is there");

    // Another key of an author, which the old one hands over to.
    shop.key("ann-2");
    let new = shop.public_key("ann-2");
    shop.author(&format!(
        "handover one@ann --key KEYS/ann.key --to {new} --output TMP/handover.json"
    ));
    shop.package("one@ann", "1.2.0", "ann-2", &["https://more.test"]);
    shop.author("sign TMP/one@ann-1.2.0.zip --key KEYS/ann-2.key");
    let alone = shop.try_svc("market add SITE TMP/one@ann-1.2.0.zip --key KEYS/index.key");
    assert_ne!(alone.code, Some(0), "{alone:?}");
    shop.market("add SITE TMP/one@ann-1.2.0.zip --handover TMP/handover.json --key KEYS/index.key");
    shop.publish();
}

/// What another author signed waits for the user, whoever says that it is right.
fn meet_the_new_author(service: &Service, one: &str) {
    let waiting = service.call("POST", INSTALL, Some(&json!({"pluginId": "one@ann"})));
    let pending = plugin(service, "one@ann")["pending"].clone();
    assert_eq!(waiting["pendingConsent"], pending["digest"]);
    assert_eq!(
        (&pending["authorChanged"], &pending["added"]),
        (&json!(true), &json!([]))
    );
    assert_eq!(preview(service, one)["name"], "1.1.0");
    assert!(run(service, &["list", "--updates"]).contains("one@ann"));
    run(service, &["update", "one", "--yes"]);
}

fn lose_a_root_key(shop: &Shop) {
    // A root key is lost: the other two name another one, which then counts.
    std::fs::remove_file(shop.path("keys/root-2.key")).expect("it was there");
    let lost = shop.public_key("root-2");
    shop.key("root-4");
    shop.market(&format!(
        "rotate SITE root --add KEYS/root-4.key --remove {lost} --root-key KEYS/root-1.key --root-key KEYS/root-3.key"
    ));
    shop.market("rotate SITE root --root-key KEYS/root-4.key --root-key KEYS/root-1.key");
    shop.publish();
}
