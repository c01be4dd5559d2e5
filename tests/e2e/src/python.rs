//! Programs of other people's making: the clients of `tests/clients` in Python and JavaScript, with libraries that are
//! not ours.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{service::KEY, svc::Svc};

/// Runs a Python script below `tests/` with its arguments; fails with what it said if it fails. The access key is in its
/// environment.
#[track_caller]
pub fn run(script: &str, arguments: &[&str]) -> String {
    run_with("python", script, arguments)
}

/// A Python script below `tests/` that needs no library, to be run while the test does something else. The access key is in
/// its environment.
pub fn client(script: &str) -> Svc {
    let svc = Svc::of("/usr/bin/env").arg("python3").arg(path(script));
    svc.env("SVC_TOKEN", KEY).env("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// A Python script below `tests/` with the system's own Python, which has libraries of the system's packages such as D-Bus.
pub fn system_client(script: &str) -> Svc {
    Svc::of("/usr/bin/python3").arg("-u").arg(path(script))
}

/// Runs a JavaScript module below `tests/` in the same way.
#[track_caller]
pub fn run_module(script: &str, arguments: &[&str]) -> String {
    run_with("node", script, arguments)
}

/// A file below `tests/`.
pub(crate) fn path(name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tests.expect("this crate lies in tests/").join(name)
}

#[track_caller]
fn run_with(launcher: &str, script: &str, arguments: &[&str]) -> String {
    let output = Command::new(path("clients").join(launcher))
        .arg(path(script))
        .args(arguments)
        .env("SVC_TOKEN", KEY)
        .output()
        .expect("the launcher is a script of ours, and bash is part of the system");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{script} failed after\n{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}
