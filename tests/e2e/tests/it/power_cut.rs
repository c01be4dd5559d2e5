//! After a power cut everything that was acknowledged is there, and nothing is there that only looks whole.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use e2e::{Home, PowerDisk, Service, Svc, service::wait_until, setting};
use rustix::process::Signal;
use support::{Content, Origin, Resource, behaviour};

use crate::service::{
    guest::{self, Guest},
    kill_loop::{
        self,
        model::{Model, Random},
        worker::{Client, Worker},
    },
    plugin_kill_loop::version_of,
};

const MIB: u64 = 1 << 20;

/// Bytes per second of one connection, so that the cut finds downloads under way.
const PACE: u64 = 16 * MIB;

const PATIENCE: Duration = Duration::from_secs(30);

/// The plugin that is installed while the power goes.
const PLUGIN: &str = "open-directory@svc";

/// `svc get` has said that the file is complete, or it has not: then the next run continues with what is really there.
#[test]
fn a_download_that_loses_its_disk_continues_with_what_was_synced() {
    let cuts = setting::cuts();
    let disk = PowerDisk::new(256);
    let content = Content::seeded(31, cuts * 4 * MIB + 4321);
    let origin = Origin::start(vec![
        Resource::new("/large.bin", content.clone()).with(behaviour::paced(PACE)),
    ]);
    let get = || {
        Svc::get(&disk.path())
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
            !disk.path().join("large.bin").exists(),
            "cut {cut} leaves a file that looks whole"
        );
    }
    get().run().assert_success();
    disk.cut();
    disk.restart();
    let difference = content.difference(&disk.path().join("large.bin"));
    assert!(matches!(difference, Ok(None)), "after the last cut: {difference:?}");
    let again = origin.bytes_sent() - content.len();
    println!("{cuts} cuts: {again} bytes were sent again");
    assert!(again > 0, "no cut lost anything: nothing was cut");
}

#[test]
fn a_service_that_loses_its_disk_has_every_change_that_it_acknowledged() {
    let disk = PowerDisk::new(512);
    let origin = kill_loop::origin();
    let home = Home::on(&disk.path());
    let mut random = Random::new(0xc07);
    let mut workers: Vec<_> = (0..4)
        .map(|number| Worker::new(number, random.next(), origin.url("")))
        .collect();
    let mut service = home.serve();
    for cut in 0..setting::cuts() {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for (number, worker) in workers.iter_mut().enumerate() {
                let client = match number % 2 {
                    0 => Client::rest(&service),
                    _ => Client::rpc(&service),
                };
                scope.spawn(|| worker.work(client, &stop));
            }
            let enough = origin.bytes_sent() + random.next() % (8 * MIB);
            origin.wait_for_bytes(enough, Duration::from_millis(600).mul_f64(random.fraction()));
            disk.cut();
            kill(&home, &service);
            stop.store(true, Ordering::Release);
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

#[test]
fn a_service_that_loses_its_disk_during_an_installation_has_the_old_or_the_new_version() {
    let disk = PowerDisk::new(512);
    let home = Home::on(&disk.path());
    let mut service = guest::with_plugin(&home, PLUGIN);
    let mut guest = Guest::build("open-directory");
    let mut installed = version_of(&service);
    let mut usual = Duration::ZERO;
    let (mut olds, mut news) = (0, 0);
    for cut in 0..=setting::cuts() {
        let version = format!("0.2.{}", cut + 1);
        guest.set_version(&version);
        let (archive, url, began) = (guest.archive(), service.url(), Instant::now());
        let uploading = thread::spawn(move || guest::upload(&url, &archive));
        // The first one is only timed; the others are cut somewhere, the last one after its end.
        if cut == 0 {
            uploading.join().expect("curl ends").expect("the answer is JSON");
            usual = began.elapsed();
            installed = version_of(&service);
            continue;
        }
        #[expect(clippy::cast_precision_loss, reason = "there are some hundred cuts")]
        let moment = usual.mul_f64(1.2 * cut as f64 / setting::cuts() as f64);
        #[expect(clippy::disallowed_methods, reason = "the moment of the cut is what is tried out")]
        thread::sleep(moment);
        disk.cut();
        kill(&home, &service);
        let answer = uploading.join().expect("curl ends");
        let is_acknowledged = answer.is_some_and(|answer| answer["identity"] == PLUGIN);
        service.finish();
        disk.restart();
        service = home.serve();
        service.wait_until_ready();
        let now = version_of(&service);
        assert!(
            now == version || (now == installed && !is_acknowledged),
            "cut {cut} after {moment:?}: {installed} → {version} (acknowledged: {is_acknowledged}), {now} is there"
        );
        match now == version {
            true => news += 1,
            false => olds += 1,
        }
        installed = now;
    }
    println!(
        "{} cuts: {olds} times the old version, {news} times the new one",
        setting::cuts()
    );
    assert!(
        olds > 0 && news > 0,
        "{olds} times the old version, {news} times the new one"
    );
}

/// Ends both processes, which can do nothing any more.
fn kill(home: &Home, service: &Service) {
    service.signal(Signal::KILL);
    for pid in home.processes() {
        e2e::service::signal(pid, Signal::KILL);
    }
    wait_until("the processes are gone", || home.processes().is_empty());
}
