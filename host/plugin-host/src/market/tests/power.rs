//! The power goes away while something is installed, updated, taken back, removed, or asked for.

use proptest::prelude::*;

use super::*;
use crate::package::fault_point::Step;

/// What a user or the host does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Release,
    Install,
    RollBack,
    Uninstall,
    File,
    Refresh,
    Update,
}

async fn act(world: &World, place: &TestSource, act: Act, n: usize) {
    let plugin = identity("acme");
    // What fails is not of interest, only what is there then.
    match act {
        Act::Release => place.release("acme", &format!("1.{n}.0"), "list a").await,
        Act::Install => drop(world.get("acme").await),
        Act::RollBack => drop(world.plugins.roll_back(plugin).await),
        Act::Uninstall => drop(world.plugins.uninstall(plugin).await),
        Act::File => drop(world.install("acme", &format!("0.{n}.0"), "list a").await),
        Act::Refresh => drop(world.market().refresh(None).await),
        Act::Update => world.after(&place.outside, hours(25)).await,
    }
}

/// Does `acts`, each with the power going away at some step, and looks at what a restart finds.
async fn survive(acts: &[(Act, Step, u32)]) {
    let (outside, place, mut world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    for (n, (what, step, times)) in acts.iter().enumerate() {
        outside.pass(hours(1));
        place.publish().await;
        world.faults.fail_at(*step, *times);
        act(&world, &place, *what, n + 1).await;
        world = world.restart().await;
        let before = world.plugins.get(&identity("acme"));
        world.check_pins();
        if before.is_some() {
            world.settled("acme").await.unwrap();
            assert_eq!(world.resolves("acme").await, Ok(1), "what is there works: {acts:?}");
        }
        let snapshot = world.plugins.0.registry.snapshot();
        let needed: std::collections::BTreeSet<_> = snapshot
            .plugins
            .values()
            .flat_map(|loaded| loaded.installation.digests())
            .collect();
        assert_eq!(world.packages(), needed.len(), "a start leaves no rubbish: {acts:?}");
    }
    world.market().refresh(None).await.unwrap();
    if let Err(error) = world.get("acme").await {
        assert!(matches!(error, MarketError::Older { .. }), "{error}");
    }
    world.check_pins();
}

const STEPS: [Step; 5] = [
    Step::Materialise,
    Step::Commit,
    Step::Activate,
    Step::Refresh,
    Step::Collect,
];

#[tokio::test]
async fn whenever_the_power_goes_plugin_and_source_agree() {
    for step in STEPS {
        let never = 99;
        for times in 0..3 {
            survive(&[
                (Act::Install, step, times),
                (Act::Install, step, never),
                (Act::Release, step, never),
                (Act::Refresh, step, times),
                (Act::Update, step, times),
                (Act::Update, step, never),
                (Act::RollBack, step, times),
                (Act::File, step, times),
                (Act::Uninstall, step, times),
            ])
            .await;
        }
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Release),
        2 => Just(Act::Install),
        1 => Just(Act::RollBack),
        1 => Just(Act::Uninstall),
        1 => Just(Act::File),
        1 => Just(Act::Refresh),
        2 => Just(Act::Update),
    ]
}

proptest! {
    // Each case opens a database and signs a source, again and again.
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_history_of_power_cuts_is_survived(
        acts in proptest::collection::vec((any_act(), proptest::sample::select(&STEPS), 0..4_u32), 1..7)
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(survive(&acts));
    }
}
