//! Plugins, previews and groups, with a real daemon.

use serde_json::{Value, json};
use support::{Content, Origin, Resource};
use tokio::time::timeout;

use crate::{
    client::Client,
    scripted::{archive, manifest, plugin},
    world::{KEY, PATIENCE, World},
};

const INSTALL: &str = "POST /api/v1/plugins/install";
const ONE: &str = "/api/v1/plugins/share@test";

/// Two files and the page of the share.
fn origin() -> Origin {
    Origin::start(vec![
        Resource::new("/files/a.bin", Content::seeded(1, 70_000)),
        Resource::new("/files/sub/b.bin", Content::seeded(2, 50_000)),
        Resource::new("/share/1", Content::bytes("a web page")),
    ])
}

/// Installs a plugin for the origin's shares with this script.
async fn install(world: &World, origin: &Origin, script: &str) {
    let script = format!("links {}\n{script}", origin.url("/files/"));
    let answer = world.ask(INSTALL, plugin(&origin.url("/share/*"), &script)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json().get("pendingConsent"), None, "it reaches nothing");
}

async fn plugins(world: &World) -> Value {
    world.get("/api/v1/plugins").await.json()
}

/// All tasks, after each has ended.
pub(crate) async fn ended(world: &World, count: usize) -> Vec<Value> {
    let ended = async {
        loop {
            let Value::Array(tasks) = world.get("/api/v1/tasks").await.json() else {
                panic!("tasks are a list")
            };
            let has_ended = |task: &Value| task["status"] == 3 || task["status"] == 4;
            if tasks.len() == count && tasks.iter().all(has_ended) {
                return tasks;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, ended).await.unwrap()
}

fn message(answer: &crate::world::Answer) -> String {
    answer.json()["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_plugin_is_installed_agreed_to_switched_and_removed() {
    let world = World::new().await;
    assert_eq!(plugins(&world).await, json!([]));
    let mut client = Client::open(&world).await;
    client.call("system.snapshot", json!({})).await;
    let installed = world
        .ask(INSTALL, plugin("https://share.test/*", "imports http.send"))
        .await
        .json();
    assert_eq!(
        (&installed["identity"], &installed["version"]),
        (&json!("share@test"), &json!("1.2.3"))
    );
    let digest = installed["pendingConsent"].clone();
    let listed = plugins(&world).await;
    assert_eq!(
        (&listed[0]["loadStatus"], &listed[0]["enabled"]),
        (&json!("PendingConsent"), &json!(false))
    );
    assert_eq!(
        listed[0]["pending"],
        json!({"version": "1.2.3", "added": ["host https://api.share.test"], "authorChanged": false, "digest": digest})
    );

    let enable = format!("PUT {ONE}/enabled");
    let agree = |digest: &Value| json!({"enabled": true, "consent": digest}).to_string();
    let other = json!("0".repeat(64));
    for (body, status) in [
        (agree(&other), 409),
        (agree(&json!("moon")), 400),
        ("{}".to_owned(), 400),
    ] {
        assert_eq!(world.ask(&enable, &body).await.status, status, "{body}");
    }
    assert_eq!(world.ask(&enable, agree(&digest)).await.status, 200);
    let listed = plugins(&world).await;
    assert_eq!(
        (&listed[0]["loadStatus"], &listed[0]["enabled"]),
        (&json!("Loaded"), &json!(true))
    );
    assert_eq!(world.ask(&enable, r#"{"enabled":false}"#).await.status, 200);
    assert_eq!(plugins(&world).await[0]["disabledReason"], "Manual");

    let listed = plugins(&world).await;
    assert_eq!(client.call("daemon.plugin.list", json!({})).await["result"], listed);
    let snapshot = client.call("system.snapshot", json!({})).await;
    assert_eq!(snapshot["result"]["body"]["snapshot"]["daemon"]["plugins"], listed);
    let is_told = |told: &&Value| told["event"]["event"]["data"]["type"] == "pluginsChanged";
    let told = client.events.iter().rfind(is_told).unwrap();
    assert_eq!(told["event"]["event"]["data"]["data"], listed);

    for _ in 0..2 {
        assert_eq!(world.ask(&format!("DELETE {ONE}"), "").await.status, 200);
        assert_eq!(plugins(&world).await, json!([]));
    }
    assert_eq!(world.ask(&enable, r#"{"enabled":true}"#).await.status, 404);
    world.end().await;
}

#[tokio::test]
async fn a_host_that_a_plugin_can_do_without_is_chosen_about_and_all_is_in_the_journal() {
    let world = World::new().await;
    let (preview, hosts) = ("POST /api/v1/resolve/preview", format!("PUT {ONE}/hosts"));
    let url = json!({"url": "https://share.test/1"}).to_string();
    let asks = plugin("https://share.test/*", "asks https://mirror.test/\nfile a.bin");
    assert_eq!(world.ask(INSTALL, asks).await.status, 200);
    let mirror = "https://mirror.test";
    let choice = |choice: &str| json!({"host": mirror, "choice": choice}).to_string();
    let grantable = || async { world.ask(preview, &url).await.json()["grantable"] == true };

    let refused = world.ask(preview, &url).await.json();
    assert_eq!(refused["grantableHosts"], json!([mirror]));
    assert!(refused["grantable"] == true && !refused["error"].as_str().unwrap().is_empty());
    assert_eq!(world.ask(&hosts, choice("once")).await.status, 200);
    assert_eq!(world.ask(preview, &url).await.json()["items"][0]["name"], "a.bin");
    assert!(grantable().await, "once is once");
    assert_eq!(world.ask(&hosts, choice("never")).await.status, 200);
    assert!(!grantable().await, "nobody is asked again");
    assert_eq!(
        plugins(&world).await[0]["optionalHosts"],
        json!([{"host": mirror, "choice": "never"}])
    );
    assert_eq!(world.ask(&hosts, choice("always")).await.status, 200);
    assert_eq!(world.ask(preview, &url).await.json()["error"], "");
    for (body, status) in [
        (choice("perhaps"), 400),
        (
            json!({"host": "https://evil.test", "choice": "always"}).to_string(),
            400,
        ),
        (json!({"host": "*", "choice": "always"}).to_string(), 400),
    ] {
        assert_eq!(world.ask(&hosts, &body).await.status, status, "{body}");
    }

    let journal = world.get(&format!("{ONE}/journal")).await.json();
    let events = journal["events"].as_array().unwrap();
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).count();
    assert_eq!((of("called"), of("denied"), of("hostChosen")), (5, 3, 3));
    let called = events.iter().find(|event| event["event"] == "called").unwrap();
    assert_eq!(
        (&called["call"]["action"], &called["call"]["code"]),
        (&json!("preview"), &json!("denied"))
    );
    assert_eq!(world.get("/api/v1/plugins/none@test/journal").await.status, 404);

    let roll_back = format!("POST {ONE}/rollback");
    assert_eq!(
        world.ask(&roll_back, "").await.status,
        409,
        "there is no version before"
    );
    world.end().await;
}

#[tokio::test]
async fn an_archive_on_the_service_s_own_machine_is_installed_from_there() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let (archive, large) = (folder.path().join("share.zip"), folder.path().join("large.zip"));
    std::fs::write(&archive, plugin("https://share.test/*", "")).unwrap();
    std::fs::write(&large, vec![0; 4 * 1024 * 1024 + 1]).unwrap();
    let mut client = Client::open(&world).await;
    let missing = folder.path().join("none.zip");
    for path in [large.as_path(), missing.as_path(), "share.zip".as_ref()] {
        let refused = client.call("daemon.plugin.installFile", json!({"path": path})).await;
        assert_eq!(refused["error"]["data"]["code"], "invalidArgument", "{refused}");
    }
    let installed = client.call("daemon.plugin.installFile", json!({"path": archive})).await;
    assert_eq!(installed["result"]["identity"], "share@test", "{installed}");
    world.end().await;
}

#[tokio::test]
async fn an_archive_that_is_no_plugin_is_refused_by_check_file_and_limit() {
    let world = World::new().await;
    let claims = "https://share.test/*";
    let odd = br#"{"manifestVersion":1,"moon":true}"#;
    for (body, told) in [
        (Vec::new(), &["empty"][..]),
        (b"no archive".to_vec(), &["format"]),
        (vec![0; 4 * 1024 * 1024 + 1], &["larger than 4 MiB"]),
        (archive(&[("readme.md", b"hello")]), &["content", "plugin.json"]),
        (archive(&[("../plugin.json", b"{}")]), &["name", "../plugin.json"]),
        (archive(&[("plugin.json", odd)]), &["plugin.json /"]),
        (
            archive(&[("plugin.json", &manifest(claims))]),
            &["content", "plugin.wasm", "entry"],
        ),
        (plugin(claims, "refuse"), &["features", "threads"]),
        (archive(&vec![("a", &b""[..]); 201]), &["entries", "200"]),
    ] {
        let answer = world.ask(INSTALL, &body).await;
        let message = message(&answer);
        assert_eq!(answer.status, 400, "{message}");
        assert!(told.iter().all(|word| message.contains(word)), "{message}: {told:?}");
    }
    assert_eq!(plugins(&world).await, json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_folder_of_an_author_is_used_in_place() {
    let world = World::new().await;
    let folder = world.downloads().join("share");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("plugin.json"), manifest("https://share.test/*")).unwrap();
    std::fs::write(folder.join("plugin.wasm"), "").unwrap();
    let install = async |path: &str| {
        let body = json!({"dirPath": path}).to_string();
        world.ask("POST /api/v1/plugins/install-dev", body).await
    };
    for path in ["", "share", "/no/such/folder"] {
        let answer = install(path).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
    }
    let installed = install(folder.to_str().unwrap()).await;
    assert_eq!(installed.json()["identity"], "share@test", "{installed:?}");
    let listed = plugins(&world).await;
    assert_eq!(
        (&listed[0]["devMode"], &listed[0]["source"]),
        (&json!(true), &json!("development"))
    );
    world.end().await;
}

#[tokio::test]
async fn settings_change_together_or_not_at_all() {
    let world = World::new().await;
    world.ask(INSTALL, plugin("https://share.test/*", "")).await;
    let set = async |body: Value| world.ask(&format!("PUT {ONE}/settings"), body.to_string()).await.status;
    let values = async || plugins(&world).await[0]["settingsValues"].clone();
    assert_eq!(values().await["quality"], "hd");
    for bad in [
        json!({"quality": "sd", "count": "0"}),
        json!({"quality": "sd", "moon": "1"}),
        json!({"quality": 5}),
        json!(["quality"]),
    ] {
        assert_eq!(set(bad.clone()).await, 400, "{bad}");
        assert_eq!(values().await["quality"], "hd", "{bad}");
    }
    assert_eq!(
        set(json!({"quality": "sd", "count": "2", "token": "hidden-1"})).await,
        200
    );
    let now = values().await;
    assert_eq!((&now["quality"], &now["count"]), (&json!("sd"), &json!("2")));
    assert!(!plugins(&world).await.to_string().contains("hidden-1"));
    let missing = world.ask("PUT /api/v1/plugins/no@test/settings", "{}").await;
    assert_eq!(missing.status, 404);
    world.end().await;
}

#[tokio::test]
async fn what_is_chosen_of_a_preview_becomes_a_group_with_its_files() {
    let (world, origin) = (World::new().await, origin());
    install(&world, &origin, "file a.bin\nfile sub/b.bin").await;
    let preview = async |body: Value| world.ask("POST /api/v1/resolve/preview", body.to_string()).await;
    let share = origin.url("/share/1");
    let shown = preview(json!({"url": share})).await.json();
    assert_eq!(
        (&shown["name"], &shown["error"], &shown["sourceUrl"]),
        (&json!("a share"), &json!(""), &json!(share))
    );
    let item = |id: &str, name: &str, path: &str| {
        json!({
            "id": id, "name": name, "path": path, "kind": "file", "selected": true, "size": 0, "variants": [],
        })
    };
    assert_eq!(
        shown["items"],
        json!([item("a.bin", "a.bin", ""), item("sub/b.bin", "b.bin", "sub")])
    );
    let nobodys = preview(json!({"url": "https://elsewhere.test/"})).await.json();
    assert_eq!((&nobodys["items"], &nobodys["error"]), (&json!([]), &json!("")));
    for bad in [json!({}), json!({"url": ""}), json!({"url": "nonsense"}), json!([])] {
        let refused = preview(bad.clone()).await;
        assert_eq!(refused.status, 400, "{bad}: {refused:?}");
    }
    assert_eq!(world.get("/api/v1/tasks").await.json(), json!([]));

    let items = json!([{"resolverItem": "sub/b.bin", "fileName": "b.bin", "relPath": "sub"}]);
    let chosen = json!({"sourceUrl": share, "groupName": "a share", "items": items});
    let made = world.ask("POST /api/v1/groups", chosen.to_string()).await;
    assert_eq!(made.status, 200, "{made:?}");
    let group = made.json()["groupId"].clone();
    assert_eq!(world.get("/api/v1/groups").await.json()[0]["groupId"], group);
    let tasks = ended(&world, 1).await;
    assert_eq!(
        (&tasks[0]["status"], &tasks[0]["groupId"]),
        (&json!(3), &group),
        "{tasks:?}"
    );
    let file = std::fs::read(world.downloads().join("a share/sub/b.bin")).unwrap();
    assert!(file == Content::seeded(2, 50_000).to_vec());
    world.end().await;
}

#[tokio::test]
async fn what_a_chosen_file_must_hash_to_is_in_the_preview_and_checked_in_its_group() {
    let (world, origin) = (World::new().await, origin());
    let digest = |byte: &str| format!("sha-256={}", byte.repeat(32));
    install(&world, &origin, &format!("file a.bin {}\nfile sub/b.bin", digest("ab"))).await;
    let share = origin.url("/share/1");
    let shown = world
        .ask("POST /api/v1/resolve/preview", json!({"url": share}).to_string())
        .await;
    let known: Vec<_> = shown.json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["checksum"].clone())
        .collect();
    assert_eq!(known, [json!(digest("ab")), Value::Null]);

    let choose = async |checksum: &str| {
        let item = json!({"resolverItem": "sub/b.bin", "fileName": "b.bin", "checksum": checksum});
        let chosen = json!({"sourceUrl": share, "groupName": "a share", "items": [item]});
        world.ask("POST /api/v1/groups", chosen.to_string()).await
    };
    let refused = choose("sha-256=1").await;
    assert!(
        refused.status == 400 && message(&refused).contains("checksum"),
        "{refused:?}"
    );
    assert_eq!(choose(&digest("cd")).await.status, 200);
    let tasks = ended(&world, 1).await;
    assert_eq!(
        (&tasks[0]["status"], &tasks[0]["errorKind"]),
        (&json!(4), &json!("checksum-mismatch")),
        "{tasks:?}"
    );
    world.end().await;
}

#[tokio::test]
async fn a_group_without_items_or_for_an_unclaimed_url_is_refused() {
    let (world, origin) = (World::new().await, origin());
    install(&world, &origin, "file a.bin").await;
    let item = json!({"resolverItem": "a.bin", "fileName": "a.bin"});
    let share = origin.url("/share/1");
    for (bad, field) in [
        (json!({"sourceUrl": share}), "items"),
        (json!({"sourceUrl": share, "items": []}), "items"),
        (
            json!({"sourceUrl": share, "items": [{"resolverItem": "a.bin"}]}),
            "fileName",
        ),
        (
            json!({"sourceUrl": share, "items": [{"resolverItem": "", "fileName": "a"}]}),
            "resolverItem",
        ),
        (
            json!({"sourceUrl": "https://elsewhere.test/", "items": [item]}),
            "sourceUrl",
        ),
        (json!({"sourceUrl": "nonsense", "items": [item]}), "sourceUrl"),
        (json!({"items": 5}), "invalid body"),
    ] {
        let refused = world.ask("POST /api/v1/groups", bad.to_string()).await;
        assert_eq!(refused.status, 400, "{bad}: {refused:?}");
        assert!(message(&refused).contains(field), "{bad}: {refused:?}");
    }
    assert_eq!(world.get("/api/v1/tasks").await.json(), json!([]));
    world.end().await;
}

#[tokio::test]
async fn a_claimed_url_becomes_a_group_and_its_files() {
    let (world, origin) = (World::new().await, origin());
    install(&world, &origin, "file a.bin\nfile sub/b.bin").await;
    let body = json!({"url": origin.url("/share/1")}).to_string();
    assert_eq!(world.ask("POST /api/v1/tasks", body).await.status, 200);
    let tasks = ended(&world, 2).await;
    let groups = world.get("/api/v1/groups").await.json();
    assert_eq!(groups[0]["name"], "a share");
    for task in &tasks {
        assert_eq!(
            (&task["status"], &task["groupId"]),
            (&json!(3), &groups[0]["groupId"]),
            "{task}"
        );
    }
    for (path, content) in [
        ("a.bin", Content::seeded(1, 70_000)),
        ("sub/b.bin", Content::seeded(2, 50_000)),
    ] {
        let file = std::fs::read(world.downloads().join("a share").join(path)).unwrap();
        assert!(file == content.to_vec(), "{path}");
    }
    let is_raw = |request: &support::Request| request.target == "/share/1";
    assert!(!origin.requests().iter().any(is_raw));
    let group = groups[0]["groupId"].as_str().unwrap();
    let delete = format!("DELETE /api/v1/groups/{group}?deleteFiles=true");
    assert_eq!(world.ask(&delete, "").await.status, 200);
    assert_eq!(world.get("/api/v1/tasks").await.json(), json!([]));
    assert!(!world.downloads().join("a share/a.bin").exists());
    world.end().await;
}

#[tokio::test]
async fn a_failing_plugin_fails_its_task_which_is_fetched_raw_only_when_the_user_says_so() {
    let (world, origin) = (World::new().await, origin());
    install(&world, &origin, "fail").await;
    let url = origin.url("/share/1");
    let preview = world
        .ask("POST /api/v1/resolve/preview", json!({"url": url}).to_string())
        .await;
    assert_eq!(preview.status, 200);
    assert!(
        preview.json()["error"].as_str().unwrap().contains("as it was told"),
        "{preview:?}"
    );
    let made = world
        .ask("POST /api/v1/tasks", json!({"url": url}).to_string())
        .await
        .json();
    let id = made["taskId"].as_str().unwrap();
    let tasks = ended(&world, 1).await;
    assert_eq!(tasks[0]["status"], 4);
    assert!(
        tasks[0]["errorMessage"].as_str().unwrap().contains("as it was told"),
        "{tasks:?}"
    );
    assert!(origin.requests().is_empty(), "{:?}", origin.requests());
    let ignored = world
        .ask(&format!("POST /api/v1/tasks/{id}/ignore-plugin-retry"), "")
        .await;
    assert_eq!(ignored.status, 200, "{ignored:?}");
    assert_eq!(ended(&world, 1).await[0]["status"], 3);
    assert_eq!(std::fs::read(world.downloads().join("1")).unwrap(), b"a web page");
    let nobody = "POST /api/v1/tasks/1b4e28ba-2fa1-41d2-883f-0016d3cca427/ignore-plugin-retry";
    assert_eq!(world.ask(nobody, "").await.status, 404);
    world.end().await;
}

#[tokio::test]
async fn an_upload_names_a_plugin_for_a_call_and_its_size_is_looked_at_after_the_key() {
    let world = World::new().await;
    let upload = format!("POST /api/web/blobs/plugins?token={KEY}");
    let kept = world.send(&upload, &[], plugin("https://share.test/*", "")).await;
    let mut client = Client::open(&world).await;
    let params = json!({"blobId": kept.json()["blobId"]});
    let installed = client.call("daemon.plugin.install", params.clone()).await;
    assert_eq!(installed["result"]["identity"], "share@test");
    let again = client.call("daemon.plugin.install", params).await;
    assert_eq!(again["error"]["data"]["code"], "notFound");
    let large = vec![0; 4 * 1024 * 1024 + 1];
    for (kind, token, status) in [
        ("plugins", KEY, 413),
        ("torrents", KEY, 413),
        ("plugins", "wrong-key-1", 401),
    ] {
        let line = format!("POST /api/web/blobs/{kind}?token={token}");
        assert_eq!(world.send(&line, &[], &large).await.status, status, "{line}");
    }
    assert_eq!(world.send(&upload, &[], "").await.status, 400);
    world.end().await;
}
