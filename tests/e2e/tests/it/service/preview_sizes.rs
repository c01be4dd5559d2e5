//! Sizes that a page does not tell: the host asks the servers of the files, within a budget, and makes nothing of them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    time::{Duration, Instant},
};

use e2e::{Home, Service};
use serde_json::{Value, json};
use support::{Content, End, Exchange, Origin, Resource, behaviour};

use super::plugin_sites::{run, with_plugin};

/// Lists what a page links to.
const SCRIPT: &str = r#"export async function resolve(call, out) {
        const page = await http.get(call.url).send();
        out.title('Files');
        for (const [, name] of page.text().matchAll(/href="([^"]+)"/g)) {
            out.add(name, name).link(new URL(name, call.url));
        }
    }
    export const preview = resolve;"#;

/// A page that links to files, the `n`th of them `n` bytes long.
fn directory(count: u64, bend: impl Fn(u64, Resource) -> Resource) -> Origin {
    let names = (1..=count).map(|n| format!("<a href=\"{n}.bin\">{n}.bin</a>"));
    let page = Content::bytes(names.collect::<String>());
    let mut resources = vec![Resource::new("/page", page).media_type("text/html")];
    resources.extend((1..=count).map(|n| bend(n, Resource::new(&format!("/{n}.bin"), Content::seeded(n, n)))));
    Origin::start(resources)
}

fn service(home: &Home) -> Service {
    with_plugin(home, &json!({"inputHost": true}), SCRIPT)
}

fn preview(service: &Service, origin: &Origin) -> Value {
    let answer = service.call(
        "POST",
        "/api/v1/resolve/preview",
        Some(&json!({"url": origin.url("/page")})),
    );
    assert_eq!(answer["error"], "", "{answer}");
    answer
}

fn sizes(preview: &Value) -> Vec<u64> {
    let items = preview["items"].as_array().unwrap();
    items.iter().map(|item| item["size"].as_u64().unwrap()).collect()
}

fn count(origin: &Origin, method: &str) -> usize {
    let of_files = |target: &str| target != "/page";
    let requests = origin.requests();
    let asked = requests
        .iter()
        .filter(|request| request.method == method && of_files(&request.target));
    asked.count()
}

fn is_head(exchange: &Exchange) -> bool {
    exchange.request.method == "HEAD"
}

#[test]
fn sizes_that_the_page_does_not_tell_are_asked_and_nothing_is_made() {
    let origin = directory(8, |_, resource| resource);
    let home = Home::new();
    let service = service(&home);
    let found = preview(&service, &origin);
    assert_eq!(sizes(&found), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!((&found["totalBytes"], &found["unknownSizes"]), (&json!(36), &json!(0)));
    assert_eq!(found["items"][0]["sizeFromServer"], json!(true));
    assert_eq!((count(&origin, "HEAD"), count(&origin, "GET")), (8, 0));
    let most = origin.max_connections_seen();
    assert!(most <= 5, "{most} connections: the page's, and four for sizes");
    let shown = run(&service, &["plugin", "preview", &origin.url("/page")])
        .stdout
        .join("\n");
    assert!(shown.contains("lists 8 files, 36 B: Files"), "{shown}");
    assert_eq!(service.call("GET", "/api/v1/tasks", None), json!([]));
    assert!(fs::read_dir(home.downloads()).map_or(0, Iterator::count) == 0);
    // A size that was asked is no promise: the file may have changed since.
    run(&service, &["add", &origin.url("/page"), "--paused", "--pick", "3"]);
    let tasks = service.call("GET", "/api/v1/tasks", None);
    assert_ne!(tasks[0]["totalBytes"], json!(3), "{tasks}");
}

#[test]
fn of_many_files_only_some_are_asked_and_the_others_counted() {
    let origin = directory(200, |_, resource| resource);
    let home = Home::new();
    let found = preview(&service(&home), &origin);
    let (heads, told) = (
        count(&origin, "HEAD"),
        sizes(&found).iter().filter(|size| **size > 0).count(),
    );
    // The polite rate of a site lets some twenty through at once, and five for each second of the budget.
    assert!(
        (20..=64).contains(&heads) && (20..=heads).contains(&told),
        "{told} of {heads}"
    );
    assert_eq!(found["unknownSizes"], json!(200 - told));
}

#[test]
fn a_server_that_hangs_delays_a_preview_for_the_budget_at_most() {
    let hangs = |n, resource: Resource| match n {
        1 | 2 => resource.with(behaviour::silent(End::Stall)),
        _ => resource,
    };
    let origin = directory(6, hangs);
    let home = Home::new();
    let service = service(&home);
    let started = Instant::now();
    let found = preview(&service, &origin);
    let elapsed = started.elapsed();
    assert!(
        (Duration::from_secs(4)..Duration::from_secs(15)).contains(&elapsed),
        "{elapsed:?}"
    );
    assert_eq!(sizes(&found), [0, 0, 3, 4, 5, 6]);
    assert_eq!(found["unknownSizes"], json!(2));
}

#[test]
fn where_the_head_is_refused_the_first_byte_is_asked_for() {
    let refuses = |n, resource: Resource| match n {
        1..=3 => resource.with(behaviour::when(is_head, behaviour::status(405))),
        4 => resource.with(behaviour::status(404)),
        _ => resource.with(behaviour::header("Content-Encoding", b"gzip")),
    };
    let origin = directory(5, refuses);
    let home = Home::new();
    let found = preview(&service(&home), &origin);
    assert_eq!(sizes(&found), [1, 2, 3, 0, 0]);
    assert!(count(&origin, "GET") >= 3);
    assert!(
        origin
            .requests()
            .iter()
            .all(|request| request.target == "/page" || request.bytes_sent() <= 1)
    );
}
