//! Handing over downloads, and waiting for them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use e2e::{Home, Service, service::KEY};
use serde_json::json;
use support::{Content, Origin, Resource, behaviour};

use super::{Desk, assert_ended};

const MIB: u64 = 1 << 20;

fn content() -> Content {
    Content::seeded(71, 4 * MIB + 5)
}

#[test]
fn waiting_ends_when_the_file_is_there_and_rm_files_takes_it_away() {
    let origin = Origin::start(vec![Resource::new("/f.bin", content())]);
    let desk = Desk::new();
    let run = desk.run(&["add", "--wait", &origin.url("/f.bin"), "-o", "mine.bin"]);
    run.assert_success();
    let path = desk.home.downloads().join("mine.bin");
    assert_eq!(content().difference(&path).unwrap(), None);
    let tasks = desk.json(&["list", "--status", "completed"]);
    let id = tasks[0]["taskId"].as_str().unwrap();
    assert_ended(&desk.run(&["rm", "--files", id]), 0, "removed 1 task");
    assert!(!path.exists());
}

#[test]
fn waiting_tells_in_json_what_get_tells_and_ends_with_the_failure() {
    let origin = Origin::start(vec![Resource::new("/f.bin", content())]);
    let desk = Desk::new();
    let run = desk
        .svc(&["add", "--wait", "--json", &origin.url("/f.bin"), &origin.url("/none")])
        .run();
    run.assert_failure(3, "not-found");
    let finished = run.event("finished").expect("one of them is there");
    assert_eq!(
        (finished["index"].as_u64(), finished["sizeBytes"].as_u64()),
        (Some(0), Some(content().len()))
    );
    assert_eq!(run.event("summary").unwrap()["failed"], 1);
}

#[test]
fn ctrl_c_leaves_the_service_at_it() {
    let origin = Origin::start(vec![Resource::new("/f.bin", content()).with(behaviour::paced(MIB))]);
    let desk = Desk::new();
    let mut running = desk
        .svc(&["add", "--wait", "--json", "--segments", "1", &origin.url("/f.bin")])
        .spawn();
    let enough = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(MIB / 2));
    assert!(enough.is_some(), "it ended before half a MiB was there");
    running.interrupt();
    let run = running.finish();
    assert_ended(&run, 7, "\"unfinished\":1");
    assert_eq!(desk.json(&["list"])[0]["status"], 1);
}

#[test]
fn a_task_that_somebody_removes_ends_the_waiting() {
    let origin = Origin::start(vec![Resource::new("/f.bin", content()).with(behaviour::paced(MIB))]);
    let desk = Desk::new();
    let mut running = desk.svc(&["add", "--wait", "--json", &origin.url("/f.bin")]).spawn();
    running
        .wait_for(|event| event["event"] == "started")
        .expect("it starts");
    let id = desk.json(&["list"])[0]["taskId"].as_str().unwrap().to_owned();
    assert_ended(&desk.run(&["rm", &id]), 0, "removed");
    assert_ended(&running.finish(), 7, "its task was removed");
}

