//! The page on security names a test for every attack, and every attack that is tested stands on the page.

use std::{collections::BTreeSet, fs, path::Path};

const PAGE: &str = "../../host/docs/security.md";
const TESTS: &str = "../e2e/tests/it/attack";

fn at_workspace(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// `topic::name` of every test function below the folder of attacks.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let entries = fs::read_dir(at_workspace(TESTS)).expect("attacks are tested");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    // Folders hold what a topic's attacks are made of.
    for path in paths.filter(|path| path.is_file()) {
        let topic = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("file names are plain");
        let text = fs::read_to_string(&path).expect("sources are text");
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(function) = line.split("fn ").nth(1).filter(|_| is_test) {
                let name = function.split('(').next().unwrap_or(function);
                names.insert(format!("{topic}::{name}"));
                is_test = false;
            }
        }
    }
    names
}

/// Every `topic::name` in backticks on the page. Paths into crates stand there, too: those begin with no topic.
fn named(tests: &BTreeSet<String>) -> BTreeSet<String> {
    let page = fs::read_to_string(at_workspace(PAGE)).expect("the page on security exists");
    let quoted = page.split('`').skip(1).step_by(2);
    let is_topic = |topic: &str| tests.iter().any(|test| test.split("::").next() == Some(topic));
    let is_test = |text: &&str| text.split_once("::").is_some_and(|(topic, _)| is_topic(topic));
    quoted.filter(is_test).map(ToOwned::to_owned).collect()
}

#[test]
fn the_page_on_security_names_the_tests_of_all_attacks_and_no_others() {
    let tests = tests();
    let named = named(&tests);
    let missing: Vec<_> = tests.difference(&named).collect();
    assert!(
        missing.is_empty(),
        "host/docs/security.md lacks these tests: {missing:#?}"
    );
    let unknown: Vec<_> = named.difference(&tests).collect();
    assert!(
        unknown.is_empty(),
        "host/docs/security.md names tests that do not exist: {unknown:#?}"
    );
}

/// Where the attacks on the device link are tried: functions of scripts and tests.
const OF_LINK: [&str; 8] = [
    "../clients/link_peer.py",
    "../clients/link_middle.py",
    "../clients/link_crashes.py",
    "../clients/link_network.py",
    "../e2e/tests/it/link.rs",
    "../../host/link/src/pairing/responder/tests.rs",
    "../../host/link/src/pairing/guesses.rs",
    "../../host/link/src/replay.rs",
];

#[test]
fn what_shows_the_safety_of_the_device_link_exists() {
    let sources = OF_LINK.map(|path| fs::read_to_string(at_workspace(path)).expect("it exists"));
    let page = fs::read_to_string(at_workspace(PAGE)).expect("the page on security exists");
    let section = page
        .split("### Device link")
        .nth(1)
        .and_then(|rest| rest.split("\n### ").next());
    let rows = section
        .expect("it has the section")
        .lines()
        .filter(|line| line.starts_with("| "));
    let mut count = 0;
    for row in rows.skip(1) {
        let shown_by = row
            .trim_end_matches(['|', ' '])
            .rsplit(" | ")
            .next()
            .unwrap_or_default();
        let names: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "nothing shows this: {row}");
        for name in names {
            let is_defined =
                |text: &String| text.contains(&format!("fn {name}(")) || text.contains(&format!("def {name}("));
            let is_file = name == "replay";
            assert!(
                is_file || sources.iter().any(is_defined),
                "host/docs/security.md names {name}, which does not exist"
            );
            count += 1;
        }
    }
    assert!(count > 20, "the table was not found");
}
