//! Hooks, with an engine whose downloads do what the paths of their URLs say.

use engine::{Config, Engine, Phase, TaskId, TaskSpec};
use store::Store;
use support::transport::{self, FakeTransport};
use tokio::time::Instant;
use transfer::{Failure, FailureKind, Job, Outcome, SafeUrl};

use super::*;
use crate::{Condition, Proxies, runtime::HookEvent};

/// How long anything may take before a test is called stuck.
const PATIENCE: Duration = Duration::from_secs(20);

const HOOK: &str = "exports hook-handler\n";

async fn run(job: Job) -> Outcome {
    if transport::path(&job).ends_with("gone") {
        let place = job.target.directory.display();
        return Outcome::Failed(Failure::new(FailureKind::NotFound, format!("not for {place}/gone")));
    }
    transport::finish(&job, b"done").await
}

/// An engine whose tasks the hooks follow.
async fn engine(world: &World) -> Engine {
    let config = Config::new(world.path().join("downloads"));
    let milestones = config.milestones.subscribe();
    let store = Store::in_memory(&[engine::MIGRATIONS]).unwrap();
    let vault = Arc::new(Vault::ephemeral().unwrap());
    let transport = FakeTransport::new(&["https"], run);
    let engine = Engine::start(config, store, vault, vec![Arc::new(transport)])
        .await
        .unwrap();
    let (plugins, told) = (world.plugins.clone(), engine.clone());
    world
        .plugins
        .0
        .tasks
        .spawn(async move { plugins.follow(milestones, told, Proxies::none).await });
    engine
}

async fn download(engine: &Engine, url: &str) -> TaskId {
    let spec = TaskSpec::new(SafeUrl::parse(url).unwrap());
    engine.create(spec).await.unwrap()
}

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !is_so().await {
        assert!(begun.elapsed() < PATIENCE, "it takes too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl World {
    fn hook_told(&self, name: &str) -> Vec<HookInput> {
        let told = self.runtime.told.lock().unwrap();
        let of_plugin = told.iter().filter(|(plugin, _)| *plugin == identity(name));
        of_plugin.map(|(_, told)| told.clone()).collect()
    }
}

#[tokio::test]
async fn a_hook_is_told_of_the_downloads_that_its_plugin_claims_and_of_no_others() {
    let world = World::new().await;
    world.install("a", "1.0.0", HOOK).await.unwrap();
    let engine = engine(&world).await;
    download(&engine, "https://other.test/x").await;
    let task = download(&engine, "https://user:pass@a.test/file").await;
    until(async || world.hook_told("a").len() == 3).await;
    let told = world.hook_told("a");
    let events: Vec<_> = told.iter().map(|told| told.event).collect();
    assert_eq!(events, [HookEvent::Start, HookEvent::MetaProbed, HookEvent::Done]);
    let done = &told[2];
    assert_eq!(done.task_id, task.to_string());
    assert_eq!((done.file_name.as_deref(), done.total_bytes), (Some("file"), Some(4)));
    assert_eq!((&done.error_kind, &done.message), (&None, &None));
    world.plugins.close().await;
}

#[tokio::test]
async fn a_hook_for_other_downloads_needs_consent() {
    let world = World::new().await;
    world
        .install("a", "1.0.0", "exports hook-handler\nwatch https://*.test/*")
        .await
        .unwrap();
    let engine = engine(&world).await;
    download(&engine, "https://b.test/x").await;
    let summary = world.plugins.get(&identity("a")).unwrap();
    let pending = summary.pending.unwrap();
    let added: Vec<_> = pending.added.iter().map(ToString::to_string).collect();
    assert_eq!(added, ["watch https://*.test/*"]);
    let consented = world.plugins.consent(identity("a"), pending.digest);
    consented.await.unwrap();
    assert!(world.hook_told("a").is_empty());
    download(&engine, "https://b.test/y").await;
    until(async || world.hook_told("a").len() == 3).await;
    world.plugins.close().await;
}

#[tokio::test]
async fn a_retry_that_a_hook_asks_for_is_one_of_the_automatic_ones() {
    let world = World::new().await;
    world
        .install("a", "1.0.0", "exports hook-handler\nhook retry 100000")
        .await
        .unwrap();
    let engine = engine(&world).await;
    let task = download(&engine, "https://a.test/gone").await;
    until(async || {
        let task = engine.task(task).await.unwrap();
        task.attempts == 1 && matches!(task.phase, Phase::Retrying(_))
    })
    .await;
    let failed = world.hook_told("a").pop().unwrap();
    assert_eq!((failed.event, failed.attempts), (HookEvent::Error, 0));
    assert_eq!(failed.error_kind.as_deref(), Some("not-found"));
    // Where the file would be is not told.
    assert_eq!(failed.message.as_deref(), Some("not for …/gone"));
    // A finished download is not downloaded again, whatever its hook answers.
    let done = download(&engine, "https://a.test/file").await;
    until(async || {
        world
            .hook_told("a")
            .last()
            .is_some_and(|told| told.event == HookEvent::Done)
    })
    .await;
    assert_eq!(engine.task(done).await.unwrap().phase, Phase::Completed);
    world.plugins.close().await;
}

#[tokio::test]
async fn that_calls_of_a_hook_pause_is_seen_without_asking() {
    let world = World::new().await;
    world
        .install("a", "1.0.0", "exports hook-handler\nhook trap")
        .await
        .unwrap();
    let engine = engine(&world).await;
    let condition = || world.plugins.get(&identity("a")).unwrap().condition.0;
    let mut changes = world.plugins.changes();
    assert_eq!(condition(), Condition::Ok);
    // It receives three events.
    download(&engine, "https://a.test/file").await;
    assert!(tokio::time::timeout(PATIENCE, changes.changed()).await.unwrap());
    assert_eq!(condition(), Condition::Degraded);
    world.plugins.close().await;
}

#[tokio::test]
async fn hooks_that_hang_or_trap_delay_nobody() {
    let world = World::new().await;
    world
        .install("a", "1.0.0", "exports hook-handler\nhook hang\nlist x")
        .await
        .unwrap();
    world
        .install("b", "1.0.0", "exports hook-handler\nhook trap")
        .await
        .unwrap();
    world.install("c", "1.0.0", HOOK).await.unwrap();
    let engine = engine(&world).await;
    let begun = Instant::now();
    let mut tasks = Vec::new();
    for n in 0..30 {
        for name in ["a", "b", "c"] {
            tasks.push(download(&engine, &format!("https://{name}.test/{n}")).await);
        }
    }
    for task in tasks {
        until(async || engine.task(task).await.unwrap().phase == Phase::Completed).await;
    }
    until(async || world.hook_told("c").len() == 90).await;
    // Neither the calls that users wait for, of the same plugin.
    let listed = world.plugins.resolve(given("https://a.test/1"), None).await.unwrap();
    assert_eq!(listed.unwrap().listing.entries.len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(5), "less than one hook may take");
    assert_eq!(world.hook_told("a").len(), 1, "one call of a plugin at once");
    world.plugins.close().await;
}
