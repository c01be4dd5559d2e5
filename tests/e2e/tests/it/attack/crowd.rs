//! Eight hostile clients at once, in every way at once. The service stays small and answers others.
//!
//! `SVC_BIN=<release executable> cargo nextest run -p e2e crowd --no-capture` prints the figures.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use e2e::{Home, Service, http, service::KEY};
use serde_json::json;

use super::hostile::{MAX_BODY, descriptors, many_values, memory, post, take_all_descriptors, upgrade, zeros};

const CLIENTS: usize = 8;

/// How long they go on, at least and at most, and how many requests of others are timed meanwhile, one after the other.
const TIME: Duration = Duration::from_secs(20);
const MAX_TIME: Duration = Duration::from_mins(2);
const MIN_PINGS: usize = 100;

/// What makes them a crowd: connections, those that were upgraded, requests, and bytes sent. On a busy machine it takes longer.
const MIN_CONNECTIONS: u64 = 1000;
const MIN_UPGRADES: u64 = 200;
const MIN_BODIES: u64 = 32;
const MIN_BYTES: u64 = 64 << 20;

/// The most that the agent may have in memory, in MiB.
const MAX_MEMORY: u64 = 150;

/// The longest that 99 of 100 requests of others may take. An unoptimized build on a shared machine is slower.
const MAX_RELEASE: Duration = Duration::from_millis(100);
const MAX_DEBUG: Duration = Duration::from_secs(5);

/// Connections that a client keeps of each kind; what is older is dropped.
const KEPT: usize = 60;

/// What the clients really did.
#[derive(Debug, Default)]
struct Done {
    connections: AtomicU64,
    upgrades: AtomicU64,
    bodies: AtomicU64,
    bytes: AtomicU64,
}

