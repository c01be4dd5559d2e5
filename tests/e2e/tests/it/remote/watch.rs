//! Following a service, over its restarts too.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use e2e::Service;
use support::{Content, Origin, Resource, behaviour};

use super::{Desk, assert_ended};

#[test]
fn every_event_is_a_line_of_json_until_the_service_ends() {
    let Desk { home, service } = Desk::new();
    let desk = Desk { home, service };
    let mut watching = desk.svc(&["watch", "--json"]).spawn();
    watching
        .wait_for(|event| event["type"] == "snapshot")
        .expect("a snapshot comes first");
    let id = desk.add_paused("http://a.test/f");
    let told = watching.wait_for(|event| event["type"] == "taskChanged" && event["data"]["taskId"] == *id);
    assert!(told.is_some());
    let Desk { home, service } = desk;
    service.terminate();
    assert_eq!(watching.finish().code, Some(0));
    drop(home);
}

#[test]
fn a_service_that_was_killed_is_found_again() {
    let Desk { home, service } = Desk::new();
    let desk = Desk { home, service };
    let mut watching = desk.svc(&["watch", "--json"]).spawn();
    watching
        .wait_for(|event| event["type"] == "snapshot")
        .expect("a snapshot comes first");
    let Desk { home, service } = desk;
    let address = service.address().to_owned();
    service.kill();
    let away = watching
        .wait_for(|event| event["type"] == "away")
        .expect("it is told that the service is away");
    assert!(away["data"]["retryInMs"].as_u64() <= Some(600), "{away}");
    let svc = home.svc("serve").args(["--bind", &address]);
    let service = Service::start(svc);
    service.wait_until_ready();
    watching
        .wait_for(|event| event["type"] == "snapshot")
        .expect("another snapshot follows");
    watching.interrupt();
    assert_eq!(watching.finish().code, Some(0));
}

#[test]
fn watching_some_tasks_ends_with_them() {
    let content = Content::seeded(5, 3 << 20);
    let origin = Origin::start(vec![Resource::new("/f.bin", content).with(behaviour::paced(4 << 20))]);
    let desk = Desk::new();
    let id = desk.add_paused(&origin.url("/f.bin"));
    let mut watching = desk.svc(&["watch", &id[..6]]).spawn();
    watching
        .wait_for_line(|line| line.contains("paused"))
        .expect("its state is told first");
    assert_ended(&desk.run(&["resume", &id]), 0, "resumed");
    let run = watching.finish();
    assert_eq!(run.code, Some(0));
    let last = run.stdout.last().expect("its end is told");
    assert!(last.contains("completed 100% of 3.0 MiB f.bin"), "{run:?}");
}

#[test]
fn a_reader_that_goes_ends_the_watching() {
    let desk = Desk::new();
    let mut watching = std::process::Command::new(e2e::binary::path())
        .args(["watch", "--json"])
        .env("SVC_URL", desk.service.url())
        .env("SVC_DATA_DIR", desk.home.data())
        .env("HOME", desk.home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(watching.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    assert!(first.starts_with(r#"{"type":"snapshot""#), "{first}");
    drop(reader);
    desk.add_paused("http://a.test/f");
    assert!(watching.wait().unwrap().success());
}
