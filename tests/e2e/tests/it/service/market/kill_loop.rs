//! A service whose daemon is killed, or whose disk loses power, in the middle of installing, updating, rolling back or uninstalling has afterwards what
//! it had before or what was asked for, whole. And a plugin that is used meanwhile never fails.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use e2e::{
    Home, PowerDisk, Service,
    service::{ask, wait_until},
    setting,
};
use serde_json::{Value, json};

use super::{offer, plugin, preview, shop::Shop};
use crate::service::{guest, plugin_kill_loop::moment, plugins::Server};

/// The plugin of these tests.
const PLUGIN: &str = "one@ann";

const FILES: [(&str, &[u8]); 1] = [("one.json", br#"{"files": ["a.bin"]}"#)];

/// The last kill comes so much later than the act usually takes; in each further sweep as much later again.
const BEYOND: f64 = 1.4;

/// Sweeps until each act was found done and not done.
const SWEEPS: u64 = 6;

/// How often everything is left alone, to learn how long it takes: the first time more than what is usual is compiled.
const MEASURED: usize = 2;

/// Updates under a plugin that is in use.
const UPDATES: u32 = 8;

/// What is done to a plugin.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Act {
    Install,
    Update,
    RollBack,
    Uninstall,
}

/// In an order in which each finds what it needs.
const ACTS: [Act; 4] = [Act::Install, Act::Update, Act::RollBack, Act::Uninstall];

/// A source whose plugin has ever newer versions.
struct Seller {
    shop: Shop,
    patch: u32,
}

impl Seller {
    fn new() -> Self {
        let shop = Shop::open("kills");
        shop.key("ann");
        Self { shop, patch: 0 }
    }

    /// Releases a version and gives it.
    fn release(&mut self) -> String {
        self.patch += 1;
        let version = format!("1.0.{}", self.patch);
        self.shop.release(PLUGIN, &version, "ann", &[]);
        version
    }
}

/// What is installed, and what it can go back to.
#[derive(Debug, Clone, PartialEq, Default)]
struct State {
    version: Option<String>,
    previous: Option<String>,
}

impl State {
    fn of(service: &Service) -> Self {
        let found = plugin(service, PLUGIN);
        let text = |field: &str| found[field].as_str().map(str::to_owned);
        Self {
            version: text("version"),
            previous: text("previousVersion"),
        }
    }

    /// What it is once `act` is done; `newest` is what the source offers.
    fn after(&self, act: Act, newest: &str) -> Self {
        match act {
            Act::Install | Act::Update => Self {
                version: Some(newest.to_owned()),
                previous: self.version.clone(),
            },
            Act::RollBack => Self {
                version: self.previous.clone(),
                previous: self.version.clone(),
            },
            Act::Uninstall => Self::default(),
        }
    }
}

/// Does it. `None` if the service did not live to answer.
fn act(address: &str, act: Act) -> Option<u16> {
    let one = format!("/api/v1/plugins/{PLUGIN}");
    let answer = match act {
        Act::Install | Act::Update => {
            let body = json!({"pluginId": PLUGIN});
            ask(address, "POST", "/api/v1/market/install", Some(&body))
        }
        Act::RollBack => ask(address, "POST", &format!("{one}/rollback"), None),
        Act::Uninstall => ask(address, "DELETE", &one, None),
    };
    answer.map(|answer| answer.status)
}

/// Agrees to what is asked for, if anything is.
fn agree(service: &Service) {
    let pending = plugin(service, PLUGIN)["pending"].take();
    if let Some(digest) = pending["digest"].as_str() {
        let agreed = guest::switch(service, PLUGIN, &json!({"enabled": true, "consent": digest}));
        assert_eq!(agreed.status, 200, "{}", agreed.body);
    }
}

/// Asks the source for news until it tells of this version: a kill may have come while they were written down.
fn learn_of(service: &Service, version: &str) {
    service.call("POST", "/api/v1/market/refresh", Some(&json!({})));
    assert_eq!(offer(service, PLUGIN)["version"], version);
}

/// What interrupts an act.
enum Blow<'a> {
    Kill,
    /// The home is on this disk.
    Cut(&'a mut PowerDisk),
}

#[test]
fn what_is_killed_at_any_moment_is_done_or_not_done_and_what_is_there_works() {
    every_act_is_whole(&Home::new(), Blow::Kill, setting::kills());
}

#[test]
fn what_loses_its_disk_at_any_moment_is_done_or_not_done_and_what_is_there_works() {
    let mut disk = PowerDisk::new(512);
    let home = Home::on(&disk.path());
    every_act_is_whole(&home, Blow::Cut(&mut disk), setting::cuts());
}

#[expect(clippy::print_stdout, reason = "says how often both sides of each act occurred")]
fn every_act_is_whole(home: &Home, mut blow: Blow<'_>, blows: u64) {
    let server = Server::with(&FILES);
    let url = format!("{}one.json", server.url);
    let mut seller = Seller::new();
    let mut newest = seller.release();
    let mut service = home.serve();
    service.wait_until_ready();
    seller.shop.adopt(&service);

    let mut usual = Vec::new();
    for kind in ACTS.repeat(MEASURED) {
        if kind == Act::Update {
            newest = seller.release();
            learn_of(&service, &newest);
        }
        let began = Instant::now();
        assert_eq!(act(service.address(), kind), Some(200), "{kind:?}");
        usual.push(began.elapsed());
        agree(&service);
    }

    let usual = usual.split_off(usual.len() - ACTS.len());
    let rounds = blows.div_ceil(4);
    let mut counts = [[0; 2]; 4];
    let mut round = 0;
    while round < rounds || (counts.iter().flatten().any(|count| *count == 0) && round < SWEEPS * rounds) {
        for (kind, usual) in ACTS.into_iter().zip(&usual) {
            if kind == Act::Update {
                newest = seller.release();
                learn_of(&service, &newest);
            }
            // At the end of a sweep it is over and acknowledged.
            let moment = (round % rounds + 1 < rounds).then(|| moment(*usual, BEYOND, round, rounds));
            let is_done;
            (service, is_done) = interrupted(home, service, kind, moment, &newest, &mut blow);
            counts[kind as usize][usize::from(is_done)] += 1;
            let told = format!("{kind:?} interrupted after {moment:?}");
            assert_works(home, &service, &url, &told);
            if !is_done {
                // What was not done is done now, so that the next act finds what it needs.
                assert_eq!(act(service.address(), kind), Some(200), "{told}");
                agree(&service);
                assert_works(home, &service, &url, &told);
            }
        }
        round += 1;
    }
    assert_eq!(service.terminate().code, Some(0));
    for (kind, [undone, done]) in ACTS.into_iter().zip(counts) {
        println!(
            "{kind:?}: {undone} times as before, {done} times done, over {:?}",
            usual[kind as usize].mul_f64(BEYOND)
        );
        // An act in memory may be over before the disk has lost power.
        let is_met = undone > 0 || matches!(blow, Blow::Cut(_));
        assert!(is_met && done > 0, "{kind:?}: one side was never met");
    }
    assert!(counts.iter().any(|[undone, _]| *undone > 0), "nothing was interrupted");
}

/// Interrupts an act `moment` after it began or, without one, when it is acknowledged, and starts the service again. Says
/// whether the act was done; it is as if it had never begun otherwise.
fn interrupted(
    home: &Home,
    service: Service,
    kind: Act,
    moment: Option<Duration>,
    newest: &str,
    blow: &mut Blow<'_>,
) -> (Service, bool) {
    let before = State::of(&service);
    let after = before.after(kind, newest);
    let daemon = home.daemon().expect("a daemon runs");
    let address = service.address().to_owned();
    let acting = thread::spawn(move || act(&address, kind));
    match moment {
        #[expect(clippy::disallowed_methods, reason = "the moment of the kill is what is tried out")]
        Some(moment) => thread::sleep(moment),
        None => wait_until("it is answered", || acting.is_finished()),
    }
    let is_answered = acting.is_finished();
    if let Blow::Cut(disk) = blow {
        disk.cut();
    }
    daemon.kill();
    let is_acknowledged = acting.join().expect("asking does not panic") == Some(200);
    service.kill();
    if let Blow::Cut(disk) = blow {
        disk.restart();
    }
    let proves_it = is_acknowledged && (is_answered || matches!(blow, Blow::Kill));
    let service = home.serve();
    service.wait_until_ready();
    let now = State::of(&service);
    let told = format!("{kind:?} interrupted after {moment:?}: {before:?} → {after:?}, {now:?} is there");
    assert!(now == after || (now == before && !proves_it), "{told}");
    agree(&service);
    (service, now == after)
}

/// What is there works, everybody agrees on what that is, and nothing else is on the disk.
fn assert_works(home: &Home, service: &Service, url: &str, told: &str) {
    let State { version, previous } = State::of(service);
    let installed = offer(service, PLUGIN)["installed"].take();
    assert_eq!(
        installed["version"],
        version.clone().map_or(Value::Null, Value::from),
        "{told}"
    );
    match &version {
        Some(version) => wait_until(told, || preview(service, url)["name"] == *version),
        None => assert_eq!(preview(service, url)["plugin"], "", "{told}"),
    }
    let packages = fs::read_dir(home.data().join("plugins/store")).expect("it can be listed");
    let packages: Vec<_> = packages.map(|entry| entry.expect("it can be listed").path()).collect();
    let known = usize::from(version.is_some()) + usize::from(previous.is_some());
    assert!(packages.len() <= known, "{told}: {packages:?}");
    for package in packages {
        assert!(package.join(".complete").is_file(), "{told}: {}", package.display());
    }
}

#[test]
fn a_plugin_that_is_updated_while_it_is_used_never_fails() {
    let (home, server) = (Home::new(), Server::with(&FILES));
    let url = format!("{}one.json", server.url);
    let mut seller = Seller::new();
    seller.release();
    let service = home.serve();
    service.wait_until_ready();
    seller.shop.adopt(&service);
    assert_eq!(act(service.address(), Act::Install), Some(200));
    agree(&service);
    let (is_over, address) = (AtomicBool::new(false), service.address());
    let body = json!({ "url": url });
    let (calls, versions) = thread::scope(|scope| {
        let caller = scope.spawn(|| {
            let (mut calls, mut versions) = (0, Vec::new());
            while !is_over.load(Ordering::Acquire) {
                let answer = ask(address, "POST", "/api/v1/resolve/preview", Some(&body))
                    .expect("it answers")
                    .body;
                assert_eq!(
                    (&answer["error"], &answer["items"][0]["name"]),
                    (&json!(""), &json!("a.bin")),
                    "{answer}"
                );
                let version = answer["name"].as_str().expect("a title").to_owned();
                if versions.last() != Some(&version) {
                    versions.push(version);
                }
                calls += 1;
            }
            (calls, versions)
        });
        for update in 0..UPDATES {
            let newest = seller.release();
            learn_of(&service, &newest);
            let kind = if update % 3 == 2 { Act::RollBack } else { Act::Update };
            assert_eq!(act(service.address(), kind), Some(200));
            agree(&service);
        }
        is_over.store(true, Ordering::Release);
        caller.join().expect("no call fails")
    });
    assert!(versions.len() > 2, "{versions:?}");
    assert_eq!(service.terminate().code, Some(0));
    println!("{calls} calls through {UPDATES} changes of version: {versions:?}");
}
