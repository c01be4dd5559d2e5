//! A service whose processes are killed, or whose disk loses power, again and again under load keeps everything that it
//! acknowledged.

mod facts;
mod model;
mod worker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use e2e::{
    Home, PowerDisk, Service,
    service::{Daemon, wait_until},
    setting,
};
use rustix::process::Signal;
use serde_json::Value;
use support::{Content, Origin, Resource, behaviour};

pub(crate) use self::model::Random;
use self::{
    facts::{FACT_CHANGES, Facts},
    model::{Counts, TASK_CHANGES},
    worker::{Client, Worker},
};

const MIB: u64 = 1 << 20;

/// The sizes of the files that are downloaded, over and over: some end between two kills, some need several.
const FILES: [u64; 3] = [MIB / 3, 3 * MIB + 1, 10 * MIB + 77];

/// Bytes per second of one connection, so that a kill finds downloads under way.
const PACE: u64 = 4 * MIB;

/// How long the load may run before a kill, unless [`MOST_BETWEEN_KILLS`] have been sent before.
const LOAD_TIME: Duration = Duration::from_millis(600);

/// What the origin sends at most between two kills.
const MOST_BETWEEN_KILLS: u64 = 8 * MIB;

/// How long the service may be away after its daemon was killed. An idle machine needs a tenth; this one is shared.
const RECOVERY: Duration = Duration::from_secs(10);

/// Clients of each kind.
const CLIENTS: usize = 2;

/// How many times as many kills there may be until both sides of each moment have been met.
const AT_MOST: u64 = 6;

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Agent,
    Both,
}

#[test]
fn nothing_acknowledged_is_lost_when_processes_are_killed_under_load() {
    keeps_what_was_acknowledged(&Home::new(), None, setting::kills());
}

#[test]
fn nothing_acknowledged_is_lost_when_the_disk_loses_power_under_load() {
    let mut disk = PowerDisk::new(4096);
    let home = Home::on(&disk.path());
    keeps_what_was_acknowledged(&home, Some(&mut disk), setting::cuts());
}

impl Victim {
    fn choose(random: &mut Random, loses_power: bool) -> Self {
        match random.next() % 4 {
            _ if loses_power => Self::Both,
            0 => Self::Agent,
            1 => Self::Both,
            _ => Self::Daemon,
        }
    }
}

/// With a disk, which `home` is on, it loses power just before both processes are killed.
#[expect(clippy::print_stdout, reason = "says how often both sides of each change occurred")]
fn keeps_what_was_acknowledged(home: &Home, mut disk: Option<&mut PowerDisk>, kills: u64) {
    let origin = origin();
    let mut random = Random::new(0x5eed);
    let mut workers: Vec<_> = (0..2 * CLIENTS)
        .map(|number| Worker::new(number, random.next(), origin.url("")))
        .collect();
    let mut facts = Facts::new(random.next());
    let mut service = home.serve();
    let (mut recoveries, mut starts) = (Vec::new(), Vec::new());
    let mut kill = 0;
    while kill < kills || (!missing(&workers, &facts).is_empty() && kill < AT_MOST * kills) {
        kill += 1;
        let victim = Victim::choose(&mut random, disk.is_some());
        let before = home.daemon().expect("a daemon runs");
        let (stop, doubts) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
        std::thread::scope(|scope| {
            for (number, worker) in workers.iter_mut().enumerate() {
                let client = if number < CLIENTS {
                    Client::rest(&service)
                } else {
                    Client::rpc(&service)
                };
                let client = client.doubting(&doubts);
                scope.spawn(|| worker.work(client, &stop));
            }
            let rpc = service.rpc();
            scope.spawn(|| facts.work(rpc, &stop, &doubts));
            let enough = origin.bytes_sent() + random.next() % MOST_BETWEEN_KILLS;
            origin.wait_for_bytes(enough, LOAD_TIME.mul_f64(random.fraction()));
            if let Some(disk) = &mut disk {
                doubts.store(true, Ordering::Release);
                disk.cut();
            }
            if victim != Victim::Daemon {
                service.signal(Signal::KILL);
            }
            if victim != Victim::Agent {
                before.kill();
            }
            if victim == Victim::Daemon {
                recoveries.push(recovery(home, &service, &before));
            }
            stop.store(true, Ordering::Release);
        });
        if victim != Victim::Daemon {
            let began = Instant::now();
            drop(service);
            if let Some(disk) = &mut disk {
                disk.restart();
            }
            service = home.serve();
            service.wait_until_ready();
            starts.push(began.elapsed());
        }
        let after = home.daemon().expect("a daemon runs");
        assert_eq!(
            after == before,
            victim == Victim::Agent,
            "kill {kill}: {victim:?}, {before:?}, {after:?}"
        );
        check(
            home,
            &service,
            &mut workers,
            &mut facts,
            &format!("after kill {kill} ({victim:?})"),
        );
    }
    let finished = finish(home, service, &mut workers);
    println!(
        "{kill} kills; after the daemon's: back {}; after the agent's or both: {}; {finished} files verified at the end\n\
         {:#?}",
        told(&mut recoveries),
        told(&mut starts),
        counts(&workers, &facts),
    );
    let missing = missing(&workers, &facts);
    assert!(missing.is_empty(), "of these, something did not occur: {missing:?}");
}

