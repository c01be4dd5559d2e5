//! A service whose daemon is killed in the middle of installing a new version of a plugin has the old one or the new
//! one afterwards, whole; never neither, and nothing of what was begun is left on the disk.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use e2e::{Home, Service, service::wait_until, setting};
use serde_json::{Value, json};

use super::{
    guest::{self, Guest},
    plugins::Server,
};

/// The plugin of this test.
const PLUGIN: &str = "open-directory@svc";

/// Installations that are left alone, to learn how long one takes.
const MEASURED: u32 = 3;

/// The last kill comes so much later than an installation usually takes; in each further sweep as much later again.
const BEYOND: f64 = 1.1;

/// Sweeps until both versions have been found.
const SWEEPS: u64 = 6;

#[test]
fn an_installation_that_is_killed_at_any_moment_leaves_the_old_or_the_new_version_whole() {
    let (home, server) = (Home::new(), Server::start());
    let mut service = guest::with_plugin(&home, PLUGIN);
    let mut guest = Guest::build("open-directory");
    let mut patch = 0;
    let mut next = || {
        patch += 1;
        let version = format!("0.2.{patch}");
        guest.set_version(&version);
        (version, guest.archive())
    };
    let mut usual = Duration::ZERO;
    for _ in 0..MEASURED {
        let (version, archive) = next();
        let began = Instant::now();
        let installed = guest::upload(&service.url(), &archive).expect("it answers");
        usual += began.elapsed() / MEASURED;
        assert_eq!(
            (&installed["identity"], version_of(&service)),
            (&PLUGIN.into(), version),
            "{installed}"
        );
    }
    let mut installed = version_of(&service);
    let (mut olds, mut news) = (0, 0);
    let (mut kill, kills) = (0, setting::kills());
    while kill < kills || ((olds == 0 || news == 0) && kill < SWEEPS * kills) {
        let (version, archive) = next();
        let moment = moment(usual, BEYOND, kill, kills);
        kill += 1;
        let daemon = home.daemon().expect("a daemon runs");
        let url = service.url();
        let uploading = thread::spawn(move || guest::upload(&url, &archive));
        #[expect(clippy::disallowed_methods, reason = "the moment of the kill is what is tried out")]
        thread::sleep(moment);
        daemon.kill();
        let answer = uploading.join().expect("curl ends");
        let acknowledged = answer.is_some_and(|answer| answer["identity"] == PLUGIN);
        service = restarted(&home, service);
        let now = version_of(&service);
        let told = format!("kill {kill} after {moment:?}: {installed} → {version}, {now} is there");
        assert!(now == version || (now == installed && !acknowledged), "{told}");
        let preview = service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": server.url})));
        assert_eq!(preview["items"][0]["name"], "top.txt", "{told}: {preview}");
        assert_no_garbage(&home, &told);
        if now == version {
            news += 1;
        } else {
            olds += 1;
        }
        installed = now;
    }
    assert_eq!(service.terminate().code, Some(0));
    println!(
        "{kill} kills over {:?} of an installation: {olds} times the old version, {news} times the new one",
        usual.mul_f64(BEYOND),
    );
    assert!(
        olds > 0 && news > 0,
        "{olds} old and {news} new versions: one side was never met"
    );
}

/// When to kill: sweeps from the beginning of something that usually takes this long to `beyond` times its end, `each`
/// kills a sweep; the next sweep goes as far again.
#[expect(clippy::cast_precision_loss, reason = "there are some hundred kills")]
pub(super) fn moment(usual: Duration, beyond: f64, kill: u64, each: u64) -> Duration {
    let sweep = (kill / each + 1) as f64;
    usual.mul_f64(beyond * sweep * (kill % each) as f64 / each as f64)
}

/// The service, started again after its daemon was killed.
fn restarted(home: &Home, service: Service) -> Service {
    service.kill();
    let service = home.serve();
    service.wait_until_ready();
    service
}

/// The version that runs.
fn version_of(service: &Service) -> String {
    let mut seen = Value::Null;
    wait_until("the plugin is loaded", || {
        seen = service.call("GET", "/api/v1/plugins", None)[0].take();
        seen["loadStatus"] == "Loaded"
    });
    seen["version"].as_str().expect("a plugin has a version").to_owned()
}

/// Every package on the disk is whole, and there are no more than a plugin refers to: the active one and the one before.
fn assert_no_garbage(home: &Home, told: &str) {
    let packages: Vec<_> = fs::read_dir(home.data().join("plugins/store"))
        .expect("there is a directory of packages")
        .map(|entry| entry.expect("it can be listed").path())
        .collect();
    assert!(packages.len() <= 2, "{told}: {packages:?}");
    for package in packages {
        assert!(package.join(".complete").is_file(), "{told}: {}", package.display());
    }
}
