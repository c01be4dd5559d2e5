//! Seeding: how much, how long, and again after a restart. What was sent is counted by who got it.

use e2e::{Home, Service, Svc};
use serde_json::{Value, json};
use support::swarm::{Libtorrent, Tracker};
use tempfile::TempDir;

use super::{
    BASE64, COMPLETED, MIB, PIECE, RATIO_REACHED, SEEDS, Shared, peers, serve, set, wait_until, wait_until_complete,
};

/// A leecher of libtorrent that finds the service by the tracker.
fn leech(shared: &Shared, tracker: &Tracker) -> (Libtorrent, TempDir) {
    let port = tracker
        .announces()
        .last()
        .expect("the service has announced itself")
        .port;
    let target = tempfile::tempdir().unwrap();
    let mut leecher = Libtorrent::start();
    leecher.leech(&shared.made.path, target.path(), &[]);
    leecher.connect(&[([127, 0, 0, 1], port).into()]);
    (leecher, target)
}

/// A magnet link with a tracker that knows nobody, so that it tells where the service accepts peers, and with these peers.
fn request(shared: &mut Shared, tracker: &Tracker) -> Value {
    let seeder = shared.seed(&[]);
    json!({"url": shared.made.magnet(&format!("&tr={}{}", tracker.url(), peers(&[seeder])))})
}

fn seeding(service: &Service, id: &str) -> u64 {
    service.task(id)["seedingStatus"].as_u64().unwrap()
}

#[test]
fn seeding_ends_at_its_ratio_within_a_piece() {
    let mut shared = Shared::one_file(31, 4 * MIB);
    let tracker = Tracker::with_peers(&[]);
    let home = Home::new();
    let service = serve(&home);
    set(&service, &[("bt_seed_ratio_limit", "0.5")]);
    let request = request(&mut shared, &tracker);
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    assert_eq!(seeding(&service, &id), SEEDS);
    // The one that it was downloaded from must not give the rest.
    shared.libtorrent = Libtorrent::start();
    let (mut leecher, _target) = leech(&shared, &tracker);
    wait_until("the ratio is reached", || seeding(&service, &id) == RATIO_REACHED);
    let got = leecher.state()["downloaded"].as_u64().unwrap();
    let uploaded = service.task(&id)["uploadedBytes"].as_u64().unwrap();
    for bytes in [got, uploaded] {
        assert!(
            (2 * MIB..=2 * MIB + PIECE).contains(&bytes),
            "{got} arrived, {uploaded} sent"
        );
    }
    wait_until("the tracker knows that it has stopped", || {
        tracker.announces().iter().any(|announce| announce.event == "stopped")
    });
    leecher.wait_until("it has left", |state| state["peers"] == 0);
    assert_eq!(service.task(&id)["status"], COMPLETED);
    let last = tracker.announces().pop().unwrap();
    assert_eq!(
        (last.left, last.downloaded, last.uploaded),
        (0, shared.content.len(), uploaded)
    );
}

#[test]
fn what_is_not_to_be_seeded_is_not() {
    let mut shared = Shared::one_file(32, MIB);
    let tracker = Tracker::with_peers(&[]);
    let home = Home::new();
    let service = serve(&home);
    let mut request = request(&mut shared, &tracker);
    request["noSeed"] = json!(true);
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    wait_until("the tracker knows that it has stopped", || {
        tracker.announces().iter().any(|announce| announce.event == "stopped")
    });
    assert_ne!(seeding(&service, &id), SEEDS);
    let (mut leecher, _target) = leech(&shared, &tracker);
    leecher.connect(&[]);
    let events: Vec<_> = tracker.announces().into_iter().map(|announce| announce.event).collect();
    assert_eq!(events.first().map(String::as_str), Some("started"), "{events:?}");
    assert!(events.contains(&"completed".to_owned()), "{events:?}");
    assert_eq!(leecher.state()["downloaded"], 0);
}

#[test]
fn seeding_ends_after_its_time() {
    const TIME_REACHED: u64 = 3;
    let mut shared = Shared::one_file(33, MIB);
    let tracker = Tracker::with_peers(&[]);
    let home = Home::new();
    let service = serve(&home);
    let mut request = request(&mut shared, &tracker);
    request["seedTimeLimitSecs"] = json!(1);
    let id = service.create(&request);
    wait_until("its time is over", || seeding(&service, &id) == TIME_REACHED);
    assert_eq!(service.task(&id)["status"], COMPLETED);
}

#[test]
fn seeding_goes_on_after_a_restart_and_after_a_kill() {
    let mut shared = Shared::one_file(34, 3 * MIB);
    let tracker = Tracker::with_peers(&[]);
    let home = Home::new();
    let mut service = serve(&home);
    let request = request(&mut shared, &tracker);
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    // From now on the service is the only one that has anything.
    shared.libtorrent = Libtorrent::start();
    for times in 1..=3 {
        let (mut leecher, target) = leech(&shared, &tracker);
        leecher.wait_until_seeding();
        shared.check(&target.path().join("one.bin"));
        let uploaded = || service.task(&id)["uploadedBytes"].as_u64();
        let least = if times == 2 { 2 } else { 1 } * shared.content.len();
        wait_until("it is counted, with what was sent before the restart", || {
            uploaded() >= Some(least)
        });
        drop(leecher);
        if times == 2 {
            service.kill();
            home.daemon().expect("it runs").kill();
            wait_until("everything is dead", || home.processes().is_empty());
        } else {
            assert_eq!(service.terminate().code, Some(0));
        }
        let announces = tracker.announces().len();
        service = home.serve();
        service.wait_until_ready();
        wait_until("it seeds again", || seeding(&service, &id) == SEEDS);
        wait_until("the tracker knows it again", || tracker.announces().len() > announces);
    }
}

#[test]
fn a_torrent_that_was_made_here_is_seeded_from_what_is_there() {
    let shared = Shared::one_file(35, 3 * MIB + 9);
    let tracker = Tracker::with_peers(&[]);
    let home = Home::new();
    let service = serve(&home);
    let file = home.downloads().join("one.bin");
    std::fs::copy(shared.source.path().join("one.bin"), &file).unwrap();
    let torrent = home.path().join("made.torrent");
    let made = Svc::new().args(["torrent", "create", "--tracker", &tracker.url(), "-o"]);
    let made = made.arg(&torrent).arg(&file).run();
    made.assert_success();
    let bytes = std::fs::read(&torrent).unwrap();
    let request = json!({"url": "", "torrentB64": BASE64.encode(&bytes), "checkIntegrity": true});
    let id = service.create(&request);
    wait_until_complete(&service, &id);
    wait_until("it seeds", || seeding(&service, &id) == SEEDS);
    wait_until("the tracker knows it", || !tracker.announces().is_empty());
    let port = tracker.announces()[0].port;
    let target = tempfile::tempdir().unwrap();
    let mut leecher = Libtorrent::start();
    leecher.leech(&torrent, target.path(), &[]);
    leecher.connect(&[([127, 0, 0, 1], port).into()]);
    leecher.wait_until_seeding();
    shared.check(&target.path().join("one.bin"));
    wait_until("the tracker knows that nothing is missing", || {
        tracker.announces().last().is_some_and(|announce| announce.left == 0)
    });
}
