//! Queues, and the settings of the service.

use super::{Desk, assert_ended};

#[test]
fn a_queue_lives_by_its_name() {
    let desk = Desk::new();
    let made = desk.json(&["queue", "create", "night", "--limit", "2M", "--max-tasks", "2"]);
    assert_eq!(
        (made["name"].as_str(), made["speedLimitKbps"].as_u64()),
        (Some("night"), Some(2048))
    );
    let id = desk.add_paused("http://a.test/f");
    assert_ended(
        &desk.run(&["queue", "move", "--to", "night", &id[..5]]),
        0,
        "moved 1 task to night",
    );
    assert_eq!(desk.json(&["list", "--queue", "night"]).as_array().unwrap().len(), 1);
    assert_ended(
        &desk.run(&["queue", "update", "night", "--limit", "0", "--name", "day"]),
        0,
        "changed queue day",
    );
    assert_ended(&desk.run(&["queue", "stop", "day"]), 0, "stopped");
    let queues = desk.json(&["queue"]);
    let day = queues
        .as_array()
        .unwrap()
        .iter()
        .find(|queue| queue["name"] == "day")
        .unwrap();
    let found = (
        day["speedLimitKbps"].as_u64(),
        day["maxConcurrent"].as_u64(),
        day["isRunning"].as_bool(),
    );
    assert_eq!(found, (Some(0), Some(2), Some(false)));
    assert_ended(&desk.run(&["queue", "delete", "day"]), 0, "deleted");
    assert_ended(&desk.run(&["queue", "start", "day"]), 3, "no queue matches day");
    assert_ended(&desk.run(&["queue", "delete", "main"]), 32, "main");
}

#[test]
fn settings_change_all_or_nothing() {
    let desk = Desk::new();
    let get = |key: &str| desk.json(&["config", "server", "get", key]);
    let usual = get("max_concurrent_tasks");
    assert_ended(
        &desk.run(&[
            "config",
            "server",
            "set",
            "max_concurrent_tasks=3",
            "default_segments=4",
        ]),
        0,
        "= 3",
    );
    let refused = desk.run(&[
        "config",
        "server",
        "set",
        "max_concurrent_tasks=7",
        "default_segments=9999",
    ]);
    assert_ended(&refused, 32, "default_segments");
    assert_eq!(
        (get("max_concurrent_tasks"), get("default_segments")),
        ("3".into(), "4".into())
    );
    assert_ended(
        &desk.run(&["config", "server", "unset", "max_concurrent_tasks"]),
        0,
        "max_concurrent_tasks",
    );
    assert_eq!(get("max_concurrent_tasks"), usual);
    assert_ended(
        &desk.run(&["config", "server", "get", "moon"]),
        3,
        "no setting matches moon",
    );
    assert_ended(&desk.run(&["config", "server", "set", "moon=1"]), 32, "moon");
    assert!(desk.json(&["config", "server", "list"])["values"]["default_segments"] == "4");
}

#[test]
fn what_the_commands_remember_can_be_changed_and_forgotten() {
    let desk = Desk::new();
    let path = desk.json(&["config", "path"]);
    assert!(path.as_str().unwrap().ends_with("/.config/svc/config.json"), "{path}");
    assert_ended(&desk.run(&["config", "get", "timeout"]), 3, "no value matches timeout");
    assert_ended(&desk.run(&["config", "set", "timeout", "2.5"]), 0, "timeout is set");
    assert_ended(&desk.run(&["config", "set", "url", "ftp://nas"]), 32, "cannot talk ftp");
    assert_eq!(desk.json(&["config", "list"]), serde_json::json!({"timeout": "2.5"}));
    assert_ended(&desk.run(&["config", "unset", "timeout"]), 0, "forgotten");
    assert_eq!(desk.json(&["config", "list"]), serde_json::json!({}));
}

