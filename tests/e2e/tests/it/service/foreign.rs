//! The service as clients and plugins see it that share no line with it: libraries and toolchains of others, in Python and
//! JavaScript.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{
    Home, Service, Svc, python,
    service::{KEY, wait_until},
};
use serde_json::{Value, json};

use super::{guest, plugins::Server};

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
fn the_service_speaks_aria2s_dialect_as_aria2c_does() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    let said = python::run("clients/aria2_reference.py", &[service.address()]);
    println!("{said}");
}

#[test]
fn a_python_library_for_aria2_finds_what_it_needs() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    python::run("clients/aria2p_client.py", &[service.address()]);
}

#[test]
fn a_javascript_library_for_aria2_finds_what_it_needs() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    python::run_module("clients/aria2_socket.mjs", &[service.address()]);
}

#[test]
fn a_client_of_aria2_ends_the_service() {
    for method in ["aria2.shutdown", "aria2.forceShutdown"] {
        let home = Home::new();
        let service = home.serve();
        service.wait_until_ready();
        let call = json!({"id": 1, "method": method, "params": [format!("token:{KEY}")]});
        let answer = service.call("POST", "/jsonrpc", Some(&call));
        assert_eq!(answer["result"], "OK");
        assert_eq!(service.finish().code, Some(0), "{method}");
        wait_until("the daemon is gone, too", || home.processes().is_empty());
    }
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

#[test]
fn an_ai_client_lists_and_calls_every_tool_in_every_revision() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    println!("{}", python::run("clients/mcp_client.py", &[service.address()]));
}

#[test]
fn the_conformance_suite_of_the_protocol_for_ai_clients_passes() {
    let home = Home::new();
    let service = home.serve();
    println!(
        "{}",
        python::run_module("clients/mcp_conformance.mjs", &[service.address()])
    );
}

#[test]
fn the_description_is_a_valid_one_and_a_client_made_of_it_is_answered() {
    let home = Home::new();
    let service = home.serve();
    println!("{}", python::run("clients/openapi_check.py", &[service.address()]));
    println!(
        "{}",
        python::run_module("clients/openapi_client.mjs", &[service.address()])
    );
}

#[test]
fn whatever_is_asked_is_answered_as_described() {
    let home = Home::new();
    let server = home.new_server().env("SVC_TOKEN", KEY);
    let service = Service::start(server.env("ALL_PROXY", "http://127.0.0.1:1"));
    service.wait_until_ready();
    // Whatever link is made up: it leads nowhere.
    let mut config = Svc::new().env("SVC_URL", service.url()).env("SVC_TOKEN", KEY);
    config = config.args(["config", "server", "set", "proxy_mode=system"]);
    config.run().assert_success();
    println!("{}", python::run("clients/openapi_contract.py", &[service.address()]));
}

#[test]
fn prometheus_reads_the_metrics() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    println!("{}", python::run("clients/metrics_check.py", &[service.address()]));
}

#[test]
fn the_interface_can_be_read_and_tried_in_a_browser() {
    let home = Home::new();
    let service = home.serve();
    service.wait_until_ready();
    println!(
        "{}",
        python::run_module("clients/browser_docs.mjs", &[service.address()])
    );
}

#[test]
fn a_real_browser_keeps_foreign_pages_out() {
    let home = Home::new();
    let server = home.serve();
    server.wait_until_ready();
    let other = Home::new();
    let desktop = Service::start(other.new_desktop());
    let network = Home::new();
    let open = Service::start(network.new_open_desktop());
    let arguments = [server.address(), desktop.address(), open.address()];
    println!("{}", python::run_module("clients/browser_gate.mjs", &arguments));
}

/// The plugin of `tests/clients/componentize` as an archive, built by the toolchain of others.
fn foreign_plugin(folder: &Path) -> PathBuf {
    let component = folder.join("plugin.wasm");
    let arguments = [component.to_str().expect("the path is plain")];
    python::run_module("clients/componentize/build.mjs", &arguments);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/componentize/plugin.json");
    fs::copy(manifest, folder.join("plugin.json")).unwrap();
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c", "plugin.zip", "plugin.json", "plugin.wasm"]);
    assert!(zip.current_dir(folder).status().unwrap().success());
    folder.join("plugin.zip")
}

/// With an engine made for browsers in it, it is as large as plugins get.
#[test]
fn a_plugin_made_with_the_toolchain_of_others_lists_what_is_downloaded() {
    let files: [(&str, &[u8]); 3] = [
        (
            "share/listing.json",
            br#"{"title": "Photos", "files": [{"name": "a b.bin", "size": 1000}, {"name": "c.txt", "size": 3}]}"#,
        ),
        ("share/a b.bin", &[7; 1000]),
        ("share/c.txt", b"abc"),
    ];
    let (home, server) = (Home::new(), Server::with(&files));
    let service = guest::with_archive(&home, "listed@foreign", &foreign_plugin(home.path()));
    service.create(&json!({"url": format!("{}share/listing.json", server.url)}));
    let tasks = || match service.call("GET", "/api/v1/tasks", None) {
        Value::Array(tasks) => tasks,
        other => panic!("{other}"),
    };
    wait_until("its files are there", || {
        let tasks = tasks();
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 2 && tasks.iter().all(|task| task["status"] == 3)
    });
    for task in tasks() {
        let name = task["fileName"].as_str().unwrap();
        let path = Path::new(task["saveDir"].as_str().unwrap()).join(name);
        let (_, bytes) = files
            .iter()
            .find(|(path, _)| path.ends_with(name))
            .expect("it is one of them");
        assert!(fs::read(path).unwrap() == *bytes, "{name}");
    }
    assert_eq!(service.terminate().code, Some(0));
}
