//! A disk that does not answer holds up its own downloads, and neither the service nor the others.

use e2e::{
    Home, HungDisk, Svc,
    service::{KEY, wait_until},
};
use serde_json::json;
use support::{Content, Origin, Resource};

/// More than the service has threads.
const WAITING: usize = 12;

#[test]
fn a_disk_that_hangs_holds_up_its_own_downloads_only() {
    let mut disk = HungDisk::mount();
    let content = Content::seeded(82, 200_000);
    let names = ["waits", "a", "b"].map(|name| format!("/{name}"));
    let origin = Origin::start(names.iter().map(|name| Resource::new(name, content.clone())).collect());
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    // Those that wait keep their places among the downloads that run.
    let config = Svc::new().env("SVC_URL", service.url()).env("SVC_TOKEN", KEY);
    let places = format!("max_concurrent_tasks={}", WAITING + 1);
    config.args(["config", "server", "set", &places]).run().assert_success();
    let waiting: Vec<_> = (0..WAITING)
        .map(|number| {
            let url = origin.url(&format!("/waits?{number}"));
            service.create(&json!({"url": url, "saveDir": disk.path()}))
        })
        .collect();
    disk.wait_until_asked();
    let complete = |path: &str| {
        let id = service.create(&json!({"url": origin.url(path)}));
        wait_until("the other download is complete", || service.task(&id)["status"] == 3);
        let file = home.downloads().join(&path[1..]);
        assert_eq!(content.difference(&file).expect("it is there"), None);
    };
    complete("/a");
    for id in &waiting {
        assert_ne!(service.task(id)["status"], 3);
    }
    service.call("PUT", &format!("/api/v1/tasks/{}/pause", waiting[0]), None);
    service.call("DELETE", &format!("/api/v1/tasks/{}", waiting[1]), None);
    complete("/b");
    assert_eq!(service.terminate().code, Some(0));
    wait_until("the daemon is gone, too", || home.processes().is_empty());
}