#[test]
fn the_switches_of_the_interfaces_are_settings_like_the_others() {
    let desk = Desk::new();
    let get = |key: &str| desk.json(&["config", "server", "get", key]);
    assert_eq!(get("local_server_mcp_enabled"), "true");
    let set = |pairs: &[&str]| desk.run(&[&["config", "server", "set"], pairs].concat());
    assert_ended(
        &set(&[
            "local_server_mcp_enabled=false",
            "silent_download_enabled=true",
            "default_segments=4",
        ]),
        0,
        "local_server_mcp_enabled = false",
    );
    assert_eq!(
        (
            get("local_server_mcp_enabled"),
            get("silent_download_enabled"),
            get("default_segments")
        ),
        ("false".into(), "true".into(), "4".into())
    );
    // A server's port is set where it is started, so the daemon's setting stays as it is.
    assert_ended(&set(&["default_segments=6", "local_server_port=18123"]), 32, "headless");
    assert_eq!(get("default_segments"), "4");
    // And the agent's does if the daemon refuses.
    let both = [
        "local_server_mcp_enabled=true",
        "silent_download_enabled=false",
        "default_segments=9999",
    ];
    assert_ended(&set(&both), 32, "default_segments");
    assert_eq!(
        (get("local_server_mcp_enabled"), get("silent_download_enabled")),
        ("false".into(), "true".into())
    );
    assert_ended(&set(&["local_server_api_enabled=maybe"]), 32, "true or false");
    let values = desk.json(&["config", "server", "list"])["values"].clone();
    let keys: Vec<_> = values.as_object().unwrap().keys().map(String::as_str).collect();
    for key in keys {
        let run = desk.run(&["config", "server", "unset", key]);
        let is_read_only = run.code == Some(32) && run.stderr.contains("read-only");
        let is_fixed = run.code == Some(32) && key == "local_server_port";
        assert!(run.code == Some(0) || is_read_only || is_fixed, "{key}: {run:?}");
    }
    assert_eq!(
        (get("local_server_mcp_enabled"), get("silent_download_enabled")),
        ("true".into(), "false".into())
    );
}

#[test]
fn a_change_that_is_refused_leaves_secrets_as_they_were() {
    let desk = Desk::new();
    let set = |pairs: &[&str]| desk.run(&[&["config", "server", "set"], pairs].concat());
    let webhook = |secret: &str| {
        let endpoints = serde_json::json!([{"id": "own", "url": "https://a.example/hook", "signSecret": secret}]);
        format!("webhook.endpoints={endpoints}")
    };
    desk.run(&["config", "server", "set", &webhook("first-secret")])
        .assert_success();
    let shown = desk.json(&["config", "server", "get", "webhook.endpoints"]);
    let shown = shown.as_str().unwrap().to_owned();
    assert!(shown.contains("***") && !shown.contains("first-secret"), "{shown}");
    // What was read can be set, as often as wanted.
    for _ in 0..2 {
        set(&[&format!("webhook.endpoints={shown}"), "default_segments=4"]).assert_success();
    }
    // The agent refuses its half, so that the daemon's must not happen: nobody could take it back.
    let moved = serde_json::json!([{"id": "other", "url": "https://b.example/hook", "signSecret": "second-secret"}]);
    let refused = set(&[&format!("webhook.endpoints={moved}"), "local_server_port=18123"]);
    assert_ended(&refused, 32, "headless");
    assert_eq!(
        desk.json(&["config", "server", "get", "webhook.endpoints"]),
        shown.as_str()
    );
    set(&[&format!("webhook.endpoints={shown}")]).assert_success();
}

#[test]
fn a_queue_has_a_schedule_and_an_order() {
    let desk = Desk::new();
    let first = desk.add_paused("http://a.test/1");
    let second = desk.add_paused("http://a.test/2");
    assert_ended(
        &desk.run(&[
            "queue", "schedule", "main", "--start", "23:00", "--stop", "06:30", "--days", "mon-fri",
        ]),
        0,
        "scheduled queue",
    );
    assert_ended(&desk.run(&["queue"]), 0, "23:00-06:30 mon,tue,wed,thu,fri");
    assert_ended(&desk.run(&["queue", "schedule", "main", "--off"]), 0, "switched off");
    let main = desk.json(&["queue"])[0].clone();
    assert_eq!(
        (main["scheduleEnabled"].as_bool(), main["scheduleStart"].as_str()),
        (Some(false), Some("23:00"))
    );
    assert_ended(
        &desk.run(&["queue", "schedule", "main", "--start", "25:00"]),
        32,
        "HH:MM",
    );
    assert_ended(
        &desk.run(&["queue", "schedule", "main", "--days", "someday"]),
        32,
        "mon-fri",
    );
    assert_ended(&desk.run(&["queue", "order", "main", &second, &first]), 0, "reordered");
    let place = |id: &str| desk.json(&["status", id])["task"]["queueOrder"].as_u64();
    assert!(place(&second) < place(&first));
    assert_ended(&desk.run(&["queue", "boost", &first[..8]]), 0, "boost");
}
