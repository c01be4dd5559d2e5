//! Options for linking the executable that a cargo profile cannot express. Those for releases only make them smaller; where
//! they might not be understood they are left out.

#![expect(
    clippy::disallowed_methods,
    reason = "cargo speaks to build scripts through their environment"
)]

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    if variable("TARGET") == "x86_64-unknown-linux-gnu" {
        // Addresses of functions in libraries are found at the start and are read-only from then on, which
        // .cargo/config.toml takes from the compiler's own choice of options.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,relro,-z,now");
    }
    if variable("PROFILE") != "release" || !links_with_lld(variable) {
        return;
    }
    // Functions with the same code become one: generic code for types of one shape, mostly.
    println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    // Relocations in 30 KB instead of 3 MB, all of which is read at every start.
    if variable("HOST") == variable("TARGET") && packed_relocations_are_read() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// On this target Rust links with its own lld unless it is told otherwise; other linkers refuse these options.
fn links_with_lld(variable: impl Fn(&str) -> String) -> bool {
    let is_default = variable("RUSTC_LINKER").is_empty() && !variable("CARGO_ENCODED_RUSTFLAGS").contains("link");
    is_default && variable("TARGET") == "x86_64-unknown-linux-gnu"
}

/// glibc reads them since 2.36 and refuses to start the executable before. An executable that is built for older systems
/// is built on one.
fn packed_relocations_are_read() -> bool {
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    let mut numbers = version
        .trim()
        .trim_start_matches("glibc ")
        .split('.')
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (2, 36),
        _ => false,
    }
}
