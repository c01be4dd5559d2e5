//! Recorded calls: played when a plugin is installed, made when a plugin under development fails.

use serde_json::json;
use svc_plugin_fixture::Fixture;

use super::*;

use crate::{lifecycle::registry::Idle, package::archive::host_version};

/// An archive with a fixture that expects this of the plugin's only entry.
fn with_fixture(script: &str, expect: &serde_json::Value) -> Vec<u8> {
    let fixture = json!({
        "name": "one file", "call": "resolve", "input": {"url": "https://acme.test/x"}, "expect": expect,
    });
    archive(&[
        part("plugin.json", manifest("acme", "2.0.0", script).as_bytes()),
        part("plugin.wasm", script.as_bytes()),
        part("fixtures/one.json", fixture.to_string().as_bytes()),
        part("fixtures/_captured/broken.json", b"no fixture"),
    ])
}

#[tokio::test]
async fn a_version_that_does_not_do_what_was_recorded_is_not_installed() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "list a").await.unwrap();
    let install = |script, expect| world.plugins.install_zip(with_fixture(script, &expect));
    for (script, expect, told) in [
        ("list a", json!({"entries": [{"name": "b"}]}), "/entries/0/name"),
        ("parse", json!({"entries": []}), "parse"),
        ("list a", json!({"error": "notFound"}), "/error"),
    ] {
        match install(script, expect).await.unwrap_err() {
            CommandError::Fixture { name, reason } => {
                assert!(name == "one file" && reason.contains(told), "{name}: {reason}");
            }
            other => panic!("{other}"),
        }
        assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    }
    install("parse", json!({"error": "parse"})).await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("2.0.0"));
}

#[tokio::test]
async fn what_a_later_host_runs_differently_does_not_run_and_says_so() {
    let world = World::new().await;
    let expect = json!({"entries": [{"name": "a"}]});
    let installed = world.plugins.install_zip(with_fixture("old\nlist a", &expect)).await;
    installed.unwrap();
    let resolve = async |world: &World| world.plugins.resolve(given("https://acme.test/x"), None).await;

    // In a host of another version that runs it as before, it runs, and that is remembered.
    let world = world.restart_upgraded(false).await;
    let mut changes = world.plugins.0.registry.watch();
    let is_proved = |snapshot: &Arc<Snapshot>| {
        let loaded = &snapshot.plugins[&identity("acme")];
        loaded.running.is_ok() && loaded.installation.fixtures_due(&host_version()).is_none()
    };
    changes.wait_for(is_proved).await.unwrap();
    let world = world
        .restart_on(Scripted {
            is_later: true,
            ..Scripted::default()
        })
        .await;
    assert_eq!(
        world.settled("acme").await.unwrap().idle,
        None,
        "this version has proved it"
    );

    let mut world = world;
    for _ in 0..2 {
        world = world.restart_upgraded(true).await;
        match world.settled("acme").await.unwrap().idle {
            Some(Idle::Failed(reason)) => assert!(reason.contains("fixture \"one file\""), "{reason}"),
            other => panic!("{other:?}"),
        }
        // Its URLs stay its own: no page is taken for the file it is about.
        let refused = resolve(&world).await.unwrap_err().reason;
        assert!(matches!(refused, CallFailure::NotLoaded(_)), "{refused:?}");
    }
    // A version that finds its way in this host takes its place.
    world
        .plugins
        .install_zip(with_fixture("list a", &expect))
        .await
        .unwrap();
    assert_eq!(resolve(&world).await.unwrap().unwrap().listing.entries.len(), 1);
}

#[tokio::test]
async fn playing_fixtures_leaves_what_the_plugin_remembers_alone() {
    let world = World::new().await;
    let script = "count calls";
    let expect = json!({"nextPage": "1", "entries": []});
    for _ in 0..2 {
        world.plugins.install_zip(with_fixture(script, &expect)).await.unwrap();
    }
    let resolved = world.plugins.resolve(given("https://acme.test/x"), None).await;
    assert_eq!(resolved.unwrap().unwrap().listing.next_page.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_call_that_fails_is_kept_in_its_author_s_folder() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let develop = async |script: &str| {
        std::fs::write(at.join("plugin.json"), manifest("dev", "1.0.0", script)).unwrap();
        std::fs::write(at.join("plugin.wasm"), script).unwrap();
        world.plugins.install_dev(at.to_owned()).await.unwrap();
    };
    develop("no").await;
    assert_eq!(world.plugins.resolve(given("https://dev.test/x"), None).await, Ok(None));
    develop("parse").await;
    let password = Secret::new("open sesame");
    let failed = world.plugins.resolve(given("https://dev.test/x"), Some(password)).await;
    let call = failed.unwrap_err().call.unwrap();
    // Whatever is under way ends first.
    world.plugins.close().await;
    let kept: Vec<_> = std::fs::read_dir(at.join("fixtures/_captured")).unwrap().collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    let fixture = Fixture::read(&at.join(format!("fixtures/_captured/{call}.json"))).unwrap();
    assert_eq!(fixture.expect, json!({"error": "parse"}));
    assert_eq!(fixture.input.password.as_deref(), Some("‹secret:password›"));
}
