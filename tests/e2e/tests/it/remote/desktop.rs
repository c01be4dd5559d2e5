//! The commands on a desktop as it is installed: without an access key, for its own user.

use std::{fs, os::unix::fs::PermissionsExt as _};

use e2e::{Home, Service, Svc, service::wait_until};

use super::{Fresh, assert_ended};

#[test]
fn every_command_works_without_any_set_up() {
    let desk = Fresh::new();
    let answers = |arguments: &[&str], told: &str| assert_ended(&desk.svc(arguments).run(), 0, told);
    answers(&["ping"], "answers in");
    answers(&["info"], "Tasks      0");
    answers(&["list"], "ID");
    answers(&["queue", "list"], "ID");
    answers(&["plugin", "list"], "");
    answers(&["config", "list"], "");
    answers(&["capture", "list"], "");
    answers(&["doctor"], "closed to management, MCP, other machines, any web page");
    let added = desk
        .svc(&["add", "--paused", "--json", "http://127.0.0.1:9/file"])
        .run();
    added.assert_success();
    let added: serde_json::Value = serde_json::from_str(&added.stdout.join("\n")).unwrap();
    let id = added["taskIds"][0].as_str().expect("a task was added");
    answers(&["status", id], "file");
    answers(&["resume", id], "");
    answers(&["pause-all"], "");
    answers(&["rm", id], "");
    // It is found without an address, and by its name.
    let by_name = desk.service.url().replace("127.0.0.1", "localhost");
    answers(&["list", "--url", &by_name], "ID");
}

#[test]
fn a_file_becomes_a_plugin_although_the_management_api_is_off() {
    let desk = Fresh::new();
    let file = desk.home.path().join("no-plugin.zip");
    fs::write(&file, b"PK no archive").unwrap();
    let run = desk.svc(&["plugin", "install", file.to_str().unwrap()]).run();
    assert_ended(&run, 32, "archive");
}

#[test]
fn who_cannot_read_the_users_files_stays_outside() {
    let desk = Fresh::new();
    let lock = desk.home.data().join("agent/agent.lock");
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    let elsewhere = Svc::new()
        .env("HOME", desk.home.path())
        .env("SVC_URL", desk.service.url());
    assert_ended(&elsewhere.arg("list").run(), 24, "no access key");
}

#[test]
fn a_key_is_set_if_its_user_wants_one_and_the_commands_go_on_without() {
    let desk = Fresh::new();
    let run = desk.svc(&["setup"]).run();
    run.assert_success();
    let key = run.stdout.iter().find_map(|line| line.strip_prefix("Access key: "));
    let key = key.expect("the key is shown once");
    let text = fs::read_to_string(desk.home.data().join("agent/settings.json")).unwrap();
    assert!(text.contains(key));
    assert!(!desk.home.path().join(".config").exists());
    assert_ended(&desk.svc(&["list"]).run(), 0, "ID");
    assert_ended(&desk.svc(&["setup"]).run(), 32, "has an access key already");
    assert_ended(&desk.svc(&["doctor"]).run(), 0, "there is one, and it is strong");
    assert_ended(
        &desk.svc(&["list", "--token", "wrong-1234"]).run(),
        24,
        "does not accept",
    );
}

#[test]
fn a_desktop_that_is_switched_off_serves_the_commands_of_its_user_only() {
    let mut desk = Fresh::new();
    let port = desk.service.url();
    let set = |desk: &Fresh, value: &str| {
        let pair = format!("local_server_enabled={value}");
        assert_ended(&desk.svc(&["config", "server", "set", &pair]).run(), 0, value);
    };
    let is_served = |desk: &Fresh| {
        let answer = desk.service.ask(
            "POST",
            "/jsonrpc",
            Some(&serde_json::json!({"method": "aria2.getVersion"})),
        );
        answer.is_some_and(|answer| answer.status != 404)
    };
    assert!(is_served(&desk));
    set(&desk, "false");
    assert!(!is_served(&desk), "at once");
    assert_ended(&desk.svc(&["list"]).run(), 0, "ID");
    desk.service.terminate();
    desk.service = Service::start(desk.home.svc("agent"));
    assert_ne!(desk.service.url(), port, "the port of the settings is not opened");
    assert!(!is_served(&desk));
    for (arguments, told) in [
        (&["ping"][..], "answers in"),
        (&["list"], "ID"),
        (&["config", "server", "get", "local_server_enabled"], "false"),
    ] {
        assert_ended(&desk.svc(arguments).run(), 0, told);
    }
    set(&desk, "true");
    desk.service.terminate();
    desk.service = Service::start(desk.home.svc("agent"));
    assert_eq!(desk.service.url(), port);
    assert!(is_served(&desk));
}

#[test]
fn a_weak_key_of_an_older_service_is_kept_and_named() {
    let home = Home::new();
    let agent = home.data().join("agent");
    fs::create_dir_all(&agent).unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let old = serde_json::json!({"local_server_token": "short", "local_server_port": port});
    fs::write(agent.join("settings.json"), old.to_string()).unwrap();
    for start in ["first", "second"] {
        let service = Service::start(home.svc("agent"));
        let shell = || super::shell(&home).env("SVC_URL", service.url());
        wait_until("the key is taken", || {
            shell().args(["list", "--token", "short"]).run().code == Some(0)
        });
        let run = shell().arg("doctor").run();
        assert!(run.stdout.join("\n").contains("it is weak"), "{start}: {run:?}");
        assert!(!run.stdout.join("\n").contains("\"short\""), "{start}: {run:?}");
        service.terminate();
    }
}
