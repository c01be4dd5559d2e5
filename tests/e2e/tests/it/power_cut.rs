//! After a power cut everything that was acknowledged is there, and nothing is there that only looks whole. Installations
//! that lose their disk are in `service::market::kill_loop`.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use e2e::{Home, PowerDisk, Service, Svc, service::wait_until, setting};
use rustix::process::Signal;
use support::{Content, Origin, Resource, behaviour};

use crate::service::kill_loop::{
    self,
    model::{Model, Random},
    worker::{Client, Worker},
};

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
    let mut random = Random::new(0x9047);
    for cut in 0..cuts {
        let enough = origin.bytes_sent() + 1 + random.next() % (6 * MIB);
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

#[test]
fn a_service_that_loses_its_disk_has_every_change_that_it_acknowledged() {
    let mut disk = PowerDisk::new(512);
    let origin = kill_loop::origin();
    let home = Home::on(&disk.path());
    let mut random = Random::new(0xc07);
    let mut workers: Vec<_> = (0..4)
        .map(|number| Worker::new(number, random.next(), origin.url("")))
        .collect();
    let mut service = home.serve();
    for cut in 0..setting::cuts() {
        let is_cut = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            for (number, worker) in workers.iter_mut().enumerate() {
                let client = match number % 2 {
                    0 => Client::rest(&service),
                    _ => Client::rpc(&service),
                };
                let client = client.doubting(&is_cut);
                scope.spawn(|| worker.work(client, &is_cut));
            }
            let enough = origin.bytes_sent() + random.next() % (8 * MIB);
            origin.wait_for_bytes(enough, Duration::from_millis(600).mul_f64(random.fraction()));
            is_cut.store(true, Ordering::Release);
            disk.cut();
            kill(&home, &service);
        });
        service.finish();
        disk.restart();
        service = home.serve();
        service.wait_until_ready();
        kill_loop::check(&home, &service, &mut workers, &format!("after cut {cut}"));
    }
    let finished = kill_loop::finish(&home, service, &mut workers);
    let sum = |count: fn(&Model) -> u64| workers.iter().map(|worker| count(&worker.model)).sum::<u64>();
    let (acknowledged, cut_off) = (sum(|model| model.acknowledged), sum(|model| model.cut_off));
    println!(
        "{} cuts: {acknowledged} changes acknowledged, {cut_off} cut off, {finished} files verified at the end",
        setting::cuts()
    );
    assert!(acknowledged > setting::cuts() && cut_off > 0 && finished > 0);
}

/// Ends both processes, which can do nothing any more.
fn kill(home: &Home, service: &Service) {
    service.signal(Signal::KILL);
    for pid in home.processes() {
        e2e::service::signal(pid, Signal::KILL);
    }
    wait_until("the processes are gone", || home.processes().is_empty());
}
