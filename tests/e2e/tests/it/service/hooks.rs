//! Hooks of plugins: they are told what becomes of downloads, and may ask for another try.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{fs, process::Command};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};

use super::guest;

fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/file", Content::seeded(1, 50_000)),
        Resource::new("/flaky", Content::seeded(2, 50_000))
            .with(behaviour::when(behaviour::first, behaviour::status(404))),
        Resource::new("/told", Content::bytes("{}")).method("POST"),
    ])
}

/// A script that does this at every event.
pub(super) fn always(body: &str) -> String {
    let of = |name: &str| format!("export async function {name}(event) {{ {body} }}\n");
    ["onStart", "onMetaProbed", "onDone", "onError"].map(of).concat()
}

/// Installs a hook for URLs with `?watched` in them, agreed to.
pub(super) fn install(home: &Home, service: &Service, name: &str, script: &str) {
    let manifest = json!({
        "manifestVersion": 1, "identity": format!("{name}@test"), "name": name, "version": "1.0.0",
        "runtime": "js", "entry": "plugin.js",
        "capabilities": {
            "hook": { "events": ["start", "metaProbed", "done", "error"], "match": ["*://*/*?watched*"] },
        },
        "permissions": { "inputHost": true },
    });
    let folder = home.path().join(name);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plugin.json"), manifest.to_string()).unwrap();
    fs::write(folder.join("plugin.js"), script).unwrap();
    let archive = folder.join("plugin.zip");
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"]).arg(&archive);
    let made = zip.args(["plugin.json", "plugin.js"]).current_dir(&folder).status();
    assert!(made.unwrap().success());
    let identity = format!("{name}@test");
    let consent = guest::install_archive(service, &identity, &archive);
    let agreed = guest::switch(service, &identity, &json!({"enabled": true, "consent": consent}));
    assert_eq!(agreed.status, 200, "{}", agreed.body);
    wait_until("the plugin is loaded", || {
        let plugins = service.call("GET", "/api/v1/plugins", None);
        let mut plugins = plugins.as_array().unwrap().iter();
        plugins.any(|plugin| plugin["identity"] == *identity && plugin["loadStatus"] == "Loaded")
    });
}

#[test]
fn a_hook_is_told_of_a_download_and_has_a_failed_one_tried_again() {
    let origin = origin();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let tell = "await http.post(new URL('/told', event.url)).json({ ...event, url: String(event.url) }).send();";
    let script = always(&format!(
        "{tell} if (event.event === 'error') return {{ delayMs: 10 }};"
    ));
    install(&home, &service, "tells", &script);
    let plain = service.create(&json!({"url": origin.url("/file")}));
    wait_until("the file is complete", || service.task(&plain)["status"] == 3);
    let task = service.create(&json!({"url": origin.url("/flaky?watched")}));
    wait_until("the file is complete", || service.task(&task)["status"] == 3);
    let mut told: Vec<Value> = Vec::new();
    wait_until("the hook was told of the end", || {
        let posts = origin.requests().into_iter().filter(|request| request.method == "POST");
        told = posts
            .map(|request| serde_json::from_slice(&request.body).unwrap())
            .collect();
        told.last().is_some_and(|told| told["event"] == "done")
    });
    let events: Vec<_> = told.iter().map(|told| told["event"].as_str().unwrap()).collect();
    assert_eq!(
        events,
        ["start", "error", "metaProbed", "done"],
        "and of no other download"
    );
    assert!(told.iter().all(|told| told["taskId"] == *task), "{told:?}");
    assert_eq!(
        (&told[1]["errorKind"], &told[1]["attempts"]),
        (&json!("not-found"), &json!(0))
    );
    assert_eq!(
        (&told[3]["fileName"], &told[3]["totalBytes"]),
        (&json!("flaky"), &json!(50_000))
    );
    let place = home.path().display().to_string();
    assert!(!json!(told).to_string().contains(&place), "where files are is not told");
}

#[test]
fn without_a_plugin_that_has_hooks_many_tasks_at_once_cause_no_warning() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    // More than the backlog of milestones has room for.
    let requests: Vec<_> = (0..2000)
        .map(|n| json!({"url": format!("http://192.0.2.1/{n}"), "startPaused": true}))
        .collect();
    let made = service
        .rpc()
        .call("daemon.task.createMany", &json!({ "requests": requests }))
        .expect("they are added");
    assert_eq!(made["taskIds"].as_array().map(Vec::len), Some(2000), "{made}");
    let run = service.terminate();
    assert_eq!(run.code, Some(0));
    assert!(!run.stderr.contains("hooks of plugins"), "{}", run.stderr);
}
