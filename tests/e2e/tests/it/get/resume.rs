//! Stopping, and going on.

use std::time::Duration;

use e2e::{Run, Svc};
use support::{Content, Origin, Resource, Version, behaviour};

use crate::place::Place;

const MIB: u64 = 1 << 20;

fn content() -> Content {
    Content::seeded(41, 12 * MIB + 77)
}

/// Six seconds on one connection.
fn paced_origin() -> Origin {
    Origin::start(vec![Resource::new("/f.bin", content()).with(behaviour::paced(2 * MIB))])
}

/// Starts a download, and presses Ctrl-C once there are three MiB.
fn interrupted(place: &Place, url: &str, options: &[&str]) -> Run {
    let mut running = Svc::get(place.path()).args(options).arg(url).spawn();
    let enough = running.wait_for(|event| event["event"] == "progress" && event["done"].as_u64() > Some(3 * MIB));
    assert!(enough.is_some(), "it ended before three MiB were there");
    running.interrupt();
    running.finish()
}

#[test]
fn ctrl_c_saves_and_the_same_command_goes_on() {
    let origin = paced_origin();
    let url = origin.url("/f.bin");
    for options in [&["--segments", "1"][..], &["--segments", "4"], &[]] {
        let place = Place::new();
        let before = origin.bytes_sent();
        let run = interrupted(&place, &url, options);
        assert_eq!(run.code, Some(7), "{}", run.stderr);
        assert_eq!(run.event("summary").unwrap()["unfinished"], 1);
        assert_eq!(place.finished_names(), Vec::<String>::new());
        assert!(
            place.names().contains(&"f.bin.svcpart".to_owned()),
            "{:?}",
            place.names()
        );
        Svc::get(place.path()).args(options).arg(&url).run().assert_success();
        place.assert_file("f.bin", &content());
        assert_eq!(place.names(), ["f.bin"]);
        let again = origin.bytes_sent() - before - content().len();
        assert!(again <= 4 * MIB, "{options:?}: {again} bytes were sent again");
    }
}

#[test]
fn a_run_that_ends_at_once_says_how_much_it_received_and_not_the_size() {
    let paced = behaviour::when(behaviour::first, behaviour::paced(2 * MIB));
    let origin = Origin::start(vec![Resource::new("/f.bin", content()).with(paced)]);
    let url = origin.url("/f.bin");
    let place = Place::new();
    assert_eq!(interrupted(&place, &url, &["--segments", "1"]).code, Some(7));
    let run = Svc::get(place.path()).args(["--segments", "1"]).arg(&url).run();
    run.assert_success();
    place.assert_file("f.bin", &content());
    let received = run.event("finished").and_then(|event| event["receivedBytes"].as_u64());
    let left = content().len() - 3 * MIB;
    assert!(
        received.is_some_and(|received| (1..=left).contains(&received)),
        "{received:?} bytes were received where at most {left} were missing"
    );
}

#[test]
fn people_who_press_ctrl_c_are_told_how_to_go_on() {
    let origin = paced_origin();
    let place = Place::new();
    let running = Svc::new()
        .args(["get", "--dir"])
        .arg(place.path())
        .arg(origin.url("/f.bin"))
        .spawn();
    assert!(
        origin.wait_for_bytes(3 * MIB, Duration::from_secs(20)),
        "{:?}",
        running.finish()
    );
    running.interrupt();
    let run = running.finish();
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    let told = format!("{}{}", run.stdout.concat(), run.stderr);
    assert!(told.contains("same command"), "no word on how to go on: {told:?}");
}

#[test]
fn a_changed_file_starts_over() {
    let new = Content::seeded(42, 12 * MIB + 77);
    let version = {
        let new = new.clone();
        move |visit: &support::Visit| match visit.served {
            0..MIB => Version::numbered(content(), 0),
            _ => Version::numbered(new.clone(), 1),
        }
    };
    let origin = Origin::start(vec![
        Resource::changing("/f.bin", version).with(behaviour::paced(2 * MIB)),
    ]);
    let place = Place::new();
    let run = interrupted(&place, &origin.url("/f.bin"), &["--segments", "1"]);
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    let run = Svc::get(place.path()).arg(origin.url("/f.bin")).run();
    run.assert_success();
    place.assert_file("f.bin", &new);
    assert!(
        run.event("notice").is_some(),
        "nobody was told that it started over: {:?}",
        run.stdout
    );
}

#[test]
fn a_part_file_of_another_url_is_not_continued() {
    let one = paced_origin();
    let other = Content::seeded(43, 12 * MIB + 77);
    let two = Origin::start(vec![Resource::new("/f.bin", other.clone())]);
    let place = Place::new();
    interrupted(&place, &one.url("/f.bin"), &[]);
    Svc::get(place.path()).arg(two.url("/f.bin")).run().assert_success();
    let finished = place.finished_names();
    let [name] = finished.as_slice() else {
        panic!("{finished:?}")
    };
    place.assert_file(name, &other);
    assert!(
        place.names().contains(&"f.bin.svcpart".to_owned()),
        "{:?}",
        place.names()
    );
}

#[test]
fn no_resume_starts_over() {
    let origin = paced_origin();
    let place = Place::new();
    interrupted(&place, &origin.url("/f.bin"), &[]);
    let before = origin.bytes_sent();
    Svc::get(place.path())
        .arg("--no-resume")
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    assert!(origin.bytes_sent() - before >= content().len());
    let finished = place.finished_names();
    let [name] = finished.as_slice() else {
        panic!("{finished:?}")
    };
    place.assert_file(name, &content());
}

#[test]
fn a_damaged_journal_never_ends_in_a_wrong_file() {
    let origin = paced_origin();
    let place = Place::new();
    interrupted(&place, &origin.url("/f.bin"), &[]);
    let journal = place.path().join("f.bin.svcpart.journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&journal, &bytes).unwrap();
    Svc::get(place.path()).arg(origin.url("/f.bin")).run().assert_success();
    let finished = place.finished_names();
    let [name] = finished.as_slice() else {
        panic!("{finished:?}")
    };
    place.assert_file(name, &content());
}

#[test]
fn a_shortened_part_file_never_ends_in_a_wrong_file() {
    let origin = paced_origin();
    let place = Place::new();
    interrupted(&place, &origin.url("/f.bin"), &[]);
    let part = std::fs::File::options()
        .write(true)
        .open(place.path().join("f.bin.svcpart"))
        .unwrap();
    part.set_len(MIB).unwrap();
    Svc::get(place.path()).arg(origin.url("/f.bin")).run().assert_success();
    let finished = place.finished_names();
    let [name] = finished.as_slice() else {
        panic!("{finished:?}")
    };
    place.assert_file(name, &content());
}
