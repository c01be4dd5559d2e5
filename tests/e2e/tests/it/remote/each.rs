//! Every command that talks to a service, run at least once as a user runs it; its effect is looked for over REST. Which
//! commands there are is taken from the executable's own help, so that a new one without a case fails.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use e2e::{
    Home, Service, Svc, http,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};
use support::{Content, Origin, Resource, Version, behaviour};

use super::{login, shell};
use crate::{
    attack::scripts,
    service::{market::shop::Shop, plugins::Server},
};

/// States of tasks, as REST numbers them.
const PAUSED: u8 = 2;
const COMPLETED: u8 = 3;

/// A service, its user's shell, and the commands that ran there.
struct Tour<'a> {
    home: &'a Home,
    service: &'a Service,
    ran: &'a RefCell<BTreeSet<String>>,
}

impl Tour<'_> {
    fn svc(&self, command: &str, arguments: &[&str]) -> Svc {
        self.ran.borrow_mut().insert(command.to_owned());
        let svc = shell(self.home).env("SVC_URL", self.service.url());
        svc.args(command.split(' ')).args(arguments).arg("--json")
    }

    /// What the command prints; it succeeds.
    #[track_caller]
    fn run(&self, command: &str, arguments: &[&str]) -> Value {
        let text = text(self.svc(command, arguments));
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{command}: {text}"))
    }

    /// The same for a command that reads standard input.
    #[track_caller]
    fn read(&self, command: &str, arguments: &[&str], input: &str) -> Value {
        let text = text(self.svc(command, arguments).input(input));
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{command}: {text}"))
    }

    fn get(&self, path: &str) -> Value {
        self.service.call("GET", &format!("/api/v1/{path}"), None)
    }

    /// Waits until the task is in this state, or in another.
    fn wait(&self, id: &str, state: u8, is_in_it: bool) {
        wait_until("the task is in a state", || {
            (self.service.task(id)["status"] == state) == is_in_it
        });
    }

    /// The thing of a list of the service's that has this value.
    fn find(&self, list: &str, key: &str, value: &str) -> Value {
        let list = self.get(list);
        let mut things = list.as_array().expect("a list").iter();
        things.find(|thing| thing[key] == value).cloned().unwrap_or_default()
    }
}

/// What a command prints; it succeeds.
#[track_caller]
fn text(svc: Svc) -> String {
    let run = svc.run();
    assert_eq!(run.code, Some(0), "{run:?}");
    run.stdout.join("\n")
}

#[test]
fn every_command_for_a_service_does_what_it_says() {
    let (home, desk) = (Home::new(), Home::new());
    let ran = RefCell::default();
    let service = Service::start(home.new_server());
    let tour = Tour {
        home: &home,
        service: &service,
        ran: &ran,
    };
    tour.read("setup", &["--no-save", "--token-file", "-"], KEY);
    service.wait_until_ready();
    service_itself(&tour);
    let (one, two) = tasks(&tour);
    queues(&tour, &one, &two);
    settings(&tour);
    sites(&tour);
    cookies(&tour);
    plugins(&tour);
    packages(&tour);
    accounts(&tour);
    market(&tour);
    feeds(&tour);
    webhooks(&tour);
    unpacking(&tour);
    torrents(&tour);
    devices(&tour);
    keys(&tour);
    let desktop = Service::start(desk.new_desktop());
    desktop_only(&Tour {
        home: &desk,
        service: &desktop,
        ran: &ran,
    });
    let mut leaves = BTreeSet::new();
    collect(&[], &mut leaves);
    assert!(leaves.len() > 60, "{leaves:?}");
    assert_eq!(*ran.borrow(), leaves, "commands that ran, and those there are");
}

