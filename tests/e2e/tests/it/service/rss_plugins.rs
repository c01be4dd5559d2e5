//! Subscriptions whose feeds a plugin reads, and items that another one resolves.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, Version};

use super::market::run;

const NAMES: [&str; 3] = ["one.bin", "two.bin", "three.bin"];

/// A directory that shows as many of its files as `count` says, and a feed whose items are directories.
fn origin(count: &Arc<AtomicUsize>) -> Origin {
    let shown = Arc::clone(count);
    let directory = Resource::changing("/pub/", move |_| {
        let count = shown.load(Ordering::SeqCst);
        let link = |name: &&str| format!("<a href=\"{name}\">{name}</a>");
        let links = NAMES[..count].iter().map(link).collect::<Vec<_>>().join("\n");
        let page = format!("<title>Index of /pub/</title><pre><a href=\"../\">../</a>\n{links}</pre>");
        Version::numbered(Content::bytes(page), count)
    });
    let shown = Arc::clone(count);
    let feed = Resource::changing("/feed.xml", move |_| {
        let count = shown.load(Ordering::SeqCst);
        let item = |number| {
            format!("<item><guid>{number}</guid><title>directory {number}</title><link>/{number}/</link></item>")
        };
        let items = (1..count).map(item).collect::<Vec<_>>().concat();
        let feed = format!("<rss version=\"2.0\"><channel><title>Directories</title>{items}</channel></rss>");
        Version::numbered(Content::bytes(feed), count)
    });
    let page = "<title>Index of /1/</title><pre><a href=\"../\">../</a>\n<a href=\"inner.bin\">inner.bin</a></pre>";
    let page = Resource::new("/1/", Content::bytes(page)).media_type("text/html");
    let mut resources = vec![
        directory.media_type("text/html"),
        feed.media_type("application/rss+xml"),
        page,
        Resource::new("/1/inner.bin", Content::seeded(9, 2000)),
    ];
    resources.extend(
        (0..)
            .zip(NAMES)
            .map(|(seed, name)| Resource::new(&format!("/pub/{name}"), Content::seeded(seed, 1000))),
    );
    Origin::start(resources)
}

fn subscribe(service: &Service, request: &Value) -> String {
    let created = service.call("POST", "/api/v1/rss", Some(request));
    let id = created["sourceId"].as_str().unwrap().to_owned();
    wait_until("the first round is over", || {
        let sources = service.call("GET", "/api/v1/rss", None);
        let source = sources
            .as_array()
            .unwrap()
            .iter()
            .find(|source| source["sourceId"] == *id);
        let source = source.unwrap();
        assert_eq!(source["failCount"], 0, "{source}");
        source["seeded"] == true
    });
    id
}

/// Asks for a fetch until a file of this name is complete.
fn wait_for_file(service: &Service, source: &str, name: &str) {
    service.call("POST", &format!("/api/v1/rss/{source}/refresh"), None);
    wait_until("the file is there", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().unwrap();
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.iter().any(|task| task["fileName"] == name && task["status"] == 3)
    });
}

#[test]
fn a_plugin_s_feed_is_seeded_and_its_new_item_is_downloaded_once() {
    let count = Arc::new(AtomicUsize::new(1));
    let origin = origin(&count);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let url = origin.url("/pub/");
    let create = |request: Value| service.ask("POST", "/api/v1/rss", Some(&request)).unwrap();
    let refused = create(json!({"url": url, "downloadAll": true, "providerId": "directory-watch@svc"}));
    assert_eq!(refused.status, 400, "{}", refused.body);
    run(&service, &["install", "directory-watch", "--yes"]);
    let plugins = service.call("GET", "/api/v1/plugins", None);
    let fields = &plugins[0]["subscriptionFields"];
    assert_eq!(
        (&fields[0]["key"], &plugins[0]["subscriptionProviderIds"][0]),
        (&json!("depth"), &json!("directory-watch@svc"))
    );
    let source = |depth: &str| json!({"url": url, "downloadAll": true, "providerId": "directory-watch@svc", "providerConfig": {"depth": depth}});
    let refused = create(source("9"));
    assert!(
        refused.body["message"].as_str().unwrap().contains("depth"),
        "{}",
        refused.body
    );
    let id = subscribe(&service, &source("0"));
    assert_eq!(service.call("GET", "/api/v1/rss", None)[0]["name"], "pub");
    count.store(2, Ordering::SeqCst);
    wait_for_file(&service, &id, "two.bin");
    service.call("POST", &format!("/api/v1/rss/{id}/refresh"), None);
    count.store(3, Ordering::SeqCst);
    wait_for_file(&service, &id, "three.bin");
    let tasks = service.call("GET", "/api/v1/tasks", None);
    assert_eq!(
        tasks.as_array().unwrap().len(),
        2,
        "what was there first is not downloaded: {tasks}"
    );
    let items = service.call("GET", &format!("/api/v1/rss/{id}/items"), None);
    let statuses: Vec<_> = items.as_array().unwrap().iter().map(|item| &item["status"]).collect();
    assert_eq!(statuses, [&json!(1), &json!(1), &json!(5)], "{items}");
}

#[test]
fn an_item_that_a_resolver_plugin_claims_goes_through_it() {
    let count = Arc::new(AtomicUsize::new(1));
    let origin = origin(&count);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    run(&service, &["install", "open-directory", "--yes"]);
    // What a feed names is not the user's: without this, no plugin may look for it in the own network.
    let request = json!({"url": origin.url("/feed.xml"), "includePattern": "directory", "allowPrivate": true});
    let id = subscribe(&service, &request);
    count.store(2, Ordering::SeqCst);
    wait_for_file(&service, &id, "inner.bin");
    let items = service.call("GET", &format!("/api/v1/rss/{id}/items"), None);
    assert_eq!(items[0]["status"], 1, "{items}");
}
