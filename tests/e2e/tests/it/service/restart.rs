//! A service that restarts: the same process at the same address, and nothing of a download is lost.

use std::{
    fs,
    io::{self, Read as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use e2e::{
    Home, Rpc, RpcError, Service, Svc, binary,
    service::{KEY, wait_until},
};
use serde_json::json;
use support::{Content, Origin, Resource, behaviour};

const RESTART: &str = "agent.service.restart";

/// The start of a process since the system started; `exec` keeps it.
fn began(pid: i32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process runs");
    let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
    fields.split(' ').nth(20).expect("it has 52 fields").to_owned()
}

#[test]
fn a_restart_keeps_process_and_address_and_downloads_go_on() {
    let content = Content::seeded(81, 6 << 20);
    let origin = Origin::start(vec![
        Resource::new("/f.bin", content.clone()).with(behaviour::paced(2 << 20)),
    ]);
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let id = service.create(&json!({"url": origin.url("/f.bin"), "segments": 1}));
    wait_until("bytes come", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(1 << 16)
    });
    let (watcher, mut caller) = (service.rpc(), service.rpc());
    let before = (began(service.pid()), home.daemon().expect("a daemon runs"));
    assert_eq!(
        caller.call(RESTART, &json!({})).expect("it is able to"),
        json!({"ok": true})
    );
    let away = Some((1001, "service-restart".to_owned()));
    assert_eq!((watcher.closed(), caller.closed()), (away.clone(), away));
    service.wait_until_ready();
    assert_eq!(began(service.pid()), before.0, "it is the same process");
    assert_ne!(home.daemon().expect("a daemon runs"), before.1);
    wait_until("the download is complete", || service.task(&id)["status"] == 3);
    let file = home.downloads().join("f.bin");
    assert_eq!(content.difference(&file).expect("it is there"), None);
    let last = origin.requests().into_iter().rfind(|request| request.method == "GET");
    let range = last.expect("it was asked").range();
    assert!(range.is_some_and(|(first, _)| first > 0), "it began anew");
    // What ends afterwards ends for good.
    let watcher = service.rpc();
    assert_eq!(service.terminate().code, Some(0));
    assert_eq!(watcher.closed(), Some((1001, "service-quit".to_owned())));
}

#[test]
fn an_executable_that_does_not_start_is_refused_and_a_new_one_is_started() {
    let home = Home::new();
    let program = home.path().join("installed");
    let service = Service::start(home.new_server().env("SVC_TOKEN", KEY).installed_at(&program));
    service.wait_until_ready();
    let mut rpc = service.rpc();
    let daemon = home.daemon();
    let mut refused = |why: &str| {
        let Err(RpcError::Refused(error)) = rpc.call(RESTART, &json!({})) else {
            panic!("it restarts without its executable")
        };
        let message = error["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(program.to_str().expect("it is text")), "{message}");
        assert!(message.contains(why), "{message}");
    };
    fs::remove_file(&program).expect("it is there");
    refused("No such file");
    fs::write(&program, "half a file").expect("there is room");
    refused("Permission denied");
    let log = home.path().join("log");
    let script = format!(
        "#!/bin/sh\necho \"$1\" >>{}\nexec {} \"$@\"\n",
        log.display(),
        binary::path().display()
    );
    service.wait_until_ready();
    assert_eq!(home.daemon(), daemon, "nothing has ended");
    fs::write(&program, script).expect("there is room");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let began_at = began(service.pid());
    let cli = |arguments: &[&str]| {
        Svc::new()
            .args(arguments)
            .env("SVC_URL", service.url())
            .env("SVC_TOKEN", KEY)
    };
    let run = cli(&["restart"]).run();
    run.assert_success();
    assert!(run.stdout[0].starts_with("restarted: Svc "), "{:?}", run.stdout);
    assert_eq!(began(service.pid()), began_at);
    let started = fs::read_to_string(&log).expect("the new one was started");
    assert!(started.starts_with("--version\nserve\n"), "{started}");
}

/// Passes connections on to `address`, and hangs up on the second one when its request has come. Gives its own address,
/// and how many came.
fn start_front(address: &str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let own = listener.local_addr().expect("it listens").to_string();
    let (address, came) = (address.to_owned(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&came);
    std::thread::spawn(move || -> io::Result<()> {
        for near in listener.incoming() {
            let near = near?;
            if count.fetch_add(1, Ordering::Relaxed) == 1 {
                let _request = (&near).read(&mut [0; 1 << 12])?;
                continue;
            }
            if let Ok(far) = TcpStream::connect(&address) {
                support::tunnel(near, far)?;
            }
        }
        Ok(())
    });
    (own, came)
}

#[test]
fn who_hangs_up_before_the_handshake_may_be_a_service_that_restarts() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let svc = |command: &str, address: &str| {
        let url = format!("http://{address}");
        Svc::new().args([command, "--url", &url]).env("SVC_TOKEN", KEY).run()
    };
    let (address, came) = start_front(service.address());
    let run = svc("restart", &address);
    run.assert_success();
    assert!(came.load(Ordering::Relaxed) > 2, "nobody hung up: {run:?}");
    for command in ["list", "ping"] {
        let (address, _) = start_front(service.address());
        drop(TcpStream::connect(&address).expect("it listens"));
        let run = svc(command, &address);
        assert_eq!(run.code, Some(5), "{run:?}");
        assert!(run.stderr.contains("closed the connection"), "{run:?}");
    }
}

#[test]
fn who_may_not_manage_a_service_does_not_restart_it() {
    let refused = |service: &Service, status: u16| {
        let Err(RpcError::Broken(error)) = Rpc::connect(service.address(), "wrong-key-1") else {
            panic!("a wrong key is let in")
        };
        let answer = match *error {
            tungstenite::Error::Http(response) => response.status().as_u16(),
            other => panic!("{other}"),
        };
        assert_eq!(answer, status);
    };
    let home = Home::new();
    let server = home.serve();
    refused(&server, 401);
    let desktop_home = Home::new();
    let desktop = Service::start(desktop_home.new_desktop());
    refused(&desktop, 403);
    // Its user may, as with every other command.
    let daemon = || desktop_home.daemon().expect("a daemon runs");
    wait_until("the daemon is there", || desktop_home.daemon().is_some());
    let before = daemon();
    let data = desktop_home.data();
    let run = Svc::new().args(["restart", "--json", "--data-dir"]).arg(&data).run();
    run.assert_success();
    wait_until("another daemon is there", || {
        desktop_home.daemon().is_some_and(|daemon| daemon != before)
    });
}
