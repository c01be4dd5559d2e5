//! Files that the user picks of a plugin's list, and the group that they become.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use e2e::{Home, Run, Service};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::plugin_sites::{svc, with_plugin};

/// Lists three files, one of them in a folder and in two qualities.
const SCRIPT: &str = "export async function resolve(call, out) {
        const link = name => new URL('/' + name, call.url);
        out.title('Share');
        out.add('one', 'a.iso').size(1000).link(link('a.iso'));
        out.add('two', 'b.txt').size(500).link(link('b.txt'));
        out.add('three', 'c.iso').folder('old').size(1000).link(link('c.iso'));
    }
    export const preview = resolve;";

fn run(service: &Service, arguments: &[&str]) -> Run {
    svc(service, arguments).run()
}

#[track_caller]
fn succeed(service: &Service, arguments: &[&str]) -> String {
    let run = run(service, arguments);
    run.assert_success();
    run.stdout.join("\n")
}

fn json_of(service: &Service, arguments: &[&str]) -> Value {
    serde_json::from_str(&succeed(service, &[arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn picked_files_become_a_group_that_commands_name() {
    let content = || Content::seeded(5, 1000);
    let paths = ["/a.iso", "/b.txt", "/c.iso"];
    let origin = Origin::start(paths.map(|path| Resource::new(path, content())).into());
    let home = Home::new();
    let service = with_plugin(&home, &json!({"inputHost": true}), SCRIPT);
    let url = origin.url("/page");
    let shown = succeed(&service, &["plugin", "preview", &url]);
    assert!(shown.contains("lists 3 files, 2.4 KiB: Share"), "{shown}");
    assert!(shown.contains("old/\n3  "), "{shown}");
    let refused = run(&service, &["add", &url, "--pick", "4"]);
    assert!(
        refused.code == Some(32) && refused.stderr.contains("1 to 3"),
        "{refused:?}"
    );
    let made = json_of(&service, &["add", &url, "--paused", "--pick", "*.iso"]);
    assert_eq!(made["taskIds"].as_array().unwrap().len(), 2, "{made}");
    let group = json_of(&service, &["group", "show", "Share"]);
    let names: Vec<_> = group["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["fileName"])
        .collect();
    assert_eq!(names, ["a.iso", "c.iso"]);
    assert!(succeed(&service, &["group"]).contains("Share"));
    let id = made["groupId"].as_str().unwrap();
    assert!(succeed(&service, &["group", "continue", &id[..8]]).contains("continued group Share"));
    assert!(succeed(&service, &["group", "pause", "Share"]).contains("paused group Share"));
    let unknown = run(&service, &["group", "pause", "nothing"]);
    assert!(
        unknown.code == Some(3) && unknown.stderr.contains("svc group list"),
        "{unknown:?}"
    );
    assert!(succeed(&service, &["group", "rm", "Share", "--files"]).contains("removed group Share"));
    assert_eq!(json_of(&service, &["group"]), json!([]));
    assert_eq!(json_of(&service, &["list"]), json!([]));
    let plain = run(&service, &["add", &origin.url("/a.iso"), "--pick", "1"]);
    assert!(plain.code == Some(32) && plain.stderr.contains("no list"), "{plain:?}");
}
