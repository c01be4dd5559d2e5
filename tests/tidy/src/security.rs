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