/// The commands below these words that take the address of a service.
fn collect(words: &[&str], leaves: &mut BTreeSet<String>) {
    let help = Svc::new().args(words).arg("--help").run().stdout;
    let usage = |words: &[&str]| format!("Usage: {}", [&["svc"], words].concat().join(" "));
    assert!(help.iter().any(|line| line.starts_with(&usage(words))), "{words:?}");
    let is_group = help
        .iter()
        .any(|line| line.starts_with("Usage:") && line.contains("COMMAND]"))
        || help
            .iter()
            .any(|line| line.starts_with("Usage:") && line.contains("<COMMAND>"));
    if !is_group {
        if help.iter().any(|line| line.trim_start().starts_with("--url <URL>")) {
            leaves.insert(words.join(" "));
        }
        return;
    }
    // Commands stand under headings that are not those of options or examples: two spaces, a word, and what it does.
    let named = help.iter().filter_map(|line| {
        let (word, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_word = word.starts_with(|first: char| first.is_ascii_lowercase()) && !word.contains(' ');
        // The help of aria2c is aria2's, and it is no client of a service.
        (is_word && !about.is_empty() && !["aria2c", "help"].contains(&word)).then_some(word)
    });
    for word in named {
        collect(&[words, &[word]].concat(), leaves);
    }
}

fn service_itself(tour: &Tour<'_>) {
    assert_eq!(tour.run("ping", &[])["url"], tour.service.url());
    assert_eq!(tour.run("info", &[])["daemon"]["tasks"], 0);
    let page = tour.run("open", &["--print"]);
    let page = page["url"].as_str().expect("an address");
    let (address, ticket) = page.split_once("/#open=").expect("a ticket behind it");
    assert_eq!(address, tour.service.url());
    let exchange = || {
        let body = json!({"ticket": ticket});
        http::ask(tour.service.address(), "POST", "/api/web/session", &[], Some(&body)).expect("it answers")
    };
    let session = exchange();
    assert_eq!(session.status, 200, "{}", session.body);
    assert_eq!(exchange().status, 404, "a ticket is good once");
    let bearer = format!("Bearer {}", session.body["token"].as_str().expect("a credential"));
    let probe = http::ask(
        tour.service.address(),
        "GET",
        "/api/v1/tasks",
        &[("Authorization", &bearer)],
        None,
    );
    assert_eq!(probe.expect("it answers").status, 200);
    assert!(tour.run("doctor", &[])["findings"].is_array());
    let archive = tour.home.path().join("logs.zip");
    tour.run("logs export", &["-o", archive.to_str().expect("the path is plain")]);
    assert!(fs::read(archive).expect("it is written").starts_with(b"PK"));
    let mut watching = tour.svc("watch", &[]).spawn();
    assert!(watching.wait_for(|event| event["type"] == "snapshot").is_some());
    watching.interrupt();
    watching.finish();
    let daemon = || tour.home.daemon().map(|daemon| daemon.pid);
    let before = daemon();
    tour.run("restart", &[]);
    tour.service.wait_until_ready();
    assert!(daemon().is_some() && daemon() != before);
}

/// What is done with tasks. Gives two that are paused.
fn tasks(tour: &Tour<'_>) -> (String, String) {
    let slow = Resource::new("/slow", Content::bytes(vec![1; 1 << 20])).with(behaviour::paced(1000));
    let origin = Origin::start(vec![slow, Resource::new("/fast", Content::bytes("fast"))]);
    let added = tour.run("add", &["--paused", &origin.url("/slow"), &origin.url("/fast")]);
    let [slow, fast] = [0, 1].map(|place| added["taskIds"][place].as_str().expect("an id").to_owned());
    assert_eq!(tour.run("list", &[]).as_array().map(Vec::len), Some(2));
    assert_eq!(tour.run("status", &[&slow])["task"]["fileName"], "slow");
    tour.run("resume", &[&slow]);
    tour.wait(&slow, PAUSED, false);
    tour.run("pause", &[&slow]);
    tour.wait(&slow, PAUSED, true);
    tour.run("rename", &[&fast, "named.bin"]);
    tour.run("limit", &[&slow, "1M"]);
    assert_eq!(tour.run("limit", &["--turtle", "on"])["downloadLimitBps"], 1 << 20);
    assert_eq!(tour.run("limit", &["--turtle", "off"])["downloadLimitBps"], 0);
    tour.run("tag", &[&slow, "linux", "iso"]);
    assert_eq!(tour.service.task(&slow)["tags"], json!(["linux", "iso"]));
    assert_eq!(tour.run("list", &["--tag", "iso"]).as_array().map(Vec::len), Some(1));
    tour.run("resume-all", &[]);
    tour.wait(&fast, COMPLETED, true);
    tour.run("pause-all", &[]);
    tour.wait(&slow, PAUSED, true);
    fs::remove_file(tour.home.downloads().join("named.bin")).expect("it is there");
    tour.run("rescan", &[]);
    wait_until("the file is missed", || tour.service.task(&fast)["fileMissing"] == true);
    tour.run("rm", &[&fast]);
    tour.run("change-url", &[&slow, "http://other.test/f"]);
    let exported = text(tour.svc("export aria2", &[]));
    assert!(
        exported.contains("http://other.test/f") && exported.contains("max-download-limit=1048576"),
        "{exported}"
    );
    let session = tour.home.path().join("session");
    fs::write(&session, "http://imported.test/f\n  pause=true\n").expect("it is writable");
    let imported = tour.run("import aria2", &[session.to_str().expect("the path is plain")]);
    let imported = imported["added"][0].as_str().expect("an id").to_owned();
    imports(tour);
    let urls: Vec<_> = [&slow, &imported].map(|id| tour.service.task(id)["url"].clone()).into();
    assert_eq!(urls, ["http://other.test/f", "http://imported.test/f"]);
    assert_eq!(tour.get("tasks").as_array().map(Vec::len), Some(2), "one was removed");
    (slow, imported)
}

/// Downloads of other programs, none of which is added.
fn imports(tour: &Tour<'_>) {
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/import/tests/real");
    let list = tour.home.path().join("downloadList1.zip");
    // An archive without entries is its last record alone.
    fs::write(&list, [b"PK\x05\x06".as_slice(), &[0; 18]].concat()).expect("it is writable");
    let programs = [
        ("import qbittorrent", real.join("qbittorrent"), 3),
        ("import transmission", real.join("transmission"), 3),
        ("import browser", real.join("chromium"), 1),
        ("import jdownloader", list, 0),
    ];
    for (command, path, count) in programs {
        let path = path.to_str().expect("the path is plain");
        let found = tour.run(command, &["--dry-run", path]);
        assert_eq!(
            found["added"].as_array().map(Vec::len),
            Some(count),
            "{command}: {found}"
        );
    }
    let found = tour.read("import curl", &["--dry-run"], "curl 'http://a.test/f?key=1'");
    assert_eq!(found["added"], json!(["http://a.test/f?…"]));
}

fn queues(tour: &Tour<'_>, one: &str, two: &str) {
    let queue = || tour.find("queues", "name", "night");
    tour.run("queue create", &["night"]);
    tour.run("queue update", &["night", "--limit", "1M"]);
    assert_eq!(queue()["speedLimitKbps"], 1024);
    tour.run("queue schedule", &["night", "--start", "01:00", "--stop", "02:00"]);
    assert_eq!(queue()["scheduleStart"], "01:00");
    tour.run("queue stop", &["night"]);
    assert_eq!(queue()["isRunning"], false);
    tour.run("queue start", &["night"]);
    assert_eq!(queue()["isRunning"], true);
    tour.run("queue move", &["--to", "night", one, two]);
    tour.run("queue order", &["night", two, one]);
    let place = |id: &str| tour.service.task(id)["queueOrder"].as_i64();
    assert!(place(two) < place(one));
    tour.run("queue boost", &[one]);
    tour.wait(one, PAUSED, false);
    tour.run("queue delete", &["night"]);
    let queues = tour.run("queue list", &[]);
    assert_eq!(queues, tour.get("queues"));
    assert!(queue().is_null());
}

fn settings(tour: &Tour<'_>) {
    let file = tour.run("config path", &[]);
    tour.run("config set", &["url", &tour.service.url()]);
    let text = fs::read_to_string(file.as_str().expect("a path")).expect("it is written");
    assert!(text.contains(&tour.service.url()), "{text}");
    assert_eq!(tour.run("config get", &["url"]), tour.service.url());
    tour.run("config unset", &["url"]);
    assert!(tour.run("config list", &[])["url"].is_null());
    let setting = |name: &str| tour.run("config server get", &[name]);
    let described = tour.run("config server describe", &["default_segments"]);
    assert_eq!(
        (&described[0]["max"], &described[0]["default"]),
        (&json!(64), &json!("0"))
    );
    let of_agent = tour.run("config server describe", &["local_server_mcp"]);
    assert_eq!(of_agent[0]["kind"], "switch");
    tour.run("config server set", &["default_segments=4"]);
    assert_eq!(setting("default_segments"), "4");
    tour.run("config server unset", &["default_segments"]);
    assert_eq!(tour.run("config server list", &[])["values"]["default_segments"], "0");
    assert_eq!(tour.run("config server proxy", &[])["detected"], false);
    assert_eq!(tour.run("config server host-limits", &[])["domainCount"], 0);
}

/// Webhooks are on `/rpc` only.
fn webhooks(tour: &Tour<'_>) {
    let origin = Origin::start(vec![Resource::new("/hook", Content::bytes("thanks")).method("POST")]);
    let url = origin.url("/hook");
    let local = ["--allow-http", "--allow-private"];
    let added = tour.run(
        "webhook add",
        &[&[url.as_str(), "--name", "My chat"][..], &local[..]].concat(),
    );
    assert_eq!(added["id"], "my-chat");
    assert_eq!(added["events"], json!(["task.completed", "task.failed"]));
    let set = [
        "My chat",
        "--preset",
        "discord",
        "--secret-file",
        "-",
        "--event",
        "queue.drained",
    ];
    let changed = tour.read("webhook set", &set, "signing-key\n");
    assert_eq!(
        (&changed["preset"], &changed["signSecret"]),
        (&json!("discord"), &json!("***"))
    );
    assert_eq!(tour.run("webhook list", &[]), json!([changed]));
    let tested = tour.run("webhook test", &["my-chat", "--event", "task.failed"]);
    assert_eq!(
        (&tested["status"], &tested["responseBody"]),
        (&json!("delivered"), &json!("thanks"))
    );
    assert_eq!(tour.run("webhook simulate", &["queue.drained"]), json!({"count": 1}));
    wait_until("the example arrived", || origin.requests().len() == 2);
    let log = tour.run("webhook log", &[]);
    assert_eq!(log["deliveries"].as_array().map(Vec::len), Some(2));
    tour.run("webhook log", &["--clear"]);
    tour.run("webhook remove", &["my-chat"]);
    assert_eq!(tour.run("webhook list", &[]), json!([]));
}

fn unpacking(tour: &Tour<'_>) {
    let names = ["text.rar", "broken.zip"];
    let archive = include_bytes!("../../../../../host/post/tests/data/v5.rar");
    let origin = Origin::start(vec![
        Resource::new("/text.rar", Content::bytes(archive.to_vec())),
        Resource::new("/broken.zip", Content::bytes("no archive")),
    ]);
    let [whole, broken] = names.map(|name| {
        let added = tour.run("add", &[&origin.url(&format!("/{name}"))]);
        let task = added["taskIds"][0].as_str().expect("an id").to_owned();
        tour.wait(&task, COMPLETED, true);
        task
    });
    assert_eq!(tour.run("unpack", &[&whole])["state"], "done");
    assert!(tour.home.downloads().join("text").is_dir());
    assert_eq!(tour.run("post list", &[])["jobs"].as_array().map(Vec::len), Some(1));
    let ended = |id: u64| {
        let is_over =
            |job: &Value| job["jobId"] == id && ["done", "failed"].contains(&job["state"].as_str().unwrap_or(""));
        let jobs = || tour.get("post")["jobs"].as_array().cloned().unwrap_or_default();
        wait_until("the job has ended", || jobs().iter().any(is_over));
        jobs().into_iter().find(is_over).unwrap_or_default()["state"].clone()
    };
    let checksum = json!([{"kind": "checksum", "algorithms": ["sha-256"]}]).to_string();
    let started = tour.run("post start", &[&whole, "--steps", &checksum]);
    let job = started["jobId"].as_u64().expect("a number");
    assert_eq!(ended(job), "done");
    assert!(tour.home.downloads().join("text.rar.sha256").exists());
    let passwords = tour.read("post passwords", &["--file", "-"], "one\ntwo words\n");
    assert_eq!(passwords["ok"], true);
    let refused = tour.svc("unpack", &[&broken]).run();
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let jobs = tour.run("post list", &[]);
    let jobs = jobs["jobs"].as_array().expect("a list");
    let failed = jobs.iter().find(|job| job["state"] == "failed").expect("it failed");
    let failed = failed["jobId"].as_u64().expect("a number");
    tour.run("post retry", &[&failed.to_string()]);
    assert_eq!(ended(failed), "failed");
    let over = tour.svc("post cancel", &[&failed.to_string()]).run();
    assert_ne!(over.code, Some(0), "{over:?}");
    assert_eq!(tour.run("post clear", &[])["count"], 3);
    assert_eq!(tour.get("post")["jobs"], json!([]));
}

/// A torrent whose files are there, so that it is complete once they are checked.
fn torrents(tour: &Tour<'_>) {
    let port = support::swarm::free_port();
    let ports = ["start", "end"].map(|which| format!("bt_port_{which}={port}"));
    let [first, last] = ports.each_ref().map(String::as_str);
    let off = [
        "bt_enable_dht=false",
        "bt_enable_lsd=false",
        "bt_enable_upnp=false",
        first,
        last,
    ];
    tour.run("config server set", &off);
    let directory = tour.home.path().join("shared");
    let top = directory.join("set");
    fs::create_dir_all(&top).expect("the home is writable");
    for (name, bytes) in [("a.bin", 300_000), ("b.bin", 50_000)] {
        fs::write(top.join(name), vec![7; bytes]).expect("the home is writable");
    }
    let torrent = directory.join("set.torrent");
    let [top, directory, torrent] = [&top, &directory, &torrent].map(|path| path.to_str().expect("the path is plain"));
    let tracker = "http://127.0.0.1:1/announce";
    let made = Svc::new().args(["torrent", "create", top, "--tracker", tracker, "-o", torrent]);
    made.run().assert_success();
    let added = tour.run("add", &[torrent, "--dir", directory, "--check-integrity"]);
    let task = added["taskIds"][0].as_str().expect("an id");
    tour.wait(task, COMPLETED, true);
    wait_until("it seeds", || tour.run("torrent status", &[task])["isSeeding"] == true);
    let files = tour.run("torrent files", &[task]);
    assert_eq!(files["files"][1]["doneBytes"], 50_000, "{files}");
    assert_eq!(tour.run("torrent peers", &[task])["peers"], json!([]));
    assert_eq!(tour.run("torrent trackers", &[task])["trackers"][0]["url"], tracker);
    let pieces = tour.run("torrent pieces", &[task]);
    assert!(!pieces["bitfield"].as_str().unwrap_or("0").contains('0'), "{pieces}");
    tour.run("torrent announce", &[task]);
    tour.run("torrent recheck", &[task]);
    tour.run("torrent rename-file", &[task, "1", "c.bin"]);
    assert!(Path::new(top).join("c.bin").exists());
    tour.run("torrent set", &[task, "--sequential"]);
    tour.run("torrent seed", &[task, "--ratio", "2"]);
    assert_eq!(tour.get(&format!("tasks/{task}"))["seedRatioLimitMilli"], 2000);
    let copy = format!("{directory}/copy.torrent");
    tour.run("torrent export", &[task, "-o", &copy]);
    assert_eq!(
        fs::read(copy).expect("it is there"),
        fs::read(torrent).expect("it is there")
    );
    tour.run("torrent select", &[task, "1"]);
    assert_eq!(tour.run("torrent files", &[task])["files"][1]["wanted"], false);
    assert_eq!(tour.run("torrent session", &[])["isRunning"], true);
    assert_eq!(tour.run("torrent refresh-trackers", &[])["totalSources"], 0);
}

fn sites(tour: &Tour<'_>) {
    let count = || tour.get("site-auth").as_array().map(Vec::len);
    for site in ["https://one.test", "https://two.test"] {
        tour.read("site set", &[site, "--user", "me"], "secret\n");
    }
    assert_eq!(tour.run("site list", &[]), tour.get("site-auth"));
    assert_eq!(count(), Some(2));
    tour.run("site remove", &["https://one.test"]);
    assert_eq!(count(), Some(1));
    tour.run("site clear", &[]);
    assert_eq!(count(), Some(0));
}

fn cookies(tour: &Tour<'_>) {
    let count = || tour.get("site-cookies").as_array().map(Vec::len);
    let line = |domain: &str| format!("{domain}\tTRUE\t/\tTRUE\t0\tname\tvalue\n");
    tour.read("cookies import", &["-"], &(line("a.one.test") + &line("two.test")));
    assert_eq!(tour.run("cookies list", &[]), tour.get("site-cookies"));
    assert_eq!(count(), Some(2));
    tour.run("cookies remove", &["one.test"]);
    assert_eq!(count(), Some(1));
    // The cookies that are left, and this device's identity, which is made when the devices are first asked for.
    tour.run("link devices", &[]);
    assert_eq!(tour.run("secrets rotate", &[])["values"], 2);
    tour.run("cookies clear", &[]);
    assert_eq!(count(), Some(0));
}

/// Another service is paired, gets a download, and is away for the next one.
fn devices(tour: &Tour<'_>) {
    let there = Home::new();
    let other = there.serve();
    other.wait_until_ready();
    let asked_there = |words: &[&str]| text(shell(&there).env("SVC_URL", other.url()).args(words));
    let code = asked_there(&["link", "code", "--no-wait", "--json"]);
    let code: Value = serde_json::from_str(&code).expect("it is JSON");
    let code = code["code"].as_str().expect("six digits");
    assert_eq!(
        tour.run("link code", &["--no-wait"])["code"].as_str().map(str::len),
        Some(6)
    );
    tour.run("link hide", &[]);
    assert!(tour.run("link scan", &["--time", "1"]).is_array());
    assert!(tour.run("link approve", &[]).as_array().is_some_and(Vec::is_empty));
    let address = other.address();
    assert_eq!(tour.run("link probe", &[address])["host"], "127.0.0.1");
    let pairing = tour.svc("link pair", &[address, code, "--accept"]).spawn();
    wait_until("the pairing waits for its user", || {
        let requests = asked_there(&["link", "approve", "--json"]);
        let requests: Value = serde_json::from_str(&requests).expect("it is JSON");
        let Some(session) = requests[0]["sessionId"].as_str() else {
            return false;
        };
        asked_there(&["link", "approve", session, "--json"]);
        true
    });
    let paired = pairing.finish();
    assert_eq!(paired.code, Some(0), "{paired:?}");
    let device = tour.run("link devices", &[])[0]["fingerprint"].clone();
    let device = device.as_str().expect("a fingerprint");
    let tasks_there = || other.call("GET", "/api/v1/tasks", None).as_array().map(Vec::len);
    tour.run("link send", &[device, "http://192.0.2.1/sent"]);
    assert_eq!(tasks_there(), Some(1));
    assert_eq!(
        tour.run("link set", &[device, "--accept-tasks", "false"])["acceptsTasks"],
        false
    );
    other.terminate();
    tour.run("link send", &[device, "http://192.0.2.1/later"]);
    let waiting = tour.run("link outbox", &[]);
    let entry = waiting[0]["id"].as_str().expect("it waits");
    tour.run("link outbox", &["--remove", entry]);
    assert_eq!(tour.run("link outbox", &[]), json!([]));
    tour.run("link unpair", &[device]);
    assert_eq!(tour.run("link devices", &[]), json!([]));
}

/// A plugin that came with the service, and a group of tasks that it makes.
fn plugins(tour: &Tour<'_>) {
    let (name, server) = ("open-directory@svc", Server::start());
    let plugin = || tour.find("plugins", "identity", name);
    assert!(!tour.run("market search", &["directory"])[0].is_null());
    tour.run("market install", &["open-directory", "--yes"]);
    assert_eq!(tour.run("plugin list", &[])[0]["identity"], name);
    tour.run("plugin disable", &[name]);
    assert_eq!(plugin()["enabled"], false);
    tour.run("plugin enable", &[name]);
    assert_eq!(plugin()["enabled"], true);
    tour.run("plugin settings", &[name, "depth=1"]);
    assert_eq!(plugin()["settingsValues"]["depth"], "1");
    tour.run("market pin", &[name]);
    assert_eq!(plugin()["pinned"], true);
    tour.run("market unpin", &[name]);
    assert_eq!(plugin()["pinned"], false);
    assert_eq!(tour.run("plugin preview", &[&server.url])["plugin"], name);
    assert!(!tour.run("plugin log", &[name])["events"][0].is_null());
    tour.run("add", &[&server.url]);
    wait_until("there is a group", || !tour.get("groups")[0].is_null());
    let groups = tour.run("group list", &[]);
    let group = groups[0]["groupId"].as_str().expect("an id");
    assert_eq!(tour.run("group show", &[group])["group"]["groupId"], group);
    tour.run("group pause", &[group]);
    tour.run("group continue", &[group]);
    wait_until("its files are there", || {
        let shown = tour.run("group show", &[group]);
        let mut tasks = shown["tasks"].as_array().expect("a list").iter();
        tasks.all(|task| task["status"] == COMPLETED)
    });
    tour.run("group rm", &[group]);
    assert_eq!(tour.get("groups"), json!([]));
    tour.run("plugin rm", &[name]);
    assert!(plugin().is_null());
}

/// A plugin in an archive and in its author's folder.
fn packages(tour: &Tour<'_>) {
    let script = "export async function resolve(call, out) { out.title('one'); } export const preview = resolve;";
    let asked = json!({"permissions": {"hosts": ["https://one.test"], "optionalHosts": ["https://more.test"]}});
    let manifest = scripts::manifest("mine@test", "mine", asked);
    let archive = scripts::archive(tour.home, "mine", &manifest, script);
    let plugin = || tour.find("plugins", "identity", "mine@test");
    let installed = tour.run("plugin install", &[archive.to_str().expect("the path is plain")]);
    let digest = installed["pendingConsent"].as_str().expect("its user is asked");
    tour.run("plugin consent", &["mine@test", digest]);
    wait_until("it is loaded", || plugin()["loadStatus"] == "Loaded");
    tour.run("plugin allow", &["mine@test", "https://more.test"]);
    assert!(plugin().to_string().contains("https://more.test"), "{}", plugin());
    tour.run("plugin rm", &["mine@test"]);
    let folder = scripts::folder(
        tour.home,
        "own",
        &scripts::manifest("own@test", "own", json!({})),
        script,
    );
    let mut developing = tour
        .svc("plugin dev", &[folder.to_str().expect("the path is plain")])
        .spawn();
    wait_until("the folder is used", || {
        tour.find("plugins", "identity", "own@test")["devMode"] == true
    });
    assert!(developing.wait_for_line(|_| true).is_some());
    developing.interrupt();
    developing.finish();
}

/// A plugin that logs in to its site.
fn accounts(tour: &Tour<'_>) {
    let account = || tour.run("plugin accounts", &[])[0]["accounts"][0]["account"]["name"].clone();
    let archive = login::archive(tour.home);
    tour.run("plugin install", &[archive.to_str().expect("the path is plain")]);
    wait_until("it is loaded", || {
        tour.find("plugins", "identity", login::PLUGIN)["loadStatus"] == "Loaded"
    });
    let login = tour.svc("plugin login", &[login::PLUGIN, "--mode", "password"]);
    text(login.input("ann\nsecret\n1234\n"));
    assert_eq!(account(), "Ann");
    tour.run("plugin logout", &[login::PLUGIN]);
    assert!(account().is_null());
    tour.run("plugin rm", &[login::PLUGIN]);
}

/// A source with a plugin that gets a newer version.
fn market(tour: &Tour<'_>) {
    let shop = Shop::open("tests");
    shop.key("ann");
    shop.release("one@ann", "1.0.0", "ann", &[]);
    let version = || tour.find("plugins", "identity", "one@ann")["version"].clone();
    let shown = tour
        .service
        .call("POST", "/api/v1/market/sources", Some(&json!({"link": shop.link()})));
    let fingerprint = shown["fingerprint"].as_str().expect("it is shown");
    tour.run("market sources add", &[&shop.link(), "--fingerprint", fingerprint]);
    assert_eq!(tour.run("market sources list", &[]).as_array().map(Vec::len), Some(2));
    tour.run("market install", &["one", "--yes"]);
    assert_eq!(version(), "1.0.0");
    shop.release("one@ann", "1.1.0", "ann", &[]);
    tour.run("market sources refresh", &[]);
    let offers = tour.run("market list", &[]);
    assert!(offers.to_string().contains("1.1.0"), "{offers}");
    tour.run("market update", &["--yes"]);
    assert_eq!(version(), "1.1.0");
    tour.run("market rollback", &["one@ann"]);
    assert_eq!(version(), "1.0.0");
    tour.run("market unpin", &["one@ann"]);
    tour.run("market update", &["--yes"]);
    tour.run("plugin rollback", &["one@ann"]);
    assert_eq!(version(), "1.0.0");
    tour.run("plugin rm", &["one@ann"]);
    tour.run("market sources remove", &["tests"]);
    assert_eq!(tour.get("market/sources").as_array().map(Vec::len), Some(1));
}

/// A subscription to a feed of three items, whose downloads are left to its user.
fn feeds(tour: &Tour<'_>) {
    let item = |name: &&str| format!("<item><guid>{name}</guid><title>{name}</title><link>/{name}</link></item>");
    let shown = Arc::new(Mutex::new(vec!["one", "two", "three"]));
    let names = Arc::clone(&shown);
    let feed = Resource::changing("/feed", move |_| {
        let names = names.lock().expect("no test holds it and panics");
        let items: String = names.iter().map(item).collect();
        let feed = format!("<rss version=\"2.0\"><channel><title>All</title>{items}</channel></rss>");
        Version::numbered(Content::bytes(feed), names.len())
    });
    let file = Resource::new("/two", Content::bytes("two"));
    let origin = Origin::start(vec![feed, file]);
    let url = origin.url("/feed");
    let checked = tour.run("rss check", &[&url, "--include", "two"]);
    assert_eq!(checked["items"].as_array().map(Vec::len), Some(3), "{checked}");
    let added = tour.run("rss add", &[&url, "--no-download", "--allow-private"]);
    let source = || tour.find("rss", "sourceId", added["sourceId"].as_str().expect("an id"));
    wait_until("it was fetched", || source()["seeded"] == true);
    let listed = tour.run("rss list", &[]);
    assert_eq!(
        (&listed[0]["name"], listed.as_array().map(Vec::len)),
        (&json!("All"), Some(1))
    );
    let status = |guid: &str| {
        let items = tour.run("rss items", &[added["sourceId"].as_str().expect("an id")]);
        let mut items = items.as_array().expect("a list").iter();
        items
            .find(|item| item["guid"] == guid)
            .map(|item| item["status"].clone())
    };
    shown.lock().expect("no test holds it and panics").push("four");
    tour.run("rss refresh", &["All"]);
    wait_until("an item is new", || status("four") == Some(json!(0)));
    tour.run("rss set", &["All", "--name", "some", "--include", "o"]);
    assert_eq!(source()["name"], "some");
    tour.run("rss ignore", &["some", "one"]);
    tour.run("rss read", &["some", "four"]);
    tour.run("rss download", &["some", "two"]);
    wait_until("its file is there", || {
        tour.find("tasks", "fileName", "two")["status"] == COMPLETED
    });
    let after = ["one", "two", "three", "four"].map(|guid| status(guid).expect("it is one"));
    assert_eq!(after, [2, 1, 5, 2], "ignored, downloaded, from the first round, read");
    let rules = tour.home.path().join("rules.json");
    fs::write(&rules, r#"[{"includePattern": "x"}]"#).expect("it is writable");
    tour.run(
        "rss rules",
        &["some", "--set", rules.to_str().expect("the path is plain")],
    );
    assert_eq!(source()["rules"][0]["includePattern"], "x", "{}", source());
    let requests = || {
        origin
            .requests()
            .iter()
            .filter(|request| request.path() == "/feed")
            .count()
    };
    let fetched = requests();
    tour.run("rss refresh", &["some"]);
    wait_until("it is fetched again", || requests() > fetched);
    let exported = text(tour.svc("rss export", &[]));
    assert!(exported.contains(&url), "{exported}");
    tour.run("rss rm", &["some"]);
    assert_eq!(tour.get("rss"), json!([]));
    assert_eq!(
        tour.read("rss import", &["-"], &exported)["sourceIds"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    tour.run("rss rm", &["some"]);
}

fn keys(tour: &Tour<'_>) {
    let can = |key: &str| {
        let bearer = format!("Bearer {key}");
        let answer = http::ask(
            tour.service.address(),
            "GET",
            "/api/v1/tasks",
            &[("Authorization", &bearer)],
            None,
        );
        answer.expect("it answers").status == 200
    };
    assert_eq!(tour.run("key show", &[])["token"], KEY);
    tour.read("key set", &["--from", "-"], "another-key-22\n");
    assert!(can("another-key-22") && !can(KEY));
    let made = tour.run("key new", &[])["token"].clone();
    assert!(can(made.as_str().expect("it is shown")) && !can("another-key-22"));
}

fn desktop_only(tour: &Tour<'_>) {
    for name in ["one", "two"] {
        let body = json!({"url": format!("http://127.0.0.1:9/{name}.iso"), "referrer": "http://page.test/"});
        let client = [("X-Svc-Client", "test")];
        let taken = http::ask(tour.service.address(), "POST", "/download", &client, Some(&body));
        assert_eq!(taken.map(|answer| answer.status), Some(200));
    }
    let waiting = tour.run("capture list", &[]);
    let [one, two] = [0, 1].map(|place| waiting[place]["transactionId"].as_str().expect("an id").to_owned());
    let accepted = tour.run("capture accept", &[&one]);
    assert_eq!(accepted["taskIds"].as_array().map(Vec::len), Some(1), "{accepted}");
    tour.run("capture reject", &[&two]);
    assert_eq!(tour.run("capture list", &[]), json!([]));
    assert_eq!(tour.run("list", &[]).as_array().map(Vec::len), Some(1));
    let made = tour.run("key new", &[])["token"].clone();
    assert_eq!(tour.run("key show", &[])["token"], made);
    tour.run("key clear", &[]);
    assert_ne!(tour.run("key show", &[])["token"], made);
}
