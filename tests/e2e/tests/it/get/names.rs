//! What files are called, and what happens when the name is taken.

use e2e::Svc;
use support::{Content, Origin, Resource, behaviour};

use super::{small, small_origin};
use crate::place::Place;

fn check(path: &str, disposition: Option<&'static [u8]>, media_type: &'static str, expected: &str) {
    let mut resource = Resource::new(path, small()).media_type(media_type);
    if let Some(disposition) = disposition {
        resource = resource.with(behaviour::header("Content-Disposition", disposition));
    }
    let origin = Origin::start(vec![resource]);
    let place = Place::new();
    Svc::get(place.path()).arg(origin.url(path)).run().assert_success();
    place.assert_file(expected, &small());
    assert_eq!(place.names(), [expected]);
}

#[test]
fn the_name_comes_from_the_server_then_the_url_then_the_type() {
    let bytes = "application/octet-stream";
    check("/dir/plain.bin", None, bytes, "plain.bin");
    check("/dir/a%20b%C3%A9.bin", None, bytes, "a bé.bin");
    check(
        "/x.bin",
        Some(b"attachment; filename=\"server.bin\""),
        bytes,
        "server.bin",
    );
    check(
        "/x.bin",
        Some(b"attachment; filename=old.bin; filename*=UTF-8''n%C3%A9w.bin"),
        bytes,
        "néw.bin",
    );
    check("/", None, "application/zip", "download.zip");
}

#[test]
fn a_query_is_no_part_of_the_name() {
    let origin = small_origin();
    let place = Place::new();
    Svc::get(place.path())
        .arg(origin.url("/f.bin?session=1/2/evil.exe"))
        .run()
        .assert_success();
    assert_eq!(place.names(), ["f.bin"]);
}

#[test]
fn a_chosen_name_wins_and_directories_are_made() {
    let origin = small_origin();
    let place = Place::new();
    let below = place.path().join("new/below");
    Svc::get(&below)
        .args(["--out", "mine.dat"])
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    place.assert_file("new/below/mine.dat", &small());
}

#[test]
fn a_taken_name_is_numbered_replaced_or_left_alone() {
    let origin = Origin::start(vec![Resource::new("/f.tar.gz", small())]);
    let older = Content::bytes(*b"older");
    let get = |place: &Place, rule: &str| {
        std::fs::write(place.path().join("f.tar.gz"), b"older").unwrap();
        Svc::get(place.path())
            .args(["--conflict", rule])
            .arg(origin.url("/f.tar.gz"))
            .run()
    };

    let place = Place::new();
    get(&place, "rename").assert_success();
    place.assert_file("f.tar.gz", &older);
    place.assert_file("f (1).tar.gz", &small());
    get(&place, "rename").assert_success();
    place.assert_file("f (2).tar.gz", &small());

    let place = Place::new();
    get(&place, "overwrite").assert_success();
    place.assert_file("f.tar.gz", &small());
    assert_eq!(place.names(), ["f.tar.gz"]);

    let place = Place::new();
    let run = get(&place, "skip");
    assert!(run.event("skipped").is_some(), "{:?}", run.stdout);
    place.assert_file("f.tar.gz", &older);
    assert_eq!(place.names(), ["f.tar.gz"]);
}

#[test]
fn two_downloads_of_one_name_end_as_two_files() {
    let one = Origin::start(vec![Resource::new("/same.bin", Content::seeded(1, 400_000))]);
    let two = Origin::start(vec![Resource::new("/same.bin", Content::seeded(2, 500_000))]);
    let place = Place::new();
    Svc::get(place.path())
        .args([one.url("/same.bin"), two.url("/same.bin")])
        .run()
        .assert_success();
    assert_eq!(place.names(), ["same (1).bin", "same.bin"]);
    let mut sizes: Vec<u64> = place
        .names()
        .iter()
        .map(|name| std::fs::metadata(place.path().join(name)).unwrap().len())
        .collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [400_000, 500_000]);
}

#[test]
fn the_servers_time_is_kept_if_wanted() {
    let origin = small_origin();
    let place = Place::new();
    Svc::get(place.path())
        .arg("--server-time")
        .arg(origin.url("/f.bin"))
        .run()
        .assert_success();
    let modified = std::fs::metadata(place.path().join("f.bin"))
        .unwrap()
        .modified()
        .unwrap();
    // Wed, 21 Oct 2015 07:28:00 GMT.
    assert_eq!(
        modified.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs(),
        1_445_412_480
    );
}
