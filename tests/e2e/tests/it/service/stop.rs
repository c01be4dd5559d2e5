//! How the service ends: in order and soon, or at once; and what is left then.

use std::{
    fs,
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use e2e::{Home, Service, service::wait_until};
use rustix::process::Signal;
use serde_json::json;
use support::{Content, Origin, Resource, behaviour};

/// An orderly end with nothing to wait for takes a tenth of a second on an idle machine.
const SOON: Duration = Duration::from_secs(5);

/// A download that lasts longer than any test.
fn endless() -> Origin {
    let content = Content::seeded(80, 256 << 20);
    Origin::start(vec![
        Resource::new("/long.bin", content).with(behaviour::paced(1 << 20)),
    ])
}

/// Starts a download and waits until its bytes come.
fn under_way(service: &Service, origin: &Origin) -> String {
    let id = service.create(&json!({"url": origin.url("/long.bin"), "segments": 2}));
    wait_until("bytes come", || {
        service.task(&id)["downloadedBytes"].as_u64() > Some(1 << 16)
    });
    id
}

#[test]
fn an_orderly_end_is_soon_and_leaves_nothing_running() {
    let origin = endless();
    let home = Home::new();
    for signal in [Signal::TERM, Signal::INT] {
        let service = home.serve();
        service.wait_until_ready();
        let id = under_way(&service, &origin);
        // Nor do clients that are still there keep it: one that listens, one that says nothing.
        let _rpc = service.rpc();
        let _silent = TcpStream::connect(service.address()).expect("it listens");
        let began = Instant::now();
        service.signal(signal);
        let run = service.finish();
        let took = began.elapsed();
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        assert!(took < SOON, "{signal:?} took {took:?}");
        assert_eq!(home.processes(), Vec::<i32>::new(), "something still runs");
        let mut left: Vec<_> = fs::read_dir(home.data())
            .expect("it is there")
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "agent",
                "daemon.token",
                "lock",
                "logs",
                "plugins",
                "svc.db",
                "vault.key"
            ],
            "a clean end leaves no more than that"
        );
        let service = home.serve();
        wait_until("it goes on", || {
            service.task(&id)["downloadedBytes"].as_u64() > Some(1 << 16)
        });
        let last = origin
            .requests()
            .into_iter()
            .rfind(|request| request.method == "GET")
            .expect("it was asked");
        assert!(
            last.range().is_some_and(|(first, _)| first > 0),
            "it began anew: {:?}",
            last.headers
        );
        service.call("DELETE", &format!("/api/v1/tasks/{id}"), None);
        assert_eq!(service.terminate().code, Some(0));
    }
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_next_start_goes_on() {
    let origin = endless();
    let home = Home::new();
    let service = home.serve();
    let id = under_way(&service, &origin);
    // A daemon that cannot end keeps the agent waiting.
    let daemon = home.daemon().expect("a daemon runs");
    e2e::service::signal(daemon.pid, Signal::STOP);
    service.signal(Signal::INT);
    // The port is closed once the first signal is heard; two that come together may be one.
    let address = service.address().to_owned();
    wait_until("it takes no more connections", || {
        TcpStream::connect(&address)
            .map(|stream| stream.shutdown(Shutdown::Both))
            .is_err()
    });
    let began = Instant::now();
    service.signal(Signal::INT);
    let run = service.finish();
    assert_eq!(run.code, Some(7), "{}", run.stderr);
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "it took {:?}",
        began.elapsed()
    );
    e2e::service::signal(daemon.pid, Signal::CONT);
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(service.task(&id)["url"], origin.url("/long.bin"));
}
