//! Subscriptions: from a feed to a file on the disk, once.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use e2e::{Home, Service, python, service::wait_until};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Content, Origin, Resource, Version};

use super::plugin_sites::svc;

const BYTES: u64 = 100_000;

/// A feed whose items a test adds while it is served. Each item is a file of the same server.
struct Feed {
    origin: Origin,
    shown: Arc<Mutex<Vec<&'static str>>>,
}

impl Feed {
    fn new(titles: &[&'static str]) -> Self {
        let shown = Arc::new(Mutex::new(titles.to_vec()));
        let listed = Arc::clone(&shown);
        let feed = Resource::changing("/feed.xml", move |_| {
            let titles = listed.lock().unwrap().clone();
            let number = titles.len();
            Version::numbered(Content::bytes(rss(&titles)), number)
        });
        let page = "<html><head><link rel=alternate type=application/rss+xml href=/feed.xml></head></html>";
        let page = Resource::new("/", Content::bytes(page)).media_type("text/html");
        let files = ["a", "b", "c", "d"].map(|name| Resource::new(&format!("/{name}.bin"), content()));
        let mut resources = vec![feed.media_type("application/rss+xml"), page];
        resources.extend(files);
        Self {
            origin: Origin::start(resources),
            shown,
        }
    }

    fn show(&self, title: &'static str) {
        self.shown.lock().unwrap().push(title);
    }

    /// How often the feed was asked for.
    fn fetches(&self) -> usize {
        self.origin
            .requests()
            .iter()
            .filter(|request| request.target == "/feed.xml")
            .count()
    }
}

fn content() -> Content {
    Content::seeded(3, BYTES)
}

/// The last letter of a title is its file.
fn rss(titles: &[&str]) -> String {
    let mut text = "<rss version=\"2.0\"><channel><title>Shows</title>".to_owned();
    for title in titles {
        let file = title.chars().last().unwrap();
        write!(
            text,
            "<item><guid>{title}</guid><title>{title}</title><enclosure url=\"/{file}.bin\" length=\"{BYTES}\" \
             type=\"video/mp4\"/></item>"
        )
        .unwrap();
    }
    text + "</channel></rss>"
}

fn subscribe(service: &Service, source: &Value) -> String {
    let created = service.call("POST", "/api/v1/rss", Some(source));
    created["sourceId"].as_str().unwrap().to_owned()
}

fn source(service: &Service, id: &str) -> Value {
    let all = service.call("GET", "/api/v1/rss", None);
    let found = all.as_array().unwrap().iter().find(|source| source["sourceId"] == id);
    found.unwrap().clone()
}

fn items(service: &Service, id: &str) -> Vec<Value> {
    let items = service.call("GET", &format!("/api/v1/rss/{id}/items"), None);
    items.as_array().unwrap().clone()
}

/// Fetches and waits until the fetch succeeded.
fn refresh(service: &Service, feed: &Feed, id: &str) {
    let before = feed.fetches();
    let fetched = source(service, id)["lastSuccessAt"].clone();
    service.call("POST", &format!("/api/v1/rss/{id}/refresh"), None);
    wait_until("the feed is fetched", || feed.fetches() > before);
    // The times are in seconds, so that the answer tells nothing if both are in the same one.
    wait_until("the fetch is over", || {
        let source = source(service, id);
        source["lastSuccessAt"] != fetched || source["nextFetchAt"].as_i64() > fetched.as_i64().map(|at| at + 60)
    });
}

fn item(service: &Service, id: &str, guid: &str) -> Value {
    items(service, id)
        .into_iter()
        .find(|item| item["guid"] == guid)
        .unwrap_or(Value::Null)
}

/// The status of a task, once it is listed: an item names its task a moment before.
fn status(service: &Service, task: &str) -> Value {
    let answer = service.ask("GET", &format!("/api/v1/tasks/{task}"), None);
    answer.map_or(Value::Null, |answer| answer.body["status"].clone())
}

/// Waits until the file of an item is complete; gives its task.
fn downloaded(service: &Service, home: &Home, id: &str, guid: &str) -> String {
    wait_until("the item is downloaded", || {
        item(service, id, guid)["taskId"]
            .as_str()
            .is_some_and(|id| !id.is_empty())
    });
    let task = item(service, id, guid)["taskId"].as_str().unwrap().to_owned();
    wait_until("the file is complete", || status(service, &task) == 3);
    let name = service.task(&task)["fileName"].as_str().unwrap().to_owned();
    assert_eq!(content().difference(&home.downloads().join(name)).unwrap(), None);
    task
}

#[test]
fn a_new_item_becomes_a_file_once_whatever_happens_between() {
    let feed = Feed::new(&["Show S01E01 a"]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let id = subscribe(
        &service,
        &json!({"url": feed.origin.url("/feed.xml"), "includePattern": "show", "smartEpisode": true, "allowPrivate": true}),
    );
    wait_until("the first round is over", || source(&service, &id)["seeded"] == true);
    assert_eq!(source(&service, &id)["name"], "Shows");
    assert_eq!(
        item(&service, &id, "Show S01E01 a")["status"],
        5,
        "what was there before is not downloaded"
    );
    feed.show("Show S01E02 b");
    feed.show("Other S01E02 c");
    refresh(&service, &feed, &id);
    let task = downloaded(&service, &home, &id, "Show S01E02 b");
    assert_eq!(service.task(&task)["rssSourceId"], id.as_str());
    assert_eq!(item(&service, &id, "Other S01E02 c")["reason"], "not_included");
    // Both processes are killed and start again.
    home.daemon().unwrap().kill();
    service.signal(Signal::KILL);
    drop(service);
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(item(&service, &id, "Show S01E02 b")["taskId"], task.as_str());
    service.call("DELETE", &format!("/api/v1/tasks/{task}?deleteFiles=true"), None);
    wait_until("the item says so", || {
        item(&service, &id, "Show S01E02 b")["reason"] == "task_deleted"
    });
    feed.show("Show S01E03 d");
    refresh(&service, &feed, &id);
    downloaded(&service, &home, &id, "Show S01E03 d");
    assert_eq!(
        item(&service, &id, "Show S01E02 b")["status"],
        2,
        "a deleted download never comes back"
    );
    let tasks = service.call("GET", "/api/v1/tasks", None);
    assert_eq!(tasks.as_array().unwrap().len(), 1, "{tasks}");
}

#[test]
fn a_page_names_its_feed_and_the_user_acts_on_items() {
    let feed = Feed::new(&["Show S01E01 a", "Show S01E02 b"]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let page = feed.origin.url("/");
    let run = |arguments: &[&str]| svc(&service, arguments).run();
    let refused = run(&["rss", "add", &page, "--download"]);
    assert!(refused.stderr.contains("downloadAll"), "{refused:?}");
    let checked = run(&["rss", "check", &page, "--include", "E02"]);
    checked.assert_success();
    assert!(
        checked.stdout.last().unwrap().contains("1 of 2 items taken"),
        "{checked:?}"
    );
    run(&[
        "rss",
        "add",
        &page,
        "--no-download",
        "--name",
        "shows",
        "--allow-private",
    ])
    .assert_success();
    let id = service.call("GET", "/api/v1/rss", None)[0]["sourceId"]
        .as_str()
        .unwrap()
        .to_owned();
    wait_until("the first round is over", || source(&service, &id)["seeded"] == true);
    let items = run(&["rss", "items", "shows"]);
    assert!(
        items.stdout.iter().any(|line| line.contains("Show S01E01 a")),
        "{items:?}"
    );
    let part = |query: &str| {
        let path = format!("/api/v1/rss/{id}/items?{query}");
        service.ask("GET", &path, None).unwrap()
    };
    let first = part("limit=1");
    assert_eq!(first.header("x-total-count"), Some("2"));
    let cursor = first.header("x-next-cursor").unwrap();
    let second = part(&format!("limit=1&cursor={cursor}"));
    assert_eq!(second.header("x-next-cursor"), None);
    let parts = [&first.body[0], &second.body[0]].map(Value::clone);
    assert_eq!(parts.to_vec(), self::items(&service, &id), "each item is in one part");
    for bad in ["cursor=moon", "limit=0"] {
        assert_eq!(part(bad).status, 400, "{bad}");
    }
    run(&["rss", "download", "shows", "Show S01E01 a"]).assert_success();
    downloaded(&service, &home, &id, "Show S01E01 a");
    let unknown = run(&["rss", "download", "shows", "nothing"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    run(&["rss", "ignore", "shows", "Show S01E02 b"]).assert_success();
    assert_eq!(item(&service, &id, "Show S01E02 b")["status"], 2);
    let exported = run(&["rss", "export"]);
    assert!(
        exported.stdout.join("\n").contains(&format!("xmlUrl=\"{page}\"")),
        "{exported:?}"
    );
    run(&["rss", "rm", "shows"]).assert_success();
    assert_eq!(service.call("GET", "/api/v1/rss", None), json!([]));
    let tasks = service.call("GET", "/api/v1/tasks", None);
    assert_eq!(tasks.as_array().unwrap().len(), 1, "its downloads stay");
    // What was exported comes back; what cannot be read is named and keeps nothing else out.
    let list = home.path().join("feeds.opml");
    let broken = "<outline text=\"Bad\" xmlUrl=\"ftp://host.example/feed\"/></body>";
    std::fs::write(&list, exported.stdout.join("\n").replace("</body>", broken)).unwrap();
    let imported = run(&["rss", "import", list.to_str().unwrap()]);
    imported.assert_success();
    let said = imported.stdout.join("\n");
    assert!(
        said.contains("subscribed to 1 feed") && said.contains("ftp://host.example/feed"),
        "{said}"
    );
    let sources = service.call("GET", "/api/v1/rss", None);
    assert_eq!(sources[0]["name"], "shows");
    assert_eq!(sources[0]["autoDownload"], false);
    assert_eq!(sources.as_array().unwrap().len(), 1);
}

#[test]
fn an_episode_whose_download_failed_is_taken_from_another_item() {
    let feed = Feed::new(&[]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let id = subscribe(
        &service,
        &json!({"url": feed.origin.url("/feed.xml"), "includePattern": "show", "smartEpisode": true}),
    );
    wait_until("the first round is over", || source(&service, &id)["seeded"] == true);
    // There is no such file.
    feed.show("Show S01E02 x");
    refresh(&service, &feed, &id);
    wait_until("the task fails", || {
        let task = item(&service, &id, "Show S01E02 x")["taskId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        !task.is_empty() && status(&service, &task) == 4
    });
    feed.show("Show S01E02 720p b");
    refresh(&service, &feed, &id);
    downloaded(&service, &home, &id, "Show S01E02 720p b");
}

#[test]
fn a_feed_leads_to_no_private_address_and_bad_rules_are_refused() {
    let feed = Feed::new(&["Show S01E01 a"]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let create = |source: &Value| service.ask("POST", "/api/v1/rss", Some(source)).unwrap();
    let url = feed.origin.url("/feed.xml");
    for (source, field) in [
        (json!({}), "url"),
        (json!({"url": "file:///etc/passwd"}), "url"),
        (json!({"url": url}), "downloadAll"),
        (
            json!({"url": url, "includePattern": "(", "useRegex": true}),
            "includePattern",
        ),
        (
            json!({"url": url, "autoDownload": false, "queueId": "nowhere"}),
            "queueId",
        ),
    ] {
        let answer = create(&source);
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(
            answer.body["message"].as_str().unwrap().contains(field),
            "{}",
            answer.body
        );
    }
    // Of the feed's own host, which the user gave, files may come; of another private one, not.
    let id = subscribe(&service, &json!({"url": url, "autoDownload": false}));
    wait_until("the first round is over", || source(&service, &id)["seeded"] == true);
    let answer = service.ask(
        "POST",
        &format!("/api/v1/rss/{id}/items/action"),
        Some(&json!({"action": "dance"})),
    );
    assert_eq!(answer.unwrap().status, 400);
    let missing = "/api/v1/rss/00000000-0000-0000-0000-000000000000";
    for (method, path) in [
        ("DELETE", missing.to_owned()),
        ("POST", format!("{missing}/refresh")),
        ("GET", format!("{missing}/items")),
    ] {
        assert_eq!(service.ask(method, &path, None).unwrap().status, 404, "{path}");
    }
}

/// The fixtures of the parser that the service uses are beside its source code.
fn fixtures_of_feed_rs() -> String {
    let arguments = ["metadata", "--locked", "--format-version", "1"];
    let output = std::process::Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let parser = packages.find(|package| package["name"] == "feed-rs").unwrap();
    let manifest = parser["manifest_path"].as_str().unwrap();
    manifest.replace("Cargo.toml", "fixture")
}

#[test]
fn the_corpora_of_other_parsers_are_read_and_hostile_feeds_are_refused_within_bounds() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let daemon = home.daemon().unwrap().pid.to_string();
    let arguments = [service.address(), &fixtures_of_feed_rs(), &daemon];
    println!("{}", python::run("clients/feed_corpora.py", &arguments));
}
