//! A new machine without network: what comes with the service is enough to install and use our own plugins.

use e2e::{Home, service::wait_until};
use serde_json::json;

use super::{offer, plugin, preview, run};
use crate::service::plugins::Server;

/// All plugins that are embedded.
const BUNDLED: [&str; 12] = [
    "archive-item",
    "dataset-repo",
    "directory-watch",
    "hls",
    "http-form-login",
    "metalink",
    "open-directory",
    "release-assets",
    "release-feed",
    "torznab",
    "unpack",
    "yt-dlp",
];

#[test]
fn our_own_plugins_are_installed_and_used_without_network() {
    let (home, server) = (Home::new(), Server::start());
    // Whatever would go to the network ends at a proxy that is not there.
    let nowhere = "http://127.0.0.1:9";
    let service = home.new_server().env("SVC_TOKEN", e2e::service::KEY);
    let service = service
        .env("https_proxy", nowhere)
        .env("all_proxy", nowhere)
        .env("no_proxy", "127.0.0.1");
    let service = e2e::Service::start(service);
    service.wait_until_ready();
    let listed = run(&service, &["list"]);
    for ours in BUNDLED {
        assert!(listed.contains(&format!("{ours}@svc")), "{listed}");
        assert_eq!(offer(&service, &format!("{ours}@svc"))["stale"], false);
    }
    // All of them, each with its fixtures played.
    let all = ["install", "--yes"].into_iter().chain(BUNDLED);
    run(&service, &all.collect::<Vec<_>>());
    assert_eq!(plugin(&service, "open-directory@svc")["source"], "bundled");
    assert_eq!(preview(&service, &server.url)["items"][0]["name"], "top.txt");
    service.create(&json!({"url": server.url}));
    wait_until("the directory is here", || {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().expect("a list");
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 3 && tasks.iter().all(|task| task["status"] == 3)
    });
    assert_eq!(run(&service, &["update"]), "there is nothing newer");
    assert_eq!(service.terminate().code, Some(0));
}