impl Done {
    fn is_a_crowd(&self) -> bool {
        count(&self.connections) > MIN_CONNECTIONS
            && count(&self.upgrades) > MIN_UPGRADES
            && count(&self.bodies) >= MIN_BODIES
            && count(&self.bytes) > MIN_BYTES
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn keep(kept: &mut Vec<TcpStream>, stream: TcpStream) {
    if kept.len() >= KEPT {
        kept.remove(0);
    }
    kept.push(stream);
}

/// Sends as much of a request as the service takes, and reads nothing.
fn send(address: &str, path: &str, body: &str, done: &Done) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_write_timeout(Some(Duration::from_secs(2))).ok()?;
    done.connections.fetch_add(1, Ordering::Relaxed);
    stream.write_all(post(address, path, &[], body.len()).as_bytes()).ok()?;
    for piece in body.as_bytes().chunks(64 * 1024) {
        if stream.write_all(piece).is_err() {
            break;
        }
        done.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
    done.bodies.fetch_add(1, Ordering::Relaxed);
    Some(stream)
}

/// A client that is hostile in every way, in turn, for as long as it is left to.
fn attack(address: &str, bombs: &[(&str, String)], stop: &AtomicBool, done: &Done) {
    let (mut answers, mut slow, mut sockets) = (Vec::new(), Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        for (path, body) in bombs {
            if let Some(stream) = send(address, path, body, done) {
                keep(&mut answers, stream);
            }
        }
        for _ in 0..32 {
            // A WebSocket that never says who it is.
            if let Ok(socket) = upgrade(address, "/jsonrpc", &[]) {
                done.connections.fetch_add(1, Ordering::Relaxed);
                done.upgrades.fetch_add(1, Ordering::Relaxed);
                keep(&mut sockets, socket);
            }
            // A body that is announced, begun and never ended.
            if let Ok(mut stream) = TcpStream::connect(address) {
                done.connections.fetch_add(1, Ordering::Relaxed);
                let head = post(address, "/jsonrpc", &[], MAX_BODY);
                let begun = "[".repeat(60 * 1024);
                if stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(begun.as_bytes()))
                    .is_ok()
                {
                    done.bytes.fetch_add(begun.len() as u64, Ordering::Relaxed);
                    keep(&mut slow, stream);
                }
            }
        }
    }
}

#[expect(clippy::print_stdout, reason = "the figures are for people")]
fn under_attack(name: &str, service: &Service, is_release: bool) {
    take_all_descriptors();
    let (before, _) = memory(service.pid());
    let multicall = |method: &str| {
        let within = vec![json!({"methodName": method, "params": []}); 9_999];
        json!({"id": 1, "method": "system.multicall", "params": [within]}).to_string()
    };
    let bombs = [
        ("/jsonrpc", zeros(MAX_BODY)),
        ("/jsonrpc", multicall("aria2.getGlobalOption")),
        (
            "/jsonrpc",
            format!("{{\"method\":\"aria2.addUri\",\"params\":[{}]}}", zeros(MAX_BODY - 99)),
        ),
        ("/rpc", many_values(MAX_BODY)),
    ];
    let address = service.address();
    let (stop, done) = (AtomicBool::new(false), Done::default());
    let (mut pings, mut peak, mut open) = (Vec::new(), 0, 0);
    let mut failed = 0;
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| attack(address, &bombs, &stop, &done));
        }
        let begun = Instant::now();
        while begun.elapsed() < TIME || (pings.len() < MIN_PINGS || !done.is_a_crowd()) && begun.elapsed() < MAX_TIME {
            let began = Instant::now();
            match http::ask(service.address(), "GET", "/ping", &[], None) {
                Some(answer) => assert_eq!(answer.status, 200),
                None => failed += 1,
            }
            pings.push(began.elapsed());
            peak = memory(service.pid()).0.max(peak);
            open = descriptors(service.pid()).max(open);
        }
        stop.store(true, Ordering::Relaxed);
    });
    pings.sort_unstable();
    let at = |percent: usize| {
        pings[(pings.len() * percent)
            .div_ceil(100)
            .saturating_sub(1)
            .min(pings.len() - 1)]
    };
    let (median, p99, worst) = (at(50), at(99), at(100));
    let (_, most) = memory(service.pid());
    println!(
        "{name}: {before} MiB before, {peak} MiB seen, {most} MiB at most; /ping {} times, {failed} failed: median \
         {median:?}, p99 {p99:?}, worst {worst:?}; {open} descriptors at most; {} connections, {} of them WebSockets, \
         {} requests, {} MiB sent",
        pings.len(),
        count(&done.connections),
        count(&done.upgrades),
        count(&done.bodies),
        count(&done.bytes) >> 20
    );
    assert!(
        done.is_a_crowd() && pings.len() >= MIN_PINGS,
        "there was no crowd: {done:?}"
    );
    assert!(most < MAX_MEMORY, "{most} MiB");
    assert!(
        failed * 100 <= pings.len(),
        "{failed} of {} requests of others were not answered",
        pings.len()
    );
    let limit = if is_release { MAX_RELEASE } else { MAX_DEBUG };
    assert!(p99 <= limit, "{p99:?}");
}

/// Whether the executable under test is an optimized one.
fn is_release() -> bool {
    let path = e2e::binary::path().display().to_string();
    !path.contains("/debug/")
}

#[test]
fn eight_hostile_clients_without_the_key_neither_fill_the_memory_nor_hold_up_others() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    under_attack("with an access key", &service, is_release());
    let info = http::ask(
        service.address(),
        "GET",
        "/api/v1/info",
        &[("Authorization", &format!("Bearer {KEY}"))],
        None,
    );
    assert!(info.is_some_and(|answer| [200, 429].contains(&answer.status)));
}

#[test]
fn eight_hostile_programs_of_the_same_user_neither_fill_the_memory_nor_hold_up_others() {
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    under_attack("a desktop without a key", &service, is_release());
    // They go, and it answers as before.
    let mut stream = TcpStream::connect(service.address()).unwrap();
    let call = json!({"id": 1, "method": "aria2.getVersion"}).to_string();
    let head = post(service.address(), "/jsonrpc", &[("Connection", "close")], call.len());
    stream.write_all([head, call].concat().as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"version\""), "{answer}");
}
