//! How the service starts, what it finds, and what it says if it cannot.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt as _, path::Path};

use e2e::{
    Home, Run, Service, http,
    service::{KEY, wait_until},
};
use rustix::process::Signal;
use serde_json::json;

/// Asserts that a start ended with this exit code and with one line that says why.
#[track_caller]
fn assert_refused(run: &Run, code: i32, words: &[&str]) {
    assert_eq!(run.code, Some(code), "{}", run.stderr);
    assert_eq!(run.stdout, Vec::<String>::new());
    let lines: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{}", run.stderr);
    for word in words {
        assert!(lines[0].contains(word), "no {word:?} in {}", lines[0]);
    }
}

#[test]
fn a_daemon_that_runs_is_adopted_and_a_killed_one_is_started_again() {
    let home = Home::new();
    let service = home.serve();
    let first = home.daemon().expect("a daemon runs");
    let id = service.create(&json!({"url": "http://127.0.0.1:9/x", "startPaused": true}));
    service.kill();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(home.daemon(), Some(first.clone()), "the daemon was not adopted");
    assert_eq!(service.task(&id)["status"], 2);
    first.kill();
    wait_until("another daemon is started", || {
        home.daemon().is_some_and(|daemon| daemon != first)
    });
    service.wait_until_ready();
    assert_eq!(service.task(&id)["status"], 2);
    assert_eq!(service.terminate().code, Some(0));
    assert_eq!(
        home.processes(),
        Vec::<i32>::new(),
        "an adopted daemon ends with its agent"
    );
}

#[test]
fn a_daemon_that_people_started_is_adopted_too() {
    let home = Home::new();
    let mut daemon = home.svc("daemon").spawn();
    daemon
        .wait_for_line(|line| line.contains("port"))
        .expect("it says where it listens");
    let service = home.serve();
    assert_eq!(home.daemon().expect("a daemon runs").pid, daemon.pid());
    service.wait_until_ready();
    assert_eq!(service.terminate().code, Some(0));
    let run = daemon.finish();
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}

#[test]
fn a_second_one_on_the_same_directory_is_refused_and_harms_nothing() {
    let home = Home::new();
    let service = home.serve();
    let data = home.data().display().to_string();
    assert_refused(
        &home.new_server().run(),
        16,
        &["in use", &data, &service.pid().to_string()],
    );
    let daemon = home.daemon().expect("a daemon runs");
    assert_refused(
        &home.svc("daemon").run(),
        16,
        &["in use", &data, &daemon.pid.to_string()],
    );
    service.wait_until_ready();
    assert_eq!(home.daemon(), Some(daemon));
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = taken.local_addr().expect("it listens").to_string();
    let home = Home::new();
    let run = home.svc("serve").args(["--bind", &address]).run();
    assert_refused(&run, 5, &["cannot listen", &address]);
    assert_eq!(home.processes(), Vec::<i32>::new());
}

