//! Listing and changing tasks.

use support::{Content, Origin, Resource};

use super::{Desk, assert_ended};

#[test]
fn a_task_is_named_by_the_beginning_of_its_id() {
    let desk = Desk::new();
    let id = desk.add_paused("http://a.test/f.bin?key=hunter2");
    let list = desk.run(&["list", "--status", "paused"]);
    assert_ended(&list, 0, &id[..8]);
    assert!(list.stdout[1].contains("f.bin"), "{list:?}");
    let status = desk.run(&["status", &id[..4]]);
    assert_ended(&status, 0, "http://a.test/f.bin?…");
    assert!(!format!("{status:?}").contains("hunter2"));
    assert_eq!(desk.json(&["stat", &id])["task"]["taskId"], id);
    assert_ended(&desk.run(&["status", &id[..3]]), 32, "at least the first 4");
    assert_ended(&desk.run(&["rm", &id[..6]]), 0, "removed 1 task");
    assert_eq!(desk.json(&["ls"]), serde_json::json!([]));
}

#[test]
fn one_unknown_id_changes_nothing_and_is_named() {
    let desk = Desk::new();
    let id = desk.add_paused("http://a.test/f.bin");
    let run = desk.run(&["rm", &id, "beefbeef", "cafecafe"]);
    assert_ended(&run, 3, "no task matches beefbeef, cafecafe");
    assert_eq!(desk.json(&["list"]).as_array().unwrap().len(), 1);
}

#[test]
fn many_are_filtered_and_limited() {
    let desk = Desk::new();
    let urls: Vec<_> = (0..5).map(|number| format!("http://a.test/{number}")).collect();
    let mut arguments = vec!["add", "--paused"];
    arguments.extend(urls.iter().map(String::as_str));
    let ids = desk.json(&arguments)["taskIds"].as_array().unwrap().len();
    assert_eq!(ids, 5);
    assert_eq!(desk.json(&["list", "--limit", "2"]).as_array().unwrap().len(), 2);
    assert_eq!(
        desk.json(&["list", "--status", "completed,error"]),
        serde_json::json!([])
    );
    assert_eq!(desk.json(&["list", "--queue", "later"]), serde_json::json!([]));
    assert_ended(
        &desk.run(&["list", "--queue", "nowhere"]),
        3,
        "no queue matches nowhere",
    );
    assert_ended(&desk.run(&["list", "--status", "asleep"]), 32, "known are pending");
    assert_ended(&desk.run(&["resume-all"]), 0, "resumed all");
    assert_ended(&desk.run(&["pause-all"]), 0, "paused all");
    let tasks = desk.json(&["list"]);
    assert!(
        tasks.as_array().unwrap().iter().all(|task| task["status"] == 2),
        "{tasks}"
    );
}

#[test]
fn a_task_is_renamed_limited_and_given_another_url() {
    let desk = Desk::new();
    let id = desk.add_paused("http://a.test/f.bin");
    let short = &id[..6];
    assert_ended(&desk.run(&["rename", short, "g.bin"]), 0, "renamed");
    assert_ended(&desk.run(&["rename", short, "../g.bin"]), 32, "");
    assert_ended(
        &desk.run(&["change-url", short, "http://b.test/f.bin?key=hunter2"]),
        0,
        "changed the URL",
    );
    assert_ended(&desk.run(&["change-url", short, "nonsense"]), 32, "URL");
    assert_ended(&desk.run(&["limit", short, "2M"]), 0, "2.0 MiB/s");
    assert_ended(&desk.run(&["limit", short, "fast"]), 32, "fast");
    let task = desk.json(&["status", &id])["task"].clone();
    assert_eq!(task["fileName"], "g.bin");
    assert!(task["url"].as_str().unwrap().starts_with("http://b.test/"), "{task}");
    assert_ended(&desk.run(&["rename", "beefbeef", "x"]), 3, "svc list");
}

#[test]
fn a_file_that_is_gone_is_found_missing() {
    let origin = Origin::start(vec![Resource::new("/f.bin", Content::seeded(3, 1000))]);
    let desk = Desk::new();
    desk.run(&["add", "--wait", &origin.url("/f.bin")]).assert_success();
    std::fs::remove_file(desk.home.downloads().join("f.bin")).unwrap();
    assert_ended(&desk.run(&["rescan"]), 0, "looked");
    assert_eq!(desk.json(&["list"])[0]["fileMissing"], true);
}
