//! The directories of groups, and what a group keeps of the list that it was made from.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::{fs, path::Path};

use e2e::{Home, Service, service::wait_until};
use serde_json::{Value, json};
use support::{Content, Origin, Resource};

use super::plugin_sites::{run, with_plugin};

const SHA256_OF_A: &str = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";

/// Lists two files, with a checksum, and says what it leaves out.
const SCRIPT: &str = r"export async function resolve(call, out) {
        out.title('Share');
        const digest = 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb';
        out.add('one', 'a.bin').checksum('sha256', digest).link(new URL('/a.bin', call.url));
        out.add('two', 'b.bin').folder('deep').link(new URL('/b.bin', call.url));
        out.leftOut('unreadable', 'secret', 1);
        out.leftOut('tooDeep', '', 3);
    }
    export const preview = resolve;";

fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/a.bin", Content::bytes("a")),
        Resource::new("/b.bin", Content::bytes("b")),
    ])
}

fn service(home: &Home) -> Service {
    with_plugin(home, &json!({"inputHost": true}), SCRIPT)
}

fn list(service: &Service, path: &str) -> Vec<Value> {
    service.call("GET", path, None).as_array().unwrap().clone()
}

/// The directories of the groups, by their names.
fn directories(service: &Service) -> Vec<String> {
    let name = |group: &Value| {
        let path = Path::new(group["saveDir"].as_str().unwrap()).file_name().unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut names: Vec<_> = list(service, "/api/v1/groups").iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn groups_have_directories_of_their_own_beside_files_and_other_groups() {
    let (origin, home) = (origin(), Home::new());
    let service = service(&home);
    fs::create_dir_all(home.downloads()).unwrap();
    fs::write(home.downloads().join("Share"), "mine").unwrap();
    for query in ["1", "2"] {
        service.create(&json!({"url": origin.url(&format!("/page?{query}"))}));
    }
    let picked = run(&service, &["add", &origin.url("/page?3"), "--paused", "--pick", "1-2"]);
    assert!(picked.code == Some(0), "{picked:?}");
    wait_until("the files of the lists are there", || {
        let tasks = list(&service, "/api/v1/tasks");
        assert!(tasks.iter().all(|task| task["status"] != 4), "{tasks:?}");
        tasks.len() == 6 && tasks.iter().filter(|task| task["status"] == 3).count() == 4
    });
    let expected = ["Share (1)", "Share (2)", "Share (3)"];
    assert_eq!(directories(&service), expected);
    let at = |path: &str| fs::read_to_string(home.downloads().join(path)).unwrap_or_default();
    assert_eq!(at("Share"), "mine");
    let whole = ["Share (1)", "Share (2)", "Share (3)"]
        .into_iter()
        .filter(|group| at(&format!("{group}/a.bin")) == "a" && at(&format!("{group}/deep/b.bin")) == "b");
    assert_eq!(whole.count(), 2);
    assert_eq!(service.terminate().code, Some(0));
    // What was decided stays, also when the file is gone.
    fs::remove_file(home.downloads().join("Share")).unwrap();
    let service = home.serve();
    service.wait_until_ready();
    assert_eq!(directories(&service), expected);
    let waiting = list(&service, "/api/v1/tasks")
        .into_iter()
        .find(|task| task["status"] != 3)
        .unwrap();
    assert!(!waiting["saveDir"].as_str().unwrap().ends_with('/'), "{waiting}");
    let of_group = list(&service, "/api/v1/groups");
    let of_group = of_group
        .iter()
        .find(|group| group["groupId"] == waiting["groupId"])
        .unwrap();
    assert!(
        waiting["saveDir"]
            .as_str()
            .unwrap()
            .starts_with(of_group["saveDir"].as_str().unwrap())
    );
}

#[test]
fn a_group_of_picked_files_keeps_what_its_list_left_out_and_their_checksums() {
    let (origin, home) = (origin(), Home::new());
    let service = service(&home);
    let url = origin.url("/page");
    let preview = service.call("POST", "/api/v1/resolve/preview", Some(&json!({"url": url})));
    let left_out = &preview["leftOut"];
    assert_eq!(left_out.as_array().map(Vec::len), Some(2), "{preview}");
    run(&service, &["add", &url, "--paused", "--pick", "1"]);
    let item = |checksum: &str| {
        json!({"sourceUrl": url, "groupName": "By hand", "startPaused": true, "leftOut": left_out, "items": [
            {"resolverItem": "one", "fileName": "a.bin", "checksum": checksum}]})
    };
    service.call("POST", "/api/v1/groups", Some(&item(&format!("sha256={SHA256_OF_A}"))));
    let groups = list(&service, "/api/v1/groups");
    assert!(
        groups.len() == 2 && groups.iter().all(|group| group["leftOut"] == *left_out),
        "{groups:?}"
    );
    let shown = run(&service, &["group", "show", "Share"]).stdout.join("\n");
    assert!(shown.contains("secret, which cannot be read"), "{shown}");
    for task in list(&service, "/api/v1/tasks") {
        assert!(task["checksum"].as_str().unwrap().contains(SHA256_OF_A), "{task}");
    }
    for wrong in [
        json!([{"kind": "lost"}]),
        json!([{"kind": "tooDeep", "name": "a\u{1b}[2J"}]),
        json!([{"kind": "tooDeep", "name": "x".repeat(2000)}]),
    ] {
        let mut body = item("");
        body["leftOut"] = wrong;
        let refused = service.ask("POST", "/api/v1/groups", Some(&body)).unwrap();
        assert!(
            refused.status == 400 && refused.body.to_string().contains("leftOut"),
            "{}",
            refused.body
        );
    }
    assert_eq!(list(&service, "/api/v1/groups").len(), 2);
}
