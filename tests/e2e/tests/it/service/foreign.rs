//! The service as a client sees it that shares no line with it: Python, and a WebSocket library of others.

use e2e::{Home, python};

#[test]
fn a_foreign_agent_finds_the_daemon_as_described() {
    let home = Home::new();
    let _service = home.serve();
    let data = home.data();
    python::run(
        "clients/rpc_client.py",
        &["daemon", data.to_str().expect("the path is plain")],
    );
}

#[test]
fn a_foreign_client_finds_the_agent_as_described() {
    let home = Home::new();
    let service = home.serve();
    python::run("clients/rpc_client.py", &["agent", service.address()]);
}

#[test]
fn fifty_subscribers_miss_nothing_and_a_slow_one_is_told() {
    let home = Home::new();
    let service = home.serve();
    let data = home.data();
    let arguments = [
        "--subscribers",
        "50",
        "--changes",
        "2000",
        "--data-dir",
        data.to_str().expect("the path is plain"),
    ];
    let said = python::run("bench/subscribers.py", &[&arguments[..], &[service.address()]].concat());
    println!("{said}");
}