#[test]
fn an_address_that_is_none_is_wrong_usage_and_says_what_is_one() {
    let home = Home::new();
    for bind in ["nonsense", "127.0.0.1", "17800", "localhost:17800", "127.0.0.1:99999"] {
        let run = home.svc("serve").env("SVC_BIND", bind).run();
        assert_eq!(run.code, Some(32), "{bind}: {}", run.stderr);
        assert!(run.stderr.contains("127.0.0.1:8080"), "{}", run.stderr);
    }
    assert!(!home.data().exists());
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() {
    let home = Home::new();
    fs::write(home.data(), "a file").expect("a temporary directory is writable");
    let data = home.data().display().to_string();
    assert_refused(&home.new_server().run(), 16, &[&data]);
    assert_refused(&home.svc("daemon").run(), 16, &[&data]);
}

#[test]
fn a_data_directory_that_may_not_be_written_is_named() {
    let home = Home::new();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    set(home.path(), 0o755);
    fs::create_dir(home.data()).expect("a temporary directory is writable");
    // Whoever owns it could open it for himself.
    set(&home.data(), 0o555);
    let data = home.data().display().to_string();
    assert_refused(&home.new_server().as_ordinary_user(home.path()).run(), 16, &[&data]);
    assert_refused(&home.svc("daemon").as_ordinary_user(home.path()).run(), 16, &[&data]);
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let home = Home::new();
    assert_eq!(home.serve().terminate().code, Some(0));
    let database = home.data().join("svc.db");
    let change = "import sqlite3, sys\n\
                  with sqlite3.connect(sys.argv[1]) as db: db.execute('UPDATE schema_version SET version = 999')";
    let python = std::process::Command::new("python3")
        .args(["-c", change])
        .arg(&database)
        .status();
    assert!(python.expect("Python is part of the system").success());
    let before = fs::read(&database).expect("it is there");
    assert_refused(&home.new_server().run(), 16, &["newer", "svc.db", "999"]);
    assert_eq!(fs::read(&database).expect("it is there"), before);
    assert_eq!(home.processes(), Vec::<i32>::new());
}

#[test]
fn a_weak_key_is_told_by_its_rule_and_not_taken() {
    for (key, rule) in [
        ("abc1", "at least 8 characters"),
        ("abcdefghij", "at least one digit"),
        ("1234567890", "at least one letter"),
        ("with space 1", "visible ASCII"),
    ] {
        let home = Home::new();
        let service = Service::start(home.new_server().env("SVC_TOKEN", key));
        let status = http::ask(service.address(), "GET", "/api/v1/setup/status", &[], None).expect("it answers");
        assert_eq!(status.body["setupRequired"], true);
        let run = service.terminate();
        assert_eq!(run.code, Some(0));
        assert!(
            run.stderr.contains("SVC_TOKEN") && run.stderr.contains(rule),
            "{}",
            run.stderr
        );
        assert!(!run.stderr.contains(key), "the key is told");
    }
}

#[test]
fn a_server_may_be_asked_for_in_three_ways() {
    for words in [&["serve"][..], &["--server"], &["agent", "--server"]] {
        let home = Home::new();
        let mut svc = e2e::Svc::new()
            .args(words)
            .args(["--bind", "127.0.0.1:0", "--data-dir"])
            .arg(home.data());
        svc = svc.arg("--save-dir").arg(home.downloads()).env("SVC_TOKEN", KEY);
        let service = Service::start(svc);
        service.wait_until_ready();
        service.signal(Signal::INT);
        assert_eq!(service.finish().code, Some(0), "{words:?}");
    }
}

#[test]
fn a_desktop_listens_on_its_own_port_and_offers_no_management() {
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    assert!(service.address().starts_with("127.0.0.1:"));
    let status = |path: &str, headers: &[(&str, &str)]| {
        http::ask(service.address(), "GET", path, headers, None)
            .expect("it answers")
            .status
    };
    assert_eq!(status("/ping", &[]), 200);
    for path in ["/api/v1/info", "/api/v1/tasks", "/api/v1/openapi.json"] {
        assert_eq!(status(path, &[]), 404, "{path}");
    }
    assert_eq!(status("/ping", &[("Host", "rebound.example")]), 403);
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_executable_is_placed_at_random_and_its_tables_of_addresses_are_read_only() {
    // `.cargo/config.toml` takes the compiler's own choice of this away, `host/build.rs` asks the linker for it.
    let read = |option: &str| {
        let output = std::process::Command::new("readelf")
            .args([option, "-W"])
            .arg(e2e::binary::path())
            .output();
        let output = output.expect("readelf comes with gcc");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dynamic = read("-d");
    assert!(dynamic.contains("BIND_NOW") && dynamic.contains("PIE"), "{dynamic}");
    let segments = read("-l");
    assert!(segments.contains("GNU_RELRO"), "{segments}");
}

/// Every file of `host/web/dist`, as it was built: in its compressed form where the client takes that.
#[test]
fn the_executable_has_the_web_interface_that_was_built() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/web/dist");
    let home = Home::new();
    let service = home.serve();
    let get = |path: &str, encoding| {
        let answer = http::ask(service.address(), "GET", path, &[("Accept-Encoding", encoding)], None);
        let answer = answer.expect("it answers");
        assert_eq!(answer.status, 200, "{path}");
        answer
    };
    assert_eq!(
        get("/", "identity").raw.body,
        fs::read(built.join("index.html")).expect("the page was built")
    );
    let assets = fs::read_dir(built.join("assets")).expect("the page was built");
    let mut scripts = 0;
    for entry in assets {
        let path = entry.expect("the folder can be listed").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("names are plain");
        let bytes = fs::read(&path).expect("it can be read");
        scripts += usize::from(path.extension().is_some_and(|extension| extension == "js"));
        match name.strip_suffix(".br") {
            Some(plain) => {
                let answer = get(&format!("/assets/{plain}"), "br");
                assert_eq!(answer.header("content-encoding"), Some("br"), "{plain}");
                assert_eq!(answer.raw.body, bytes, "{name}");
            }
            None => assert_eq!(get(&format!("/assets/{name}"), "identity").raw.body, bytes, "{name}"),
        }
    }
    assert!(scripts > 10, "{scripts} scripts");
}