fn counts(workers: &[Worker], facts: &Facts) -> Counts {
    let mut counts = facts.counts.clone();
    for worker in workers {
        counts.add(&worker.model.counts);
    }
    counts
}

/// The kinds of changes that were never acknowledged, or only ever cut off before or after they were done.
fn missing(workers: &[Worker], facts: &Facts) -> Vec<(&'static str, model::Count)> {
    counts(workers, facts).missing(&[&TASK_CHANGES[..], &FACT_CHANGES].concat())
}

fn origin() -> Origin {
    let resource = |(number, length): (usize, &u64)| {
        let content = content(number, *length);
        Resource::new(&format!("/{number}"), content).with(behaviour::paced(PACE))
    };
    Origin::start(FILES.iter().enumerate().map(resource).collect())
}

fn content(number: usize, length: u64) -> Content {
    Content::seeded(70 + number as u64, length)
}

/// How long it takes until reads are answered from a new daemon.
fn recovery(home: &Home, service: &Service, killed: &Daemon) -> Duration {
    let began = Instant::now();
    wait_until("another daemon answers", || {
        home.daemon().is_some_and(|daemon| daemon != *killed)
            && service
                .ask("GET", "/api/v1/tasks?limit=1", None)
                .is_some_and(|answer| answer.status == 200)
    });
    let took = began.elapsed();
    assert!(took < RECOVERY, "reads are answered only {took:?} after the kill");
    took
}

fn tasks(service: &Service) -> Vec<Value> {
    let list = service.call("GET", "/api/v1/tasks", None);
    list.as_array().expect("a list of tasks").clone()
}

/// Everything that was acknowledged is there; what was not is there or not, but whole.
fn check(home: &Home, service: &Service, workers: &mut [Worker], facts: &mut Facts, when: &str) {
    let mut tasks = tasks(service);
    facts.check(&mut service.rpc(), &mut tasks, when);
    for worker in workers.iter_mut() {
        worker.model.check(&mut tasks, when);
    }
    assert!(tasks.is_empty(), "{when}: nobody asked for these: {tasks:#?}");
    for task in self::tasks(service).iter().filter(|task| task["status"] == 3) {
        verify(home, task);
    }
}

/// A completed task's file is byte-identical. Gives its name.
fn verify(home: &Home, task: &Value) -> String {
    let url = task["url"].as_str().expect("tasks have URLs");
    let name = task["fileName"].as_str().expect("completed tasks have names");
    verify_file(home, url, name, task);
    name.to_owned()
}

fn verify_file(home: &Home, url: &str, name: &str, of: &dyn std::fmt::Debug) {
    let number = url.rsplit('/').next().expect("URLs have paths");
    let number: usize = number.parse().expect("paths are numbers");
    let difference = content(number, FILES[number]).difference(&home.downloads().join(name));
    assert!(
        matches!(difference, Ok(None)),
        "{difference:?} of {of:#?}\namong {:?}",
        names_in(home)
    );
}

/// Lets every download end and compares all of them; no file of no task is left. Gives how many there were.
fn finish(home: &Home, service: Service, workers: &mut [Worker]) -> usize {
    Facts::end(&mut service.rpc());
    service.call("PUT", "/api/v1/tasks/continue", None);
    wait_until("every download ends", || {
        let tasks = tasks(&service);
        let failed: Vec<_> = tasks.iter().filter(|task| task["status"] == 4).collect();
        assert!(failed.is_empty(), "these failed: {failed:#?}");
        tasks.iter().all(|task| task["status"] == 3)
    });
    let tasks = tasks(&service);
    let mut wanted: Vec<_> = tasks.iter().map(|task| verify(home, task)).collect();
    for kept in workers
        .iter_mut()
        .flat_map(|worker| std::mem::take(&mut worker.model.kept))
    {
        if kept.is_certain {
            verify_file(home, &kept.url, &kept.name, &kept);
        }
        wanted.push(kept.name);
    }
    let left_over: Vec<_> = names_in(home)
        .into_iter()
        .filter(|name| !wanted.contains(name))
        .collect();
    assert_eq!(left_over, Vec::<String>::new(), "these files are no task's");
    let run = service.terminate();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(home.processes(), Vec::<i32>::new(), "something still runs");
    tasks.len()
}

/// The names in the directory of downloads.
fn names_in(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.downloads()).expect("the directory is there");
    entries
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

/// Median and maximum.
fn told(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let most = times.last().copied().unwrap_or_default();
    format!("{} times, median {median:.0?}, at most {most:.0?}", times.len())
}
