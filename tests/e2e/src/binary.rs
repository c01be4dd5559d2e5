//! Where the executable is. Cargo tells tests only about executables of their own package.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::setting;

/// The executable: `SVC_BIN`, or the one beside this test's own build, brought up to date first. It is built together with
/// the tests, because features of dependencies that only tests want would otherwise have them compiled twice.
pub fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| setting::executable().map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let this = std::env::current_exe().expect("a running test has a path");
    let directory = this
        .parent()
        .and_then(Path::parent)
        .expect("a test is built in <target>/<profile>/deps");
    let profile = directory
        .file_name()
        .and_then(|name| name.to_str())
        .expect("profiles have plain names");
    let target = directory.parent().expect("a profile is in the target directory");
    let mut cargo = Command::new(env!("CARGO"));
    // ring is compiled again whenever one of these changes, and everything that is built on it.
    setting::package_variables().for_each(|name| _ = cargo.env_remove(name));
    let status = cargo
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--tests",
            "--bin",
            "svc",
            "--target-dir",
        ])
        .arg(target)
        .args(["--profile", if profile == "debug" { "dev" } else { profile }])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs, since it has built this test");
    assert!(status.success(), "svc does not build");
    directory.join("svc")
}
