//! Both processes are killed around the moment at which an item of a feed becomes a task: no item is lost, none is
//! downloaded twice, and none whose task was deleted comes back.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use e2e::{Home, Service, service::wait_until, setting};
use rustix::process::Signal;
use serde_json::{Value, json};
use support::{Content, Origin, Resource, Version};

use super::kill_loop::Random;

/// Items that are new in a round.
const NEW: usize = 3;

/// From the request for the feed to its kill, at most. An item is saved and its task created within a few of these.
const MOST_WAIT: Duration = Duration::from_millis(25);

/// Kills after which every item gets its task, before the feed is too long for the oldest.
const BETWEEN_ROUNDS: u64 = 20;

/// How many times as many kills there may be until both sides of the creation have been met.
const AT_MOST: u64 = 6;

/// A feed with as many items as `count` says, the newest first as feeds are; each is a file of its own.
fn origin(count: &Arc<AtomicUsize>) -> Origin {
    let count = Arc::clone(count);
    let feed = Resource::changing("/feed.xml", move |_| {
        let count = count.load(Ordering::SeqCst);
        let mut text = "<rss version=\"2.0\"><channel><title>Items</title>".to_owned();
        for number in (0..count).rev().take(100) {
            write!(
                text,
                "<item><guid>{number}</guid><title>item {number}</title><link>/f.bin?{number}</link></item>"
            )
            .unwrap();
        }
        text += "</channel></rss>";
        Version::unnamed(Content::bytes(text))
    });
    let file = Resource::new("/f.bin", Content::seeded(1, 1000));
    Origin::start(vec![feed.media_type("application/rss+xml"), file])
}

fn feeds(origin: &Origin) -> usize {
    let requests = origin.requests();
    requests.iter().filter(|request| request.target == "/feed.xml").count()
}

fn items(service: &Service, source: &str) -> BTreeMap<String, Value> {
    let items = service.call("GET", &format!("/api/v1/rss/{source}/items"), None);
    let items = items.as_array().unwrap().iter();
    items
        .map(|item| (item["guid"].as_str().unwrap().to_owned(), item.clone()))
        .collect()
}

/// The tasks by their URLs.
fn tasks(service: &Service) -> Vec<(String, String)> {
    let tasks = service.call("GET", "/api/v1/tasks", None);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tasks = tasks.as_array().unwrap().iter();
    tasks.map(|task| (text(&task["url"]), text(&task["taskId"]))).collect()
}

/// Reads the feed until every item has its task but those whose task was deleted.
fn catch_up(service: &Service, source: &str, all: &BTreeSet<String>, deleted: &BTreeSet<String>) {
    service.call("POST", &format!("/api/v1/rss/{source}/refresh"), None);
    wait_until("every item has its task", || {
        let made: BTreeSet<_> = tasks(service)
            .into_iter()
            .map(|(url, _)| url.rsplit('?').next().unwrap().to_owned())
            .collect();
        made == all.difference(deleted).cloned().collect()
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the moment of a kill is random")]
fn an_item_becomes_one_task_although_processes_are_killed() {
    let count = Arc::new(AtomicUsize::new(1));
    let origin = origin(&count);
    let home = Home::new();
    let mut service = home.serve();
    service.wait_until_ready();
    let request = json!({"url": origin.url("/feed.xml"), "includePattern": "item", "maxPerFetch": 100});
    let created = service.call("POST", "/api/v1/rss", Some(&request));
    let source = created["sourceId"].as_str().unwrap().to_owned();
    let is_seeded = |service: &Service| service.call("GET", "/api/v1/rss", None)[0]["seeded"] == true;
    wait_until("the first round is over", || is_seeded(&service));
    let (mut random, mut deleted) = (Random::new(0x0f_eed5), BTreeSet::new());
    // Kills before and after the creation of that round's tasks, and between some of them.
    let mut sides = [0_u32; 3];
    let (kills, mut kill) = (setting::kills(), 0);
    let all = || -> BTreeSet<_> {
        let numbers = 1..count.load(Ordering::SeqCst);
        numbers.map(|number| number.to_string()).collect()
    };
    while kill < kills || (sides[..2].contains(&0) && kill < AT_MOST * kills) {
        kill += 1;
        let first = count.fetch_add(NEW, Ordering::SeqCst);
        let before = feeds(&origin);
        let daemon = home.daemon().unwrap();
        // Asked for again, since a round that is not quite over is not followed by another one.
        wait_until("the feed is fetched", || {
            service.call("POST", &format!("/api/v1/rss/{source}/refresh"), None);
            feeds(&origin) > before
        });
        thread::sleep(MOST_WAIT.mul_f64(random.fraction()));
        service.signal(Signal::KILL);
        daemon.kill();
        drop(service);
        service = home.serve();
        service.wait_until_ready();
        let there = tasks(&service);
        let is_there = |number: usize| there.iter().any(|(url, _)| url.ends_with(&format!("?{number}")));
        let made = (first..first + NEW).filter(|number| is_there(*number)).count();
        sides[match made {
            0 => 0,
            NEW => 1,
            _ => 2,
        }] += 1;
        // Deleted, and killed at once.
        if kill % 3 == 0
            && let Some((url, task)) = there.get(usize::try_from(random.next()).unwrap() % there.len().max(1))
        {
            service.call("DELETE", &format!("/api/v1/tasks/{task}?deleteFiles=true"), None);
            deleted.insert(url.rsplit('?').next().unwrap().to_owned());
            service.signal(Signal::KILL);
            home.daemon().unwrap().kill();
            drop(service);
            service = home.serve();
            service.wait_until_ready();
        }
        if kill % BETWEEN_ROUNDS == 0 {
            catch_up(&service, &source, &all(), &deleted);
        }
    }
    println!(
        "{kill} kills: {} before, {} after, {} between the creation of tasks",
        sides[0], sides[1], sides[2]
    );
    assert!(!sides[..2].contains(&0), "both sides occur: {sides:?}");
    let all = all();
    catch_up(&service, &source, &all, &deleted);
    let (tasks, items) = (tasks(&service), items(&service, &source));
    assert_eq!(tasks.len(), all.len() - deleted.len(), "none is there twice");
    for number in &all {
        let item = &items[number];
        if deleted.contains(number) {
            assert_eq!(
                (&item["status"], &item["reason"]),
                (&json!(2), &json!("task_deleted")),
                "{item}"
            );
        } else {
            let (_, task) = tasks
                .iter()
                .find(|(url, _)| url.ends_with(&format!("?{number}")))
                .unwrap();
            assert_eq!((&item["status"], &item["taskId"]), (&json!(1), &json!(task)), "{item}");
        }
    }
}
