//! What is in `examples/`, run as its readers run it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use e2e::{Home, Service, Svc, binary, python, service::wait_until, setting};
use serde_json::json;

use crate::service::{guest, plugins::Server};

/// What `printf abc | sha256sum` and `printf '' | sha256sum` print.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn example(name: &str) -> PathBuf {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name).canonicalize().expect("the example is there")
}

/// An author's command on the plugin of an example.
#[track_caller]
fn author(command: &str, plugin: &Path, arguments: &[&str]) -> String {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut svc = Svc::new().deadline(e2e::service::PATIENCE * 10);
    for (name, value) in setting::toolchain(&scratch.join("guests")) {
        svc = svc.env(name, value);
    }
    svc = svc.env("XDG_CACHE_HOME", scratch.join("author-cache"));
    let run = svc.args(["plugin", command]).arg(plugin).args(arguments).run();
    assert_eq!(run.code, Some(0), "{command}: {run:?}");
    run.stdout.join("\n")
}

/// Builds, tests and packs an example, and downloads with it: a list whose second digest is wrong.
fn plugin_verifies_what_it_lists(language: &str) {
    let plugin = example(&format!("plugin-{language}"));
    author("build", &plugin, &[]);
    let played = author("test", &plugin, &[]);
    assert!(played.contains("2 played, all as recorded"), "{played}");
    assert_eq!(author("lint", &plugin, &[]), "nothing to complain about");
    let home = Home::new();
    let archive = home.path().join("plugin.zip");
    author("pack", &plugin, &["-o", archive.to_str().expect("its path is UTF-8")]);

    let service = guest::with_archive(&home, &format!("checksum-list-{language}@example"), &archive);
    let list = format!("{ABC}  right.bin\n{EMPTY} *./sub/wrong one.bin\n");
    let server = Server::with(&[
        ("12/SHA256SUMS", list.as_bytes()),
        ("12/right.bin", b"abc"),
        ("12/sub/wrong one.bin", b"abc"),
    ]);
    service.create(&json!({"url": format!("{}12/SHA256SUMS", server.url)}));
    let status_of = |name: &str| {
        let tasks = service.call("GET", "/api/v1/tasks", None);
        let tasks = tasks.as_array().expect("it is a list").clone();
        let task = tasks.into_iter().find(|task| task["fileName"] == name);
        task.map_or(0, |task| task["status"].as_u64().expect("a status is a number"))
    };
    wait_until("one file is verified and the other one refused", || {
        (status_of("right.bin"), status_of("wrong one.bin")) == (3, 4)
    });
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_plugin_in_rust_lists_and_verifies() {
    plugin_verifies_what_it_lists("rust");
}

#[test]
fn the_plugin_in_javascript_lists_and_verifies() {
    plugin_verifies_what_it_lists("js");
}

#[test]
fn the_configuration_of_an_mcp_client_reaches_the_tools() {
    let home = Home::new();
    let service = home.serve();
    let configuration = example("mcp/mcp.json");
    let arguments = [configuration.to_str().expect("its path is UTF-8"), service.address()];
    println!("{}", python::run("clients/example_mcp.py", &arguments));
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_userscript_hands_a_link_over_with_cookies_and_referrer() {
    let home = Home::new();
    let service = Service::start(home.new_open_desktop());
    let script = example("userscript/svc.user.js");
    let [script, executable] = [&script, binary::path()].map(|path| path.to_str().expect("its path is UTF-8"));
    let address = service.address().replace("0.0.0.0", "127.0.0.1");
    println!(
        "{}",
        python::run_module("clients/example_userscript.mjs", &[script, executable, &address])
    );
    let file = home.downloads().join("file.bin");
    wait_until("the file is there", || {
        fs::read(&file).is_ok_and(|bytes| bytes == b"bytes")
    });
    assert_eq!(service.terminate().code, Some(0));
}

#[test]
fn the_extension_takes_downloads_over_and_leaves_them_to_the_browser_when_the_service_is_away() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let extension = example("extension");
    let arguments =
        [&extension, binary::path(), directory.path()].map(|path| path.to_str().expect("its path is UTF-8"));
    println!("{}", python::run_module("clients/extension.mjs", &arguments));
}

#[test]
fn the_extension_takes_downloads_over_in_firefox() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let extension = example("extension");
    let arguments =
        [&extension, binary::path(), directory.path()].map(|path| path.to_str().expect("its path is UTF-8"));
    println!("{}", python::run_module("clients/extension_firefox.mjs", &arguments));
}

/// What the bookmarklet makes of a page is what `svc open` reads.
#[test]
fn the_bookmarklet_makes_a_link_of_svc() {
    let page = fs::read_to_string(example("bookmarklet/README.md")).expect("it is there");
    let script = page
        .lines()
        .find_map(|line| line.strip_prefix("javascript:void(location.href="));
    let script = script
        .and_then(|script| script.strip_suffix(')'))
        .expect("it is a bookmark's address");
    let run = Command::new("/usr/bin/env")
        .args(["node", "-e"])
        .arg(format!(
            "const getSelection = () => '', location = {{ href: 'https://a.test/?a=1&b=%20' }}; console.log({script})"
        ))
        .output()
        .expect("node is there");
    let link = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    assert_eq!(
        link, "svc://download?url=https%3A%2F%2Fa.test%2F%3Fa%3D1%26b%3D%2520",
        "{run:?}"
    );
}

#[test]
fn the_compose_file_starts_checks_and_stops_the_service() {
    let directory = tempfile::tempdir().expect("there is room for a directory");
    let file = example("compose/compose.yaml");
    let arguments = [&file, binary::path(), directory.path()].map(|path| path.to_str().expect("its path is UTF-8"));
    println!("{}", python::run("clients/example_compose.py", &arguments));
}

#[test]
fn the_first_download_is_complete_and_verified() {
    let output = Command::new(example("first-download"))
        .env("SVC_BIN", binary::path())
        .output();
    let output = output.expect("bash is part of the system");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.contains("the SHA-256 is right: "), "{printed}");
}
