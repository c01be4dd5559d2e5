//! Several files in one run.

use e2e::Svc;
use support::{Content, Origin, Resource};

use crate::place::Place;

fn content(n: u64) -> Content {
    Content::seeded(60 + n, 100_000 + n)
}

fn origin() -> Origin {
    Origin::start(
        (0..4)
            .map(|n| Resource::new(&format!("/{n}.bin"), content(n)))
            .collect(),
    )
}

fn assert_files(place: &Place, count: u64) {
    for n in 0..count {
        place.assert_file(&format!("{n}.bin"), &content(n));
    }
}

#[test]
fn every_url_becomes_a_file() {
    let origin = origin();
    let place = Place::new();
    let run = Svc::get(place.path())
        .args(["--jobs", "2"])
        .args((0..4).map(|n| origin.url(&format!("/{n}.bin"))))
        .run();
    run.assert_success();
    assert_files(&place, 4);
    assert_eq!(
        run.events().iter().filter(|event| event["event"] == "finished").count(),
        4
    );
}

#[test]
fn a_list_comes_from_a_file_or_standard_input() {
    let origin = origin();
    let list = format!(
        "# a comment\n{}\n\n{}\n  out=1.bin\n{}\r\n",
        origin.url("/0.bin"),
        origin.url("/1.bin"),
        origin.url("/2.bin")
    );
    let place = Place::new();
    Svc::get(place.path())
        .args(["--input-file", "-"])
        .input(list.clone())
        .run()
        .assert_success();
    assert_files(&place, 3);

    let place = Place::new();
    let path = place.aside("a/list.txt");
    std::fs::write(&path, list).unwrap();
    Svc::get(place.path())
        .arg("--input-file")
        .arg(&path)
        .run()
        .assert_success();
    assert_files(&place, 3);
}

#[test]
fn one_failure_does_not_stop_the_others_and_is_the_exit_code() {
    let origin = origin();
    let place = Place::new();
    let run = Svc::get(place.path())
        .args([origin.url("/0.bin"), origin.url("/missing"), origin.url("/1.bin")])
        .run();
    run.assert_failure(3, "not-found");
    assert_files(&place, 2);
    assert_eq!(place.names(), ["0.bin", "1.bin"]);
}
