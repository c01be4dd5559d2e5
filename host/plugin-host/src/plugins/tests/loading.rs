use std::task::Poll;

use tokio::sync::Mutex;

use futures_util::{future::join_all, poll};
use proptest::prelude::*;

use super::*;
use crate::{lifecycle::registry::Idle, policy::fault::Retry};

const URL: &str = "https://acme.test/x";

/// A world that was started just now and has a plugin whose code is not loaded before it is let go.
async fn starting() -> World {
    let world = World::new().await;
    world.install("acme", "1.0.0", "slow\nlist 1.0.0").await.unwrap();
    world.restart_held().await
}

/// What the plugin lists: its version, in these tests.
async fn listed(world: &World) -> Result<Option<String>, CallFailure> {
    let resolved = world.plugins.resolve(given(URL), None).await;
    let resolved = resolved.map_err(|error| error.reason)?;
    Ok(resolved.map(|resolved| resolved.listing.entries[0].name.clone()))
}

#[tokio::test]
async fn a_plugin_has_its_urls_from_the_start_and_a_call_waits_for_its_code() {
    let world = starting().await;
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!((summary.status, summary.idle), (Status::Enabled, Some(Idle::Loading)));
    assert_eq!(world.plugins.claim(&given(URL).url), Some(identity("acme")));
    let called = listed(&world);
    tokio::pin!(called);
    assert_eq!(poll!(&mut called), Poll::Pending);
    world.let_go();
    assert_eq!(called.await, Ok(Some("1.0.0".to_owned())));
    assert_eq!(world.settled("acme").await.unwrap().idle, None);
}

#[tokio::test]
async fn whoever_is_called_is_loaded_before_those_that_nobody_waits_for() {
    let world = World::new().await;
    world.install("aaa", "1.0.0", "slow\nlist a").await.unwrap();
    world.install("acme", "1.0.0", "list 1.0.0").await.unwrap();
    let world = world.restart_held().await;
    assert_eq!(listed(&world).await, Ok(Some("1.0.0".to_owned())));
    let first = world.plugins.get(&identity("aaa")).unwrap();
    assert_eq!(first.idle, Some(Idle::Loading));
}

#[tokio::test]
async fn what_happens_to_a_plugin_while_it_is_loaded_holds_at_once() {
    let world = starting().await;
    let acme = identity("acme");
    let called = world.plugins.link_for(&acme, given(URL), "x".to_owned(), None);
    let (refused, switched) = tokio::join!(called, world.plugins.set_enabled(acme.clone(), false));
    switched.unwrap();
    assert_eq!(refused.unwrap_err().reason, CallFailure::Disabled);
    assert_eq!(world.plugins.claim(&given(URL).url), None);
    world.plugins.set_enabled(identity("acme"), true).await.unwrap();
    world.install("acme", "2.0.0", "list 2.0.0").await.unwrap();
    assert_eq!(listed(&world).await, Ok(Some("2.0.0".to_owned())));
    world.let_go();
    let load = world.plugins.0.loads.of(&acme, Mutex::default);
    drop(load.lock().await);
    assert_eq!(listed(&world).await, Ok(Some("2.0.0".to_owned())), "it came too late");

    let world = starting().await;
    let (uninstalled, called) = tokio::join!(world.plugins.uninstall(identity("acme")), listed(&world));
    uninstalled.unwrap();
    assert_eq!(called, Err(CallFailure::NotInstalled));
    world.let_go();
    assert_eq!(listed(&world).await, Ok(None));
    assert_eq!(world.packages(), 0);
}

#[tokio::test]
async fn nobody_waits_for_code_longer_than_for_an_answer_and_closing_waits_for_no_code() {
    let world = starting().await;
    tokio::time::pause();
    let started = Instant::now();
    let called = world.plugins.resolve(given(URL), None).await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 15);
    assert_eq!(
        (&called.reason, called.reason.retry()),
        (&CallFailure::Loading, Retry::Backoff(None))
    );
    tokio::time::resume();
    let (called, ()) = tokio::join!(listed(&world), world.plugins.close());
    assert_eq!(called, Err(CallFailure::Closed));
}

#[tokio::test]
async fn a_consent_to_code_that_was_not_loaded_yet_does_not_refuse_calls() {
    let world = World::new().await;
    let script = "imports http.send\nhost https://a.acme.com\nslow\nlist 1.0.0";
    let consent = world.install("acme", "1.0.0", script).await.unwrap().pending_consent;
    let world = world.restart_held().await;
    let agreeing = world.plugins.consent(identity("acme"), consent.unwrap());
    let calling = async {
        let mut changes = world.plugins.changes();
        while world.plugins.claim(&given(URL).url).is_none() {
            assert!(changes.changed().await);
        }
        world.let_go();
        listed(&world).await
    };
    let (agreed, called) = tokio::join!(agreeing, calling);
    agreed.unwrap();
    assert_eq!(called, Ok(Some("1.0.0".to_owned())));
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Install(u8),
    Switch(bool),
    RollBack,
    Uninstall,
    Call,
    LetGo,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (3..9_u8).prop_map(Act::Install),
        any::<bool>().prop_map(Act::Switch),
        Just(Act::RollBack),
        Just(Act::Uninstall),
        Just(Act::Call),
        Just(Act::LetGo),
    ]
}

async fn install(world: &World, version: u8) -> Result<Installed, CommandError> {
    let version = format!("{version}.0.0");
    world.install("acme", &version, &format!("slow\nlist {version}")).await
}

/// Does all of this side by side while the plugin is being loaded, and looks at what runs in the end.
async fn settle(acts: Vec<Act>) {
    let world = World::new().await;
    install(&world, 1).await.unwrap();
    install(&world, 2).await.unwrap();
    let world = world.restart_held().await;
    let acts = acts.into_iter().chain([Act::LetGo]).map(async |act| match act {
        Act::Install(version) => drop(install(&world, version).await),
        Act::Switch(is_on) => drop(world.plugins.set_enabled(identity("acme"), is_on).await),
        Act::RollBack => drop(world.plugins.roll_back(identity("acme")).await),
        Act::Uninstall => world.plugins.uninstall(identity("acme")).await.unwrap(),
        Act::Call => drop(listed(&world).await),
        Act::LetGo => world.let_go(),
    });
    join_all(acts).await;
    let settled = world.settled("acme").await;
    let runs = settled.filter(|summary| summary.status == Status::Enabled);
    let version = runs.map(|summary| {
        assert_eq!(summary.idle, None);
        summary.manifest.unwrap().version.to_string()
    });
    assert_eq!(listed(&world).await, Ok(version));
    world.plugins.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_runs_in_the_end_is_what_is_installed(acts in prop::collection::vec(act(), 0..8)) {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(settle(acts));
    }
}