#[test]
fn a_list_brings_mirrors_and_options_along() {
    let origin = Origin::start(vec![
        Resource::new("/a", Content::seeded(1, 1000)),
        Resource::new("/b", Content::seeded(2, 2000)),
    ]);
    let desk = Desk::new();
    let list = desk.home.path().join("list.txt");
    let text = format!(
        "{a}\t{a}\n out=one.bin\n header=X-Thing: yes\n{b}\n out=two.bin\n",
        a = origin.url("/a"),
        b = origin.url("/b")
    );
    fs::write(&list, text).unwrap();
    desk.run(&["add", "--wait", "-i", list.to_str().unwrap()])
        .assert_success();
    for (name, seed, size) in [("one.bin", 1, 1000), ("two.bin", 2, 2000)] {
        let path = desk.home.downloads().join(name);
        assert_eq!(Content::seeded(seed, size).difference(&path).unwrap(), None);
    }
    assert!(
        origin
            .requests()
            .iter()
            .any(|request| format!("{request:?}").contains("yes"))
    );
    let options = "\n min-split-size=2M\n max-connection-per-server=3\n remote-time=true\n";
    fs::write(&list, format!("{}{options}", origin.url("/a"))).unwrap();
    desk.run(&["add", "--paused", "-i", list.to_str().unwrap()])
        .assert_success();
    let by_flags = ["add", "--paused", "--min-split-size", "2M", "-x", "3", "--remote-time"];
    desk.run(&[&by_flags[..], &[&origin.url("/b")]].concat())
        .assert_success();
    let tasks = desk.json(&["list", "--status", "paused"]);
    for task in tasks.as_array().unwrap() {
        let request = desk
            .service
            .rpc()
            .call("daemon.task.request", &serde_json::json!({"taskId": task["taskId"]}));
        let request = request.expect("it is there");
        assert_eq!(
            (
                &request["minSplitBytes"],
                &request["maxConnections"],
                &request["useServerTime"]
            ),
            (&(2 * MIB).into(), &3.into(), &true.into())
        );
    }
    assert_eq!(tasks.as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_added_is_refused_with_the_reason() {
    let desk = Desk::new();
    for (arguments, told) in [
        (&["add"][..], "URL"),
        (&["add", "nonsense"], "not a URL"),
        (&["add", "-o", "sub/f", "http://a.test/"], "--dir"),
        (&["add", "--queue", "nowhere", "http://a.test/"], "no queue matches"),
        (&["add", "--wait", "--paused", "http://a.test/"], "cannot be used with"),
        (&["add", "teapot://a.test/"], "teapot"),
    ] {
        let run = desk.run(arguments);
        assert!(matches!(run.code, Some(32 | 3)), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {run:?}");
    }
    assert_eq!(desk.json(&["list"]), serde_json::json!([]));
}

#[test]
fn every_option_of_a_task_is_set() {
    let desk = Desk::new();
    let options = [
        "--paused",
        "--lowest-speed-limit=10K",
        "--max-file-not-found=3",
        "--retries=6",
        "--retry-wait=7",
        "--check-integrity",
        "--no-netrc",
    ];
    let added = desk.json(&[&["add", "http://127.0.0.1:1/f"], &options[..]].concat());
    let request = desk
        .service
        .rpc()
        .call("daemon.task.request", &json!({"taskId": added["taskIds"][0]}));
    let request = request.expect("the task is there");
    for (field, value) in [
        ("lowestSpeedBytes", json!(10_240)),
        ("maxNotFound", json!(3)),
        ("maxTries", json!(7)),
        ("retryWaitSecs", json!(7)),
        ("checkIntegrity", json!(true)),
        ("noNetrc", json!(true)),
    ] {
        assert_eq!(request[field], value, "{field}: {request}");
    }
}

#[test]
fn a_login_of_netrc_is_used_at_its_host_and_never_with_no_netrc() {
    let origin = Origin::start(vec![
        Resource::new("/f.bin", content()).with(behaviour::basic_auth("u", "p")),
    ]);
    let home = Home::new();
    let netrc = home.path().join(".netrc");
    let write = |mode: u32| {
        fs::write(&netrc, "machine 127.0.0.1 login u password p\n").unwrap();
        fs::set_permissions(&netrc, fs::Permissions::from_mode(mode)).unwrap();
    };
    write(0o600);
    let server = home.new_server().env("SVC_TOKEN", KEY).env("HOME", home.path());
    let service = Service::start(server);
    service.wait_until_ready();
    let desk = Desk { home, service };
    let url = origin.url("/f.bin");
    desk.run(&["add", "--wait", &url]).assert_success();
    let elsewhere = url.replace("127.0.0.1", "localhost");
    for arguments in [&["--no-netrc", &url][..], &[&elsewhere]] {
        let run = desk.run(&[&["add", "--wait", "--retries=0"], arguments].concat());
        assert_eq!(run.code, Some(24), "{arguments:?}: {}", run.stderr);
    }
    // A restart reads it again; what others may read is not used.
    write(0o644);
    assert_ended(&desk.run(&["restart"]), 0, "restarted");
    desk.service.wait_until_ready();
    assert_eq!(desk.run(&["add", "--wait", "--retries=0", &url]).code, Some(24));
}

#[test]
fn a_device_that_is_not_paired_is_not_found() {
    let desk = Desk::new();
    for arguments in [
        &["link", "send", "absent", "http://127.0.0.1:9/f"][..],
        &["add", "--on", "absent", "http://127.0.0.1:9/f"],
    ] {
        let run = desk.run(arguments);
        assert_eq!(run.code, Some(3), "{run:?}");
        assert!(
            run.stderr.contains("absent") && run.stderr.contains("svc link devices"),
            "{run:?}"
        );
    }
}
