//! Why sources of a task failed: mirrors that are there, and mirrors that are not.

use std::net::TcpListener;

use e2e::{
    Home, Service, Svc,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, behaviour};

/// A server that does not answer.
fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    format!("http://{}/f.bin", listener.local_addr().expect("it has an address"))
}

fn site() -> Origin {
    Origin::start(vec![
        Resource::new("/f.bin", Content::seeded(5, 200_000)),
        Resource::new("/missing.bin", Content::bytes(*b"x")).with(behaviour::status(404)),
        Resource::new("/gone.bin", Content::bytes(*b"x")).with(behaviour::status(410)),
    ])
}

/// URL and kind of failure of each source.
fn sources(service: &Service, id: &str) -> Vec<(String, Option<String>)> {
    let told = service.rpc().call("daemon.task.sources", &json!({"taskId": id}));
    let told = told.expect("it answers");
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let sources = told["sources"].as_array().expect("a list").iter();
    sources
        .map(|source| {
            let failure = &source["failure"];
            let message = failure["message"].as_str().unwrap_or_default();
            assert_eq!(failure.is_null(), message.is_empty(), "{source}");
            assert!(!message.contains("no longer used"), "{message}");
            (text(&source["url"]).expect("it has a URL"), text(&failure["errorKind"]))
        })
        .collect()
}

#[test]
fn a_finished_task_tells_why_its_other_sources_failed_after_a_crash_too() {
    let (site, dead) = (site(), dead());
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let [missing, good] = ["/missing.bin", "/f.bin"].map(|path| site.url(path));
    let id = service.create(&json!({"url": missing, "mirrors": [dead, good], "checksum": "", "fileName": "f.bin"}));
    wait_until("it is complete", || service.task(&id)["status"] == 3);
    let expected = [
        (missing, Some("not-found".to_owned())),
        (dead.clone(), Some("connect".to_owned())),
        (good, None),
    ];
    assert_eq!(sources(&service, &id), expected);
    let history = service.rpc().call("daemon.task.activity", &json!({"taskId": id}));
    let history = history.expect("it answers");
    let of_sources = history["items"].as_array().expect("a list").iter();
    let of_sources: Vec<_> = of_sources.filter(|entry| entry["kind"] == "source").collect();
    assert_eq!(of_sources.len(), 2, "{history}");
    assert_eq!(of_sources[0]["errorKind"], "not-found", "{history}");

    let shell = Svc::new().env("SVC_URL", service.url()).env("SVC_TOKEN", KEY);
    let status = shell.args(["status", &id]).run();
    status.assert_success();
    let failed = status.stdout.iter().skip_while(|line| *line != "Sources that failed");
    let failed: Vec<_> = failed.skip(1).take(2).collect();
    assert!(
        failed[0].contains("missing.bin") && failed[1].contains(&dead),
        "{:?}",
        status.stdout
    );

    // What was asked for is on the disk.
    service.kill();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(sources(&service, &id), expected);
    service.terminate();
}

#[test]
fn a_task_whose_sources_all_failed_tells_why_each_did() {
    let site = site();
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let [missing, gone] = ["/missing.bin", "/gone.bin"].map(|path| site.url(path));
    let id = service.create(&json!({"url": missing, "mirrors": [gone], "maxTries": 1}));
    wait_until("it failed", || service.task(&id)["status"] == 4);
    let expected = [(missing, Some("not-found".to_owned())), (gone, Some("gone".to_owned()))];
    assert_eq!(sources(&service, &id), expected);
    // The only source of a task has its failure in the task itself.
    let only = service.create(&json!({"url": site.url("/gone.bin"), "maxTries": 1}));
    wait_until("it failed", || service.task(&only)["status"] == 4);
    assert_eq!(sources(&service, &only), [(site.url("/gone.bin"), None)]);
    service.terminate();
}
