//! The logins of sites, and the access key: set from standard input, never from an argument.

use std::fs;

use super::{Desk, Fresh, assert_ended};

const PASSWORD: &str = "correct-horse-1";

#[test]
fn a_login_is_stored_for_a_site_and_its_password_is_shown_nowhere() {
    let desk = Desk::new();
    let set = desk
        .svc(&["site", "set", "https://a.test/some/file", "--user", "me"])
        .input(format!("{PASSWORD}\n"))
        .run();
    assert_ended(&set, 0, "stored the login of me at https://a.test");
    let sites = desk.json(&["site"]);
    assert_eq!(
        (sites[0]["site"].as_str(), sites[0]["user"].as_str()),
        (Some("https://a.test"), Some("me"))
    );
    assert!(!sites.to_string().contains(PASSWORD) && !format!("{set:?}").contains(PASSWORD));
    let file = desk.home.path().join("pw");
    fs::write(&file, "another\n").unwrap();
    let path = file.to_str().unwrap();
    let again = desk.run(&["site", "set", "http://a.test", "--user", "you", "--password-file", path]);
    assert_ended(&again, 0, "http://a.test");
    assert_eq!(desk.json(&["site", "list"]).as_array().unwrap().len(), 2);
    assert_ended(
        &desk.run(&["site", "remove", "https://a.test"]),
        0,
        "removed the login of https://a.test",
    );
    assert_ended(
        &desk.run(&["site", "remove", "https://a.test"]),
        3,
        "no credentials for https://a.test",
    );
    assert_ended(&desk.run(&["site", "clear"]), 0, "removed all");
    assert_eq!(desk.json(&["site"]), serde_json::json!([]));
    let empty = desk
        .svc(&["site", "set", "https://a.test", "--user", "me"])
        .input("")
        .run();
    assert_ended(&empty, 32, "empty");
}

#[test]
fn a_changed_key_is_the_only_one_and_the_commands_know_it() {
    let desk = Desk::new();
    let made = desk.json(&["key", "new"]);
    let key = made["token"].as_str().expect("a generated key is shown").to_owned();
    assert_eq!(desk.json(&["key", "show"])["token"], key);
    assert_ended(&desk.run(&["list", "--token", e2e::service::KEY]), 24, "");
    assert_ended(&desk.run(&["list", "--token", &key]), 0, "ID");
    let weak = desk.svc(&["key", "set"]).input("short\n").run();
    assert_eq!(weak.code, Some(32), "{weak:?}");
    let set = desk.svc(&["key", "set", "--from", "-"]).input("my-own-key-1\n").run();
    assert_ended(&set, 0, "is changed");
    assert!(!format!("{set:?}").contains("my-own-key-1"));
    assert_ended(&desk.run(&["list", "--token", "my-own-key-1"]), 0, "ID");
    assert_ended(&desk.run(&["key", "clear"]), 32, "headless");
}

#[test]
fn a_stored_key_is_replaced_by_the_new_one() {
    let desk = Desk::new();
    let url = desk.service.url();
    desk.run(&["config", "set", "url", &url]).assert_success();
    desk.svc(&["config", "set", "token", "-"])
        .input(e2e::service::KEY)
        .run()
        .assert_success();
    desk.run(&["key", "new"]).assert_success();
    assert_ended(&desk.run(&["list"]), 0, "ID");
    let file = fs::read_to_string(desk.home.path().join(".config/svc/config.json")).unwrap();
    assert!(!file.contains(e2e::service::KEY));
}

#[test]
fn a_desktop_changes_its_port_and_loses_its_key_again() {
    let desk = Fresh::new();
    let run = |arguments: &[&str]| desk.svc(arguments).run();
    let port = run(&["config", "server", "set", "local_server_port=18123"]);
    assert_ended(&port, 0, "local_server_port = 18123");
    assert!(port.stderr.contains("started again"), "{port:?}");
    assert_ended(&run(&["config", "server", "set", "local_server_port=80"]), 32, "1024");
    assert_ended(&run(&["key", "show"]), 0, "no access key");
    assert_ended(
        &run(&["config", "server", "set", "local_server_api_enabled=true"]),
        0,
        "= true",
    );
    assert_ended(&run(&["key", "clear"]), 0, "is removed");
    assert_ended(
        &run(&["config", "server", "get", "local_server_api_enabled"]),
        0,
        "false",
    );
}
