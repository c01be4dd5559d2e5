//! Hooks of plugins: they are told what becomes of downloads, may ask for another try, and delay nobody.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, End, Origin, Resource, behaviour};

use super::guest;

/// Downloads of a round.
const FILES: usize = 30;

/// What hooks of a misbehaving plugin do at each event.
const HANG: &str = "await http.get(new URL('/hang', event.url)).send()";
const LOOP: &str = "for (;;) {}";
const MEMORY: &str = "const all = []; for (;;) all.push(new Uint8Array(1 << 20))";
const FLOOD: &str = "await Promise.allSettled(Array.from({ length: 200 }, (_, n) => \
                     http.get(new URL(`/file?${n}`, event.url)).send())); for (;;) log.info('x'.repeat(4000))";

fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/file", Content::seeded(1, 50_000)),
        Resource::new("/flaky", Content::seeded(2, 50_000))
            .with(behaviour::when(behaviour::first, behaviour::status(404))),
        Resource::new("/told", Content::bytes("{}")).method("POST"),
        Resource::new("/hang", Content::bytes("")).with(behaviour::silent(End::Stall)),
    ])
}

/// A script that does this at every event.
fn always(body: &str) -> String {
    let of = |name: &str| format!("export async function {name}(event) {{ {body} }}\n");
    ["onStart", "onMetaProbed", "onDone", "onError"].map(of).concat()
}

/// Installs a hook for URLs with `?watched` in them, agreed to.
fn install(home: &Home, service: &Service, name: &str, script: &str) {
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

/// Downloads some files at once, and says how long it took until the last of them was complete.
fn round(service: &Service, origin: &Origin, query: &str) -> Duration {
    let begun = Instant::now();
    let url = |n: usize| origin.url(&format!("/file?{query}{n}"));
    let tasks: Vec<_> = (0..FILES).map(|n| service.create(&json!({"url": url(n)}))).collect();
    for task in &tasks {
        wait_until("the file is complete", || service.task(task)["status"] == 3);
    }
    begun.elapsed()
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
fn hooks_that_hang_loop_or_flood_delay_no_download() {
    let origin = origin();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    for (name, body) in [("hangs", HANG), ("loops", LOOP), ("hoards", MEMORY), ("floods", FLOOD)] {
        install(&home, &service, name, &always(body));
    }
    let alone = round(&service, &origin, "plain");
    let watched = round(&service, &origin, "watched");
    // Each of the events would take seconds if anybody waited for it, and there are three of each file for each plugin.
    let most = alone * 3 + Duration::from_secs(3);
    assert!(watched < most, "{watched:?} instead of {alone:?}");
    // Each failed by its own fault until its calls were paused.
    for (name, code) in [
        ("hangs", "wallLimit"),
        ("loops", "cpuLimit"),
        ("hoards", "memoryLimit"),
        ("floods", "cpuLimit"),
    ] {
        wait_until("its calls are paused", || {
            let journal = service.call("GET", &format!("/api/v1/plugins/{name}@test/journal"), None);
            let calls = journal["events"]
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|event| event.get("call"));
            let codes: Vec<_> = calls
                .map(|call| call["code"].as_str().unwrap_or_default().to_owned())
                .collect();
            codes == [code; 3]
        });
    }
    let begun = Instant::now();
    service.terminate();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}
