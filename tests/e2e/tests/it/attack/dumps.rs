//! The memory of the service, which holds secrets, and other programs of its user: what a crash leaves for them, and what
//! they read while it runs.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use e2e::{Home, Running, Service, Svc, service::wait_until};
use rustix::process::Signal;
use support::{Content, Origin, Resource, behaviour};

use crate::place::Place;

/// Lets debuggers in, and crashes leave dumps: shows that the attack would succeed.
const OPEN: (&str, &str) = ("SVC_DEBUGGABLE", "1");

fn with(svc: Svc, is_open: bool) -> Svc {
    if is_open { svc.env(OPEN.0, OPEN.1) } else { svc }
}

/// Crashes a process in both ways that a defect does. Gives of each whether there was a dump, and how many files it left.
fn crash<T>(start: impl Fn(&Path) -> (Running, T)) -> [(bool, usize); 2] {
    [Signal::ABORT, Signal::SEGV].map(|signal| {
        let scene = tempfile::tempdir().unwrap();
        let (running, _home) = start(scene.path());
        let has_dumped = running.crash(signal);
        let names = fs::read_dir(scene.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let dumps = names.filter(|name| name.to_string_lossy().starts_with("core"));
        (has_dumped, dumps.count())
    })
}

#[test]
fn a_crash_leaves_no_memory_on_the_disk_though_the_user_allows_dumps() {
    let origin = Origin::start(vec![
        Resource::new("/f.bin", Content::seeded(90, 50 << 20)).with(behaviour::paced(1 << 20)),
    ]);
    let url = origin.url("/f.bin");
    for is_open in [true, false] {
        let get = |scene: &Path| {
            let place = Place::new();
            let svc = with(Svc::get(place.path()).arg(&url), is_open);
            let mut running = svc.with_core_dumps(scene).spawn();
            running.wait_for(|_| true).expect("it begins");
            (running, place)
        };
        let daemon = |scene: &Path| {
            let home = Home::new();
            let mut running = with(home.svc("daemon"), is_open).with_core_dumps(scene).spawn();
            running.wait_for_line(|line| line.contains("port")).expect("it starts");
            (running, home)
        };
        let agent = |scene: &Path| {
            let home = Home::new();
            let mut running = with(home.new_server(), is_open).with_core_dumps(scene).spawn();
            running
                .wait_for_line(|line| line.contains("Address"))
                .expect("it starts");
            (running, home)
        };
        for (what, crashes) in [("get", crash(get)), ("daemon", crash(daemon)), ("agent", crash(agent))] {
            for (has_dumped, dumps) in crashes {
                // Where a handler takes the dumps, the kernel's word is all that is seen of one.
                assert_eq!(has_dumped, is_open, "{what}");
                assert!(is_open || dumps == 0, "{what}");
            }
        }
    }
}

/// Whether a program of the same user can do this.
fn can(script: &str) -> bool {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("/usr/bin/setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh"]);
        command
    } else {
        Command::new("/bin/sh")
    };
    command.args(["-c", script]).output().unwrap().status.success()
}

#[test]
fn another_program_of_the_same_user_reads_no_memory_of_the_service() {
    for is_open in [true, false] {
        let home = Home::new();
        let everybody = fs::Permissions::from_mode(0o777);
        fs::set_permissions(home.path(), everybody.clone()).unwrap();
        fs::set_permissions(home.downloads(), everybody).unwrap();
        let svc = with(home.new_server().env("SVC_TOKEN", e2e::service::KEY), is_open);
        let service = Service::start(svc.as_ordinary_user(home.path()));
        service.wait_until_ready();
        wait_until("the daemon has said who it is", || home.daemon().is_some());
        for pid in [service.pid(), home.daemon().unwrap().pid] {
            for part in ["environ", "maps"] {
                assert_eq!(can(&format!("cat /proc/{pid}/{part} >/dev/null")), is_open, "{part}");
            }
            assert_eq!(can(&format!("ls /proc/{pid}/fd >/dev/null")), is_open);
            // Some systems forbid this to everybody but parents of the process.
            assert!(is_open || !can(&format!(": </proc/{pid}/mem")));
            // What monitoring needs is readable as ever.
            for part in ["status", "stat", "cmdline", "limits"] {
                assert!(can(&format!("cat /proc/{pid}/{part} >/dev/null")), "{part}");
            }
        }
        assert_eq!(service.terminate().code, Some(0));
    }
}
