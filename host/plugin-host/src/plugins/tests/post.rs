//! Work on the files of finished downloads.

use serde_json::json;
use svc_plugin_fixture::{Packed, PostInput, work::Files};

use super::*;
use crate::{
    error::CallError,
    runtime::{InMemory, Workspace},
};

/// What every one of these plugins says.
const POST: &str = "exports post-processor\nworks on files\nimports workspace.[method]dir.names\n";

/// The file that a plugin makes before it `wait`s.
const BEGUN: &str = "begun.txt";

impl Script {
    /// Writes down what the call is about, and does what the script says.
    pub(super) async fn post(&self, call: Call, main: String, work: CallWorkspace) -> Called<()> {
        for line in &self.lines {
            let Some(does) = line.strip_prefix("post ") else {
                continue;
            };
            let done = match does.split_once(' ').unwrap_or((does, "")) {
                ("unpack", name) => work.unpack(name.to_owned(), Vec::new()).await.map(drop),
                ("mux", _) => work.mux(main.clone(), main.clone(), "joined.mp4".to_owned()).await,
                ("wait", _) => {
                    let begun = work.files().write_new(BEGUN.to_owned(), Vec::new()).await;
                    self.go_on.notified().await;
                    begun
                }
                _ => panic!("{does}"),
            };
            if let Err(reason) = done {
                return called(Err(GuestError::InvalidInput(reason).into()));
            }
        }
        let text = format!("{main} of {}", call.given.url);
        let written = work.files().write_new("note.txt".to_owned(), text.into_bytes()).await;
        called(written.map_err(|reason| GuestError::InvalidInput(reason).into()))
    }
}

fn input() -> PostInput {
    let packed = Packed {
        directory: "set".to_owned(),
        ..Packed::default()
    };
    PostInput {
        main: "set.zip".to_owned(),
        files: [("set.zip".to_owned(), String::new())].into(),
        archives: [("set.zip".to_owned(), packed)].into(),
    }
}

fn files() -> Arc<InMemory> {
    Arc::new(InMemory::new(Files::from(&input())))
}

impl World {
    /// A plugin whose permissions are agreed to.
    async fn agreed(&self, name: &str, script: &str) {
        let installed = self.install(name, "1.0.0", &format!("{POST}{script}")).await.unwrap();
        let digest = installed.pending_consent.unwrap();
        self.plugins.consent(identity(name), digest).await.unwrap();
    }

    async fn post(&self, name: &str, files: &Arc<InMemory>) -> Result<(), CallError> {
        let given = given("https://me:secret@files.test/set.zip");
        let files = Arc::clone(files) as Arc<dyn Workspace>;
        self.plugins
            .post_process(identity(name), given, "set.zip".to_owned(), files)
            .await
    }
}

#[tokio::test]
async fn a_plugin_works_on_files_once_its_user_has_agreed() {
    let world = World::new().await;
    world.install("a", "1.0.0", POST).await.unwrap();
    let files = files();
    let refused = world.post("a", &files).await.unwrap_err();
    assert_eq!(refused.reason, CallFailure::ConsentPending);
    let pending = world.plugins.get(&identity("a")).unwrap().pending.unwrap();
    let added: Vec<_> = pending.added.iter().map(ToString::to_string).collect();
    assert_eq!(added, ["finishedFiles"]);
    world.plugins.consent(identity("a"), pending.digest).await.unwrap();
    world.post("a", &files).await.unwrap();
    let written = files.with(|files| files.result().written);
    assert_eq!(
        written["note.txt"], "set.zip of https://files.test/set.zip",
        "without the login"
    );
    world.install("b", "1.0.0", "list x").await.unwrap();
    let refused = world.post("b", &files).await.unwrap_err();
    assert_eq!(refused.reason, CallFailure::Incapable);
    let refused = world.post("c", &files).await.unwrap_err();
    assert_eq!(refused.reason, CallFailure::NotInstalled);
    world.plugins.close().await;
}

#[tokio::test]
async fn a_tool_is_for_plugins_whose_manifest_names_it() {
    let world = World::new().await;
    world.agreed("a", "tool unpack\npost unpack set.zip").await;
    let done = files();
    world.post("a", &done).await.unwrap();
    assert_eq!(done.with(|files| files.result().unpacked), ["set"]);
    for (name, script) in [
        ("b", "post unpack set.zip"),
        ("c", "tool unpack\npost mux"),
        ("d", "tool mux\npost unpack x"),
    ] {
        world.agreed(name, script).await;
        let refused = world.post(name, &files()).await.unwrap_err().to_string();
        assert!(refused.contains("/capabilities/post/tools"), "{script}: {refused}");
    }
    world.plugins.close().await;
}

/// Waits until a call has begun.
async fn begun(files: &InMemory) {
    while !has_begun(files) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn has_begun(files: &InMemory) -> bool {
    files.with(|files| files.names().iter().any(|name| name == BEGUN))
}

#[tokio::test]
async fn two_plugins_work_at_a_time_and_delay_no_other_call() {
    let world = World::new().await;
    world.agreed("a", "list x\npost wait").await;
    let (one, two, three) = (files(), files(), files());
    let working = async { tokio::join!(world.post("a", &one), world.post("a", &two), world.post("a", &three)) };
    let looking = async {
        tokio::join!(begun(&one), begun(&two));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!has_begun(&three), "it waits");
        let listed = world.plugins.resolve(given("https://a.test/1"), None).await;
        assert_eq!(listed.unwrap().unwrap().listing.entries.len(), 1);
        world.runtime.go_on.notify_one();
        begun(&three).await;
        world.runtime.go_on.notify_one();
        world.runtime.go_on.notify_one();
    };
    let (done, ()) = tokio::join!(working, looking);
    assert!(done.0.is_ok() && done.1.is_ok() && done.2.is_ok(), "{done:?}");
    world.plugins.close().await;
}

#[tokio::test]
async fn a_fixture_of_a_post_processor_is_played_when_it_is_installed() {
    let world = World::new().await;
    let script = format!("{POST}tool unpack\npost unpack set.zip");
    let with = |expect: serde_json::Value| {
        let fixture = json!({
            "name": "an archive", "call": "post", "input": {"url": "https://files.test/x", "post": input()}, "expect": expect,
        });
        archive(&[
            part("plugin.json", manifest("a", "1.0.0", &script).as_bytes()),
            part("plugin.wasm", script.as_bytes()),
            part("fixtures/one.json", fixture.to_string().as_bytes()),
        ])
    };
    let wrong = world.plugins.install_zip(with(json!({"unpacked": ["other"]}))).await;
    assert!(matches!(wrong, Err(CommandError::Fixture { .. })), "{wrong:?}");
    let right = json!({"unpacked": ["set"], "written": {"note.txt": "re:^set.zip of "}, "removed": null});
    world.plugins.install_zip(with(right)).await.unwrap();
    world.plugins.close().await;
}
