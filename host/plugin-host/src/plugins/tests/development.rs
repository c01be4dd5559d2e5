use super::*;

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

async fn until(world: &World, done: impl Fn(&PluginSummary) -> bool) -> PluginSummary {
    let mut changes = world.plugins.changes();
    loop {
        let summary = world.plugins.get(&identity("dev")).unwrap();
        if done(&summary) {
            return summary;
        }
        assert!(changes.changed().await);
    }
}

#[tokio::test]
async fn a_folder_is_used_in_place_and_follows_its_files() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let script = "imports http.send\nhost https://a.acme.com\nreach https://a.acme.com/\nsetting quality\nlist one";
    let missing = world.plugins.install_dev(at.to_owned()).await.unwrap_err();
    assert!(missing.to_string().contains("plugin.json"), "{missing}");
    write(at, "plugin.json", &manifest("dev", "1.0.0", script));
    let missing = world.plugins.install_dev(at.to_owned()).await.unwrap_err();
    assert!(missing.to_string().contains("plugin.wasm"), "{missing}");
    write(at, "plugin.wasm", script);
    world.plugins.install_dev(at.to_owned()).await.unwrap();
    let resolve = || async {
        let resolved = world.plugins.resolve(given("https://dev.test/x"), None).await;
        resolved.unwrap().unwrap().listing.entries[0].name.clone()
    };
    assert_eq!(resolve().await, "one", "its author need not agree to it");

    write(at, "plugin.wasm", "refuse");
    let summary = until(&world, |summary| summary.development_error.is_some()).await;
    assert_eq!(summary.development_error.unwrap().step, "load");
    assert_eq!(resolve().await, "one", "the last good one goes on");
    write(at, "plugin.wasm", &script.replace("one", "a second"));
    until(&world, |summary| summary.development_error.is_none()).await;
    assert_eq!(resolve().await, "a second");

    write(at, "plugin.json", "{");
    let summary = until(&world, |summary| summary.development_error.is_some()).await;
    assert_eq!(summary.development_error.unwrap().step, "manifest");
    write(at, "plugin.json", &manifest("dev", "1.1.0", script));
    let summary = until(&world, |summary| summary.development_error.is_none()).await;
    assert_eq!(summary.manifest.unwrap().version.to_string(), "1.1.0");

    let world = world.restart().await;
    assert_eq!(world.version("dev").as_deref(), Some("1.1.0"));
    world.plugins.uninstall(identity("dev")).await.unwrap();
    assert!(at.join("plugin.json").exists(), "the folder is its author's");
}

#[tokio::test]
async fn an_archive_takes_the_place_of_a_folder() {
    let world = World::new().await;
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "plugin.json", &manifest("dev", "0.1.0", ""));
    write(folder.path(), "plugin.wasm", "list folder");
    world.install("dev", "1.0.0", "list first").await.unwrap();
    let asked = world.plugins.install_dev(folder.path().to_owned()).await.unwrap();
    assert_eq!(world.version("dev").as_deref(), Some("1.0.0"), "until its user agrees");
    let world = world.restart().await;
    let pending = world.plugins.get(&identity("dev")).unwrap().pending.unwrap();
    assert_eq!(pending.folder.as_deref(), Some(folder.path()));
    assert_eq!(Some(pending.digest), asked.pending_consent);
    world.plugins.consent(identity("dev"), pending.digest).await.unwrap();
    assert_eq!(world.version("dev").as_deref(), Some("0.1.0"));
    let asked = world
        .install("dev", "2.0.0", "list second")
        .await
        .unwrap()
        .pending_consent;
    assert_eq!(world.version("dev").as_deref(), Some("0.1.0"), "until its user agrees");
    world.plugins.consent(identity("dev"), asked.unwrap()).await.unwrap();
    assert_eq!(world.version("dev").as_deref(), Some("2.0.0"));
    assert_eq!(world.plugins.get(&identity("dev")).unwrap().development_folder(), None);
}
