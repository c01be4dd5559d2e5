use std::collections::HashSet;

use super::*;
use crate::case::Expect;

#[test]
fn names_are_unique_kebab_case_and_every_case_is_described() {
    let mut seen = HashSet::new();
    for case in cases() {
        assert!(seen.insert(case.name), "{} is there twice", case.name);
        assert!(
            case.name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            case.name
        );
        assert!(
            case.what.ends_with('.') && case.what.starts_with(char::is_uppercase),
            "{}",
            case.name
        );
        if let Expect::Error(codes) | Expect::IdenticalOrError(codes) = case.expect {
            assert!(!codes.is_empty(), "{}", case.name);
        }
    }
    assert!(seen.len() >= 60, "only {} cases", seen.len());
}

#[test]
fn every_case_can_be_staged_and_ends_when_dropped() {
    for case in cases() {
        let scene = case.stage();
        assert!(
            scene.url.starts_with("http") && !scene.truths.is_empty(),
            "{}",
            case.name
        );
    }
}

#[test]
fn the_checksum_is_the_usual_files() {
    let path = std::env::temp_dir().join(format!("support-checksum-{}", std::process::id()));
    std::fs::write(&path, content().to_vec()).unwrap();
    let output = std::process::Command::new("sha256sum").arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(CHECKSUM[1].strip_prefix("sha-256="), text.get(..64));
}
