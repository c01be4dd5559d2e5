//! What a run of the tests can be told through the environment.

use std::path::Path;

/// The value of `SVC_BIN`: the executable to test, instead of the one that this workspace builds.
pub fn executable() -> Option<String> {
    read("SVC_BIN")
}

/// The value of `SVC_KILLS`: how often each kill loop kills. 500 make a full run.
pub fn kills() -> u64 {
    read("SVC_KILLS").map_or(50, |text| text.parse().expect("SVC_KILLS is a number"))
}

/// The value of `SVC_CUTS`: how often the power is cut in each test of power cuts. Sixteen take half a minute; 100
/// make a full run.
pub fn cuts() -> u64 {
    read("SVC_CUTS").map_or(16, |text| text.parse().expect("SVC_CUTS is a number"))
}

/// The value of `SVC_CASE`: only cases of hostile origins whose names contain this.
pub fn case_filter() -> String {
    read("SVC_CASE").unwrap_or_default()
}

/// The value of `UPDATE_EXPECT`: whether generated files are rewritten rather than compared.
pub fn updates_expected() -> bool {
    read("UPDATE_EXPECT").is_some_and(|text| text == "1")
}

/// What the tools of a Rust developer need of the environment, and that they put what they make into this folder.
pub fn toolchain(target: &Path) -> Vec<(&'static str, String)> {
    let names = ["PATH", "HOME", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"];
    let mut variables: Vec<_> = names.into_iter().filter_map(|name| Some((name, read(name)?))).collect();
    variables.push(("CARGO_TARGET_DIR", target.display().to_string()));
    variables
}

/// Variables by which cargo describes this package to its tests.
pub fn package_variables() -> impl Iterator<Item = String> {
    let names = std::env::vars().map(|(name, _)| name);
    names.filter(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own settings; no product code runs in this process"
)]
fn read(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}
