//! A download whose disk loses power. What happens to a service's state is in `service::kill_loop` and
//! `service::market::kill_loop`.

use std::{fs, time::Duration};

use e2e::{PowerDisk, Svc, setting};
use support::{Content, Origin, Resource, behaviour};

const MIB: u64 = 1 << 20;

/// Bytes per second of one connection, so that the cut finds downloads under way.
const PACE: u64 = 16 * MIB;

const PATIENCE: Duration = Duration::from_secs(30);

/// What the other tests rely on.
#[test]
fn the_disk_forgets_what_was_not_synced() {
    let mut disk = PowerDisk::new(64);
    let (synced, forgotten) = (disk.path().join("synced"), disk.path().join("forgotten"));
    fs::write(&synced, b"kept").unwrap();
    fs::File::open(&synced).unwrap().sync_all().unwrap();
    fs::write(&forgotten, b"lost").unwrap();
    fs::rename(&synced, disk.path().join("renamed")).unwrap();
    disk.cut();
    disk.restart();
    assert_eq!(fs::read(&synced).unwrap(), b"kept");
    assert!(!forgotten.exists() && !disk.path().join("renamed").exists());
}

/// `svc get` has said that the file is complete, or it has not: then the next run continues with what is really there.
#[test]
fn a_download_that_loses_its_disk_continues_with_what_was_synced() {
    let cuts = setting::cuts();
    let mut disk = PowerDisk::new(256);
    let content = Content::seeded(31, cuts * 4 * MIB + 4321);
    let origin = Origin::start(vec![
        Resource::new("/large.bin", content.clone()).with(behaviour::paced(PACE)),
    ]);
    let path = disk.path();
    let get = || {
        Svc::get(&path)
            .args(["--segments", "4", "--max-connections", "4"])
            .arg(origin.url("/large.bin"))
    };
    for cut in 0..cuts {
        let enough = origin.bytes_sent() + 1 + (cut * 7 + 3) % 6 * MIB;
        let running = get().spawn();
        assert!(
            origin.wait_for_bytes(enough, PATIENCE),
            "cut {cut}: {:?}",
            running.finish()
        );
        disk.cut();
        running.kill();
        disk.restart();
        assert!(
            !path.join("large.bin").exists(),
            "cut {cut} leaves a file that looks whole"
        );
    }
    get().run().assert_success();
    disk.cut();
    disk.restart();
    let difference = content.difference(&path.join("large.bin"));
    assert!(matches!(difference, Ok(None)), "after the last cut: {difference:?}");
    let again = origin.bytes_sent() - content.len();
    println!("{cuts} cuts: {again} bytes were sent again");
    assert!(again > 0, "no cut lost anything: nothing was cut");
}
