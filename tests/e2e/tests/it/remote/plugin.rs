//! The commands about plugins.

use std::fs;

use super::{Desk, assert_ended};

#[test]
fn what_is_no_plugin_is_refused_and_what_is_not_there_is_not_found() {
    let desk = Desk::new();
    assert_eq!(desk.json(&["plugin", "list"]), serde_json::json!([]));
    assert_ended(&desk.run(&["plugin", "ls"]), 0, "PLUGIN");
    let file = desk.home.path().join("plugin.zip");
    let install = || desk.run(&["plugin", "install", file.to_str().unwrap()]);
    assert_ended(&install(), 32, "cannot be read");
    fs::write(&file, "no archive").unwrap();
    assert_ended(&install(), 32, "refuses");
    for command in ["enable", "disable", "consent", "rollback", "rm", "settings"] {
        assert_ended(&desk.run(&["plugin", command, "none@test"]), 3, "svc plugin list");
    }
}
