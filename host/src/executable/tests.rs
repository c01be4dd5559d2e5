//! The complete command line.

use super::*;

fn refusal(arguments: &[&str]) -> clap::Error {
    parse(arguments.iter().map(OsString::from).collect()).unwrap_err()
}

#[test]
fn the_command_line_is_consistent() {
    Cli::<Command>::command().debug_assert();
}

#[test]
fn get_alone_is_the_get_among_all_commands() {
    for arguments in [
        &["svc", "get", "--help"][..],
        &["svc", "get", "-h"],
        &["svc", "get", "--version"],
        &["svc", "get", "--fetch"],
        &["svc", "get"],
    ] {
        let alone = Cli::<Download>::try_parse_from(arguments).unwrap_err();
        let among_all = Cli::<Command>::try_parse_from(arguments).unwrap_err();
        assert_eq!(alone.to_string(), among_all.to_string());
    }
}

#[test]
fn wrong_usage_is_distinguished_from_help() {
    let exit = |arguments: &[&str]| refuse(&refusal(arguments));
    assert_eq!(exit(&["svc", "--help"]), Exit::Success);
    assert_eq!(exit(&["svc", "get", "--help"]), Exit::Success);
    assert_eq!(exit(&["svc", "--version"]), Exit::Success);
    assert_eq!(exit(&["svc"]), Exit::Usage);
    assert_eq!(exit(&["svc", "get"]), Exit::Usage);
    assert_eq!(exit(&["svc", "fetch"]), Exit::Usage);
    assert_eq!(
        exit(&["svc", "get", "--segments", "900", "http://a.test/"]),
        Exit::Usage
    );
}

#[test]
fn a_number_out_of_range_names_the_option_and_the_limit() {
    for (option, value, limit) in [
        ("--segments", "65", "64"),
        ("--max-connections", "0", "1..=128"),
        ("--jobs", "1025", "1..=1024"),
        ("--min-split", "1K", "64K"),
        ("--limit", "fast", "2.5M"),
        ("--retry-wait", "-1", "0"),
        ("--timeout", "0", "0.1"),
    ] {
        let argument = format!("{option}={value}");
        let refusal = refusal(&["svc", "get", &argument, "http://a.test/"]).to_string();
        assert!(refusal.contains(option) && refusal.contains(limit), "{refusal}");
    }
}
