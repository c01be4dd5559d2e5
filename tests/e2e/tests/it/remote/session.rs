//! Sessions of aria2: taken over, and given back.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::fs;

use super::Desk;

const SESSION: &str = "http://127.0.0.1:1/a\thttp://127.0.0.1:1/b\t
 gid=00000000000000a1
 dir=/d
 out=one
 header=A: b
 max-download-limit=102400
 pause=true
 split=3
http://127.0.0.1:1/c
 pause=true
 gid=00000000000000a2
 always-resume=false
";

/// Has the desk's service take the session over; what it says.
#[track_caller]
fn import(desk: &Desk, session: &str) -> serde_json::Value {
    let path = desk.home.path().join("session");
    fs::write(&path, session).unwrap();
    desk.json(&["import", "aria2", path.to_str().unwrap()])
}

fn export(desk: &Desk) -> String {
    let run = desk.run(&["export", "aria2"]);
    run.assert_success();
    run.stdout.join("\n") + "\n"
}

#[test]
fn what_aria2_left_is_taken_over_once_and_given_back_without_its_headers() {
    let desk = Desk::new();
    let taken = import(&desk, SESSION);
    assert_eq!(taken["added"].as_array().unwrap().len(), 2, "{taken}");
    assert!(
        taken["notes"][0].as_str().unwrap().starts_with("always-resume: "),
        "{taken}"
    );
    let again = import(&desk, SESSION);
    assert_eq!(
        (&again["added"], &again["known"]),
        (&serde_json::json!([]), &taken["added"])
    );
    let given = export(&desk);
    let first = "http://127.0.0.1:1/a\thttp://127.0.0.1:1/b\t\n dir=/d\n gid=00000000000000a1\n \
        max-download-limit=102400\n out=one\n pause=true\n split=3\n";
    assert!(given.starts_with(first), "{given}");
    let other = Desk::new();
    assert_eq!(import(&other, &given)["added"], taken["added"]);
    assert_eq!(export(&other), given);
}

#[test]
fn what_cannot_be_taken_over_is_said() {
    let desk = Desk::new();
    let path = desk.home.path().join("session");
    fs::write(&path, "magnet:?xt=urn:btih:1\n").unwrap();
    let run = desk.run(&["import", "aria2", path.to_str().unwrap()]);
    assert_eq!(run.code, Some(32));
    assert!(run.stdout[0].starts_with("not taken: magnet:"), "{:?}", run.stdout);
}
