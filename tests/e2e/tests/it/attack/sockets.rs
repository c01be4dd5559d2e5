//! Connections that cost the service descriptors and time, and their client nothing.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use e2e::{Home, Service, service::wait_until};
use serde_json::json;

use super::hostile::{
    MAX_BODY, close_reason, connect, descriptors, exchange, frame, limit, memory, post, take_all_descriptors, upgrade,
};

/// How long a client may take to authenticate, and how much longer a slow machine may take to notice.
const FREE_TIME: Duration = Duration::from_secs(15);
const LATENESS: Duration = Duration::from_secs(10);

/// Connections without authentication that one address may have, and descriptors that the agent itself needs.
const MAX_OF_SOURCE: usize = 128;
const OWN_DESCRIPTORS: usize = 64;

const TOKEN: &str = "token:open-sesame-1";

fn ping(address: &str) -> Duration {
    let began = Instant::now();
    let answer = e2e::http::ask(address, "GET", "/ping", &[], None);
    assert_eq!(answer.map(|answer| answer.status), Some(200));
    began.elapsed()
}

#[test]
fn the_limit_of_descriptors_is_the_hard_one() {
    let home = Home::new();
    let service = Service::start(
        home.new_server()
            .env("SVC_TOKEN", e2e::service::KEY)
            .descriptors(256, 1024),
    );
    service.wait_until_ready();
    let daemon = home.daemon().unwrap();
    for pid in [service.pid(), daemon.pid] {
        assert_eq!(limit(pid), ["1024", "1024"]);
    }
}

#[test]
fn sockets_without_the_key_never_take_the_last_descriptors() {
    take_all_descriptors();
    let home = Home::new();
    let service = Service::start(
        home.new_server()
            .env("SVC_TOKEN", e2e::service::KEY)
            .descriptors(256, 512),
    );
    service.wait_until_ready();
    let kept = service.rpc();
    let mut sockets: Vec<TcpStream> = Vec::new();
    for number in 0..1500 {
        match number % 3 {
            // An upgrade that is never used, a connection that says nothing, and one that says half a request.
            0 => sockets.extend(upgrade(service.address(), "/jsonrpc", &[])),
            1 => sockets.push(connect(service.address())),
            _ => {
                let mut socket = connect(service.address());
                let _closed_already = socket.write_all(b"POST /jsonrpc HTTP/1.1\r\nHost: ");
                sockets.push(socket);
            }
        }
    }
    assert_eq!(sockets.len(), 1500, "every one was accepted");
    ping(service.address());
    wait_until("the oldest are closed", || {
        descriptors(service.pid()) <= MAX_OF_SOURCE + OWN_DESCRIPTORS
    });
    // Who has the key is not in their way, and they are not in his.
    let mut kept = kept;
    kept.call("system.ping", &json!({})).unwrap();
    service.call("GET", "/api/v1/tasks", None);
    let mut first = sockets.remove(0);
    assert_eq!(close_reason(&mut first).unwrap().0, 1008, "an upgraded one is told why");
    let (rss, _) = memory(service.pid());
    println!(
        "{} sockets: {} descriptors, {rss} MiB",
        sockets.len() + 1,
        descriptors(service.pid())
    );
}

#[test]
fn a_websocket_that_never_authenticates_is_closed() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let began = Instant::now();
    let mut silent = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    let mut wrong = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    let mut right = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    let call = |token: &str| frame(&json!({"id": 1, "method": "aria2.getVersion", "params": [token]}).to_string());
    wrong.write_all(&call("token:wrong")).unwrap();
    right.write_all(&call(TOKEN)).unwrap();
    for socket in [&mut silent, &mut wrong] {
        assert_eq!(close_reason(socket).unwrap(), (1008, "unauthorized".to_owned()));
        let took = began.elapsed();
        assert!(
            took + Duration::from_secs(2) > FREE_TIME && took < FREE_TIME + LATENESS,
            "{took:?}"
        );
    }
    // The one with the key stays and is answered.
    right.write_all(&call(TOKEN)).unwrap();
    for _ in 0..2 {
        let mut head = [0; 4];
        right.read_exact(&mut head).unwrap();
        let mut text = vec![0; usize::from(u16::from_be_bytes([head[2], head[3]]))];
        right.read_exact(&mut text).unwrap();
        assert!(String::from_utf8(text).unwrap().contains("\"version\""));
    }
}

