//! Where the key comes from, and where it goes.

use std::{fs, os::unix::fs::PermissionsExt as _};

use e2e::{Home, Service, Svc};
use support::{Content, Origin, Resource};

use super::{Desk, assert_ended, shell};

#[test]
fn a_new_service_is_set_up_once_and_then_the_commands_know_the_key() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    let svc = |arguments: &[&str]| shell(&home).env("SVC_URL", service.url()).args(arguments).run();
    assert_ended(&svc(&["list"]), 24, "svc setup");
    let run = svc(&["setup"]);
    run.assert_success();
    let key = run
        .stdout
        .iter()
        .find_map(|line| line.strip_prefix("Access key: "))
        .expect("the key is shown once");
    let file = home.path().join(".config/svc/config.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // The file is enough: neither address nor data directory is told.
    let run = Svc::new().env("HOME", home.path()).args(["list", "--json"]).run();
    assert_ended(&run, 0, "[]");
    for arguments in [&["config", "get", "token"][..], &["config", "list"], &["doctor"]] {
        let run = svc(arguments);
        assert!(!format!("{run:?}").contains(key), "{run:?}");
    }
    assert_ended(&svc(&["setup"]), 32, "has an access key already");
}

#[test]
fn a_key_of_ones_own_is_set_and_need_not_be_remembered() {
    let home = Home::new();
    let service = Service::start(home.new_server());
    let setup = |key: &str| {
        let svc = Svc::new().env("HOME", home.path()).env("SVC_URL", service.url());
        svc.args(["setup", "--no-save", "--token-file", "-"])
            .input(key.to_owned())
            .run()
    };
    assert_ended(&setup("short1"), 32, "at least 8 characters");
    assert_ended(&setup("my-very-own-key-1\n"), 0, "has its access key now");
    assert!(!home.path().join(".config").exists());
    let svc = Svc::new().env("HOME", home.path()).env("SVC_URL", service.url());
    assert_ended(&svc.env("SVC_TOKEN", "my-very-own-key-1").arg("list").run(), 0, "ID");
}

#[test]
fn on_the_same_machine_nothing_has_to_be_configured() {
    let desk = Desk::new();
    assert_ended(&desk.run(&["list"]), 0, "ID");
    let elsewhere = Svc::new()
        .env("HOME", desk.home.path())
        .env("SVC_URL", desk.service.url());
    assert_ended(&elsewhere.arg("list").run(), 24, "no access key");
}

#[test]
fn the_key_of_this_machines_service_goes_to_its_own_address_only() {
    let origin = Origin::start(vec![Resource::new("/rpc", Content::bytes("hello"))]);
    let desk = Desk::new();
    let svc = |arguments: &[&str]| shell(&desk.home).args(arguments).run();
    // It says itself where it listens.
    assert_ended(&svc(&["list"]), 0, "ID");
    let by_name = desk.service.url().replace("127.0.0.1", "localhost");
    assert_ended(&svc(&["list", "--url", &by_name]), 0, "ID");
    assert_ended(&svc(&["list", "--url", &origin.url("")]), 24, &desk.service.url());
    assert!(origin.requests().is_empty(), "{:?}", origin.requests());
}

#[test]
fn the_remembered_key_is_sent_to_its_service_only() {
    let origin = Origin::start(vec![Resource::new("/rpc", Content::bytes("hello"))]);
    let home = Home::new();
    let svc = |arguments: &[&str]| Svc::new().env("HOME", home.path()).args(arguments);
    svc(&["config", "set", "url", "http://nas.test"]).run().assert_success();
    svc(&["config", "set", "token", "-"])
        .input("the-key-of-nas-1")
        .run()
        .assert_success();
    let url = origin.url("");
    assert_ended(&svc(&["list", "--url", &url]).run(), 24, "no access key");
    let given = svc(&["list", "--url", &url, "--token", "another-key-1"]).run();
    assert_ended(&given, 5, "is not Svc");
    let sent = format!("{:?}", origin.requests());
    assert!(
        sent.contains("another-key-1") && !sent.contains("the-key-of-nas-1"),
        "{sent}"
    );
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let desk = Desk::new();
    let url = desk.service.url();
    let svc = |arguments: &[&str]| Svc::new().env("HOME", desk.home.path()).args(arguments);
    svc(&["config", "set", "url", &url]).run().assert_success();
    svc(&["config", "set", "token", "not-the-right-key-1"])
        .run()
        .assert_success();
    assert_ended(&svc(&["list"]).run(), 24, "does not accept");
    let right = e2e::service::KEY;
    assert_ended(&svc(&["list"]).env("SVC_TOKEN", right).run(), 0, "ID");
    let file = desk.home.path().join("key");
    fs::write(&file, format!("{right}\n")).unwrap();
    let by_file = svc(&["list", "--token-file", file.to_str().unwrap()]).env("SVC_TOKEN", "wrong-1234");
    assert_ended(&by_file.run(), 0, "ID");
    assert_ended(
        &svc(&["list", "--token", "wrong-1234"]).env("SVC_TOKEN", right).run(),
        24,
        "does not accept",
    );
}
