//! The same torrent with other programs on the other side: libtorrent, transmission, aria2c.

use e2e::Home;
use serde_json::json;
use support::swarm::{Aria2c, Libtorrent, Opentracker, Transmission};

use super::{MIB, Shared, peers, serve, wait_until, wait_until_complete};

#[test]
fn transmission_and_aria2c_seed_to_the_service() {
    let shared = Shared::one_file(41, 4 * MIB + 3);
    let tracker = Opentracker::start(&[&shared.made.hash]);
    let check = |who: &str, tracker: &Opentracker| {
        let url = shared.made.magnet(&format!("&tr={}", tracker.udp()));
        let home = Home::new();
        let service = serve(&home);
        let id = service.create(&json!({"url": url, "noSeed": true}));
        wait_until_complete(&service, &id);
        shared.check(&home.downloads().join("one.bin"));
        assert_eq!(service.task(&id)["totalBytes"], shared.content.len(), "{who}");
    };
    {
        let mut seeder = Transmission::start();
        let with_tracker = shared.with_trackers(&[&tracker.http()]);
        seeder.add(&with_tracker, shared.source.path());
        seeder.wait_until_seeding();
        tracker.wait_until_known(&shared.made.hash, 1);
        check("transmission", &tracker);
        assert!(
            seeder.state()["uploadedEver"].as_u64() >= Some(shared.content.len()),
            "{}",
            seeder.state()
        );
    }
    let tracker = Opentracker::start(&[&shared.made.hash]);
    let _seeder = Aria2c::seed(&shared.made.path, shared.source.path(), &tracker.http());
    tracker.wait_until_known(&shared.made.hash, 1);
    check("aria2c", &tracker);
}

#[test]
fn transmission_aria2c_and_libtorrent_download_from_the_service() {
    let mut shared = Shared::one_file(42, 4 * MIB + 3);
    let tracker = Opentracker::start(&[&shared.made.hash]);
    let seeder = shared.seed(&[]);
    let with_tracker = shared.with_trackers(&[&tracker.http()]);
    let home = Home::new();
    let service = serve(&home);
    // transmission connects to no peer of the loopback: the service finds it in the tracker and connects.
    let target = tempfile::tempdir().unwrap();
    let mut transmission = Transmission::start();
    transmission.add(&with_tracker, target.path());
    tracker.wait_until_known(&shared.made.hash, 1);
    let url = shared
        .made
        .magnet(&format!("&tr={}{}", tracker.http(), peers(&[seeder])));
    let id = service.create(&json!({"url": url}));
    wait_until_complete(&service, &id);
    // From now on it is the only one that has anything.
    shared.libtorrent = Libtorrent::start();
    transmission.wait_until_complete();
    shared.check(&target.path().join("one.bin"));
    drop(transmission);

    let target = tempfile::tempdir().unwrap();
    Aria2c::leech(&shared.made.path, target.path(), &tracker.http()).wait();
    shared.check(&target.path().join("one.bin"));

    // The metadata comes from the service, too.
    let target = tempfile::tempdir().unwrap();
    let mut leecher = Libtorrent::start();
    leecher.ask(&json!({
        "do": "add", "magnet": shared.made.magnet(""), "directory": target.path(), "trackers": [tracker.udp()],
    }));
    leecher.wait_until_seeding();
    shared.check(&target.path().join("one.bin"));
    wait_until("the service has counted it", || {
        service.task(&id)["uploadedBytes"].as_u64() >= Some(2 * shared.content.len())
    });
}

#[test]
fn several_seeders_are_used_at_once() {
    let mut shared = Shared::one_file(43, 24 * MIB);
    let first = shared.seed(&[]);
    let (mut second, second_address) = shared.seed_more(&[]);
    let (mut third, third_address) = shared.seed_more(&[]);
    // So that none is done before the others have begun.
    for seeder in [&mut shared.libtorrent, &mut second, &mut third] {
        seeder.limit_upload(12 << 20);
    }
    let home = Home::new();
    let service = serve(&home);
    let id = service.create(&json!({"url": shared.made.magnet(&peers(&[first, second_address, third_address]))}));
    wait_until_complete(&service, &id);
    shared.check(&home.downloads().join("one.bin"));
    let sent = [&mut shared.libtorrent, &mut second, &mut third].map(Libtorrent::uploaded);
    assert!(sent.iter().all(|sent| *sent > MIB), "{sent:?}");
    let twice = sent.iter().sum::<u64>() - shared.content.len();
    assert!(twice <= MIB, "{twice} bytes were sent twice: {sent:?}");
}