#[test]
fn a_websocket_without_the_key_may_send_64_kib() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let large = |token: &str| {
        let params = [token.to_owned(), "x".repeat(500 * 1024)];
        frame(&json!({"id": 1, "method": "aria2.getVersion", "params": params}).to_string())
    };
    let small = frame(&json!({"id": 1, "method": "aria2.getVersion", "params": [TOKEN]}).to_string());
    let mut stranger = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    let _cut_off = stranger.write_all(&large("token:wrong"));
    // Its end comes with a reason, unless the system throws that away with what was not read.
    match close_reason(&mut stranger) {
        Ok((code, reason)) => assert!(code == 1009 && reason.contains("64 KiB"), "{code} {reason}"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    let mut pings = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    let ping_frame = [&[0x89, 0xfd, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
    let mut sent = 0;
    while pings.write_all(&ping_frame).is_ok() {
        sent += ping_frame.len();
        assert!(sent < 16 * MAX_BODY, "pings without end are taken");
    }
    let mut known = upgrade(service.address(), "/jsonrpc", &[]).unwrap();
    known.write_all(&small).unwrap();
    known.write_all(&large(TOKEN)).unwrap();
    known.write_all(&frame("{\"id\":\"last\"}")).unwrap();
    let mut answers = String::new();
    while !answers.contains("\"last\"") {
        let mut piece = [0; 4096];
        let count = known.read(&mut piece).unwrap();
        assert!(count > 0, "closed after {answers}");
        answers.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert_eq!(answers.matches("\"version\"").count(), 2, "{answers}");
}

#[test]
fn slow_bodies_without_the_key_end_after_15_s() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let began = Instant::now();
    let begin = |path: &str| {
        let mut stream = connect(service.address());
        stream
            .write_all(post(service.address(), path, &[("Content-Type", "application/json")], 60_000).as_bytes())
            .unwrap();
        stream.write_all(b"[").unwrap();
        stream
    };
    let slow = ["/jsonrpc", "/rpc"].map(begin);
    for mut stream in slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(began.elapsed() < FREE_TIME + LATENESS, "{:?}", began.elapsed());
    }
}

#[test]
fn a_body_in_the_smallest_chunks_is_held_in_one_piece() {
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    let (_, before) = memory(service.pid());
    let body = "1\r\n \r\n".repeat(700 * 1024) + "1\r\n7\r\n0\r\n\r\n";
    let mut stream = connect(service.address());
    let head = format!(
        "POST /jsonrpc HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        service.address()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("Invalid Request."), "{answer}");
    let (_, most) = memory(service.pid());
    assert!(most < before + 30, "{before} MiB became {most} MiB");
}

#[test]
fn a_client_that_does_not_read_its_answer_is_given_up() {
    /// How long it may read nothing.
    const STALL_TIME: Duration = Duration::from_secs(30);
    let home = Home::new();
    let service = Service::start(home.new_desktop());
    let multicall = |calls: usize| {
        let within = vec![json!({"methodName": "aria2.getGlobalOption", "params": []}); calls];
        json!({"id": 1, "method": "system.multicall", "params": [within]}).to_string()
    };
    wait_until("the daemon answers", || {
        exchange(service.address(), "/jsonrpc", &[], &multicall(1))
            .1
            .contains("max-overall")
    });
    wait_until("the connections of that are closed", || sockets(service.pid()) <= 1);
    let mut stream = connect(service.address());
    // What the system takes for a client that does not read is not to hide it.
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
    let body = multicall(4000);
    let began = Instant::now();
    stream
        .write_all(post(service.address(), "/jsonrpc", &[], body.len()).as_bytes())
        .unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    wait_until("the connection is there", || sockets(service.pid()) > 1);
    // Reading now would be too kind: the connection has to go by itself.
    wait_until("the connection is closed", || sockets(service.pid()) <= 1);
    let took = began.elapsed();
    assert!(
        took + Duration::from_secs(1) > STALL_TIME && took < STALL_TIME + LATENESS,
        "{took:?}"
    );
    let mut answer = [0; 13];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 ", "it was answered");
    ping(service.address());
}

/// Connections of clients that the process has, and the one between it and its daemon.
fn sockets(pid: i32) -> usize {
    let own: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the process is there")
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let table = std::fs::read_to_string("/proc/net/tcp").expect("this system has /proc");
    let established = table.lines().filter_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        (fields.get(3) == Some(&"01")).then(|| fields[9].to_owned())
    });
    established.filter(|inode| own.contains(inode)).count()
}

#[test]
fn a_huge_head_is_refused() {
    let home = Home::new();
    let service = home.serve();
    let mut stream = connect(service.address());
    let head = format!(
        "GET /ping HTTP/1.1\r\nHost: {}\r\nX-A: {}\r\n\r\n",
        service.address(),
        "x".repeat(300 * 1024)
    );
    let _refused_meanwhile = stream.write_all(head.as_bytes());
    let mut answer = [0; 12];
    match stream.read_exact(&mut answer) {
        Ok(()) => assert_eq!(&answer, b"HTTP/1.1 431"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset),
    }
    ping(service.address());
}

#[test]
fn strangers_at_the_daemons_port_are_not_in_the_agents_way() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let daemon = home.daemon().unwrap();
    let address = format!("127.0.0.1:{}", daemon.port);
    let mut strangers: Vec<_> = (0..300).map(|_| upgrade(&address, "/rpc", &[]).unwrap()).collect();
    wait_until("the oldest are closed", || {
        descriptors(daemon.pid) <= 64 + OWN_DESCRIPTORS
    });
    let mut first = strangers.remove(0);
    assert_eq!(first.read(&mut [0; 64]).unwrap_or(0), 0, "it was closed");
    let mut loud = strangers.pop().unwrap();
    let _cut_off = loud.write_all(&frame(&"x".repeat(1024 * 1024)));
    while loud.read(&mut [0; 4096]).unwrap_or(0) > 0 {}
    service.call("GET", "/api/v1/tasks", None);
    let (status, _) = exchange(&address, "/blobs/plugins", &[], "x");
    assert_eq!(status, 401);
}
