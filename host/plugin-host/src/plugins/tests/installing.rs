use proptest::prelude::*;

use super::*;

use crate::{error::Refusal, lifecycle::registry::Idle, package::fault_point::Step};

#[tokio::test]
async fn a_plugin_is_installed_and_is_there_after_a_restart() {
    let world = World::new().await;
    let installed = world.install("acme", "1.0.0", "list a").await.unwrap();
    assert_eq!(
        (installed.identity, installed.pending_consent),
        (identity("acme"), None)
    );
    let world = world.restart().await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    let resolved = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((resolved.plugin, resolved.listing.entries.len()), (identity("acme"), 1));
}

#[tokio::test]
async fn a_plugin_that_asks_for_something_waits_for_consent_and_an_update_that_asks_for_more_is_staged() {
    let world = World::new().await;
    let script = "imports http.send\nhost https://a.acme.com";
    let first = world.install("acme", "1.0.0", script).await.unwrap();
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(
        (summary.status, summary.idle),
        (Status::PendingConsent, Some(Idle::ConsentPending))
    );
    assert_eq!(summary.pending.unwrap().added[0].to_string(), "host https://a.acme.com");
    assert_eq!(world.plugins.claim(&given("https://acme.test/x").url), None);

    let world = world.restart().await;
    assert_eq!(
        world.version("acme").as_deref(),
        Some("1.0.0"),
        "what asks is shown after a restart"
    );
    let wrong = world
        .plugins
        .consent(identity("acme"), Digest::of(b"else"))
        .await
        .unwrap_err();
    assert!(matches!(wrong, CommandError::Refused(Refusal::OtherPermissions)));
    world
        .plugins
        .consent(identity("acme"), first.pending_consent.unwrap())
        .await
        .unwrap();
    assert_eq!(
        world.plugins.claim(&given("https://acme.test/x").url),
        Some(identity("acme"))
    );

    let more = world
        .install("acme", "2.0.0", &format!("{script}\nhost https://b.acme.com"))
        .await
        .unwrap();
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(
        (summary.status, world.version("acme").as_deref()),
        (Status::Enabled, Some("1.0.0"))
    );
    assert_eq!(summary.pending.unwrap().added[0].to_string(), "host https://b.acme.com");
    world
        .plugins
        .consent(identity("acme"), more.pending_consent.unwrap())
        .await
        .unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("2.0.0"));
    world.plugins.roll_back(identity("acme")).await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    let again = world.plugins.get(&identity("acme")).unwrap();
    assert!(again.is_pinned && again.previous.unwrap().to_string() == "2.0.0");
}

#[tokio::test]
async fn what_is_refused_leaves_what_was_there() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "list a").await.unwrap();
    let bad = [
        archive(&[part("plugin.json", b"{}")]),
        archive(&[part("plugin.json", manifest("acme", "2.0.0", "").as_bytes())]),
        zip("acme", "2.0.0", "refuse"),
        zip("acme", "2.0.0", "exports post-processor"),
        b"nothing".to_vec(),
    ];
    for archive in bad {
        let error = world.plugins.install_zip(archive).await.unwrap_err();
        assert_eq!(world.version("acme").as_deref(), Some("1.0.0"), "{error}");
    }
    let newer = manifest("acme", "2.0.0", "").replace("\"version\"", "\"minHost\":\"99.0.0\",\"version\"");
    let newer = archive(&[part("plugin.json", newer.as_bytes()), part("plugin.wasm", b"")]);
    let error = world.plugins.install_zip(newer).await.unwrap_err();
    assert!(error.to_string().contains("/minHost"), "{error}");
    assert_eq!(world.packages(), 1);
}

#[tokio::test]
async fn uninstalling_forgets_everything_and_is_repeatable() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "count visits").await.unwrap();
    world
        .plugins
        .update_settings(identity("acme"), batch(&[("quality", "sd")]))
        .await
        .unwrap();
    world.plugins.resolve(given("https://acme.test/x"), None).await.unwrap();
    for _ in 0..2 {
        world.plugins.uninstall(identity("acme")).await.unwrap();
        assert!(world.plugins.list().is_empty());
        assert_eq!(world.packages(), 0);
    }
    world
        .install("acme", "1.0.0", "count visits\nsetting quality")
        .await
        .unwrap();
    let listing = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap()
        .unwrap()
        .listing;
    assert_eq!(
        (listing.next_page.as_deref(), listing.description.as_deref()),
        (Some("1"), Some("hd"))
    );
}

#[tokio::test]
async fn packages_that_nobody_needs_go_away_and_damaged_ones_are_told() {
    let world = World::new().await;
    for version in ["1.0.0", "2.0.0", "3.0.0", "4.0.0"] {
        world.install("acme", version, "list a").await.unwrap();
        assert!(world.packages() <= 2, "what runs and the one before");
    }
    let store = world.path().join("data/plugins/store");
    for package in std::fs::read_dir(&store).unwrap() {
        std::fs::write(package.unwrap().path().join("plugin.wasm"), "list b").unwrap();
    }
    let world = world.restart().await;
    let idle = world.settled("acme").await.unwrap().idle;
    assert!(matches!(idle, Some(Idle::Failed(error)) if error.contains("missing or damaged")));
    let error = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap_err();
    assert_eq!(error.reason.code(), "notLoaded", "it keeps its URLs");
    world.install("acme", "4.0.0", "list a").await.unwrap();
    assert_eq!(
        world.version("acme").as_deref(),
        Some("4.0.0"),
        "the same package heals it"
    );
}

#[tokio::test]
async fn different_plugins_are_installed_at_once_and_one_in_turn() {
    let world = World::new().await;
    let installs = (0..6).map(|n| {
        let (name, version) = (format!("p{}", n % 3), format!("{n}.0.0"));
        let plugins = world.plugins.clone();
        async move { plugins.install_zip(zip(&name, &version, "list a")).await }
    });
    let results = join_all(installs).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let before: Vec<_> = (0..3).map(|n| world.version(&format!("p{n}"))).collect();
    let world = world.restart().await;
    let after: Vec<_> = (0..3).map(|n| world.version(&format!("p{n}"))).collect();
    assert_eq!(before, after);
}

/// Installs, updates and uninstalls with the power going away at some step, and looks at what a restart finds.
async fn survive(steps: Vec<(u8, Step, u32)>) {
    let mut world = World::new().await;
    let mut expected: Option<String> = None;
    for (n, (act, step, times)) in steps.into_iter().enumerate() {
        let wanted = (act > 0).then(|| format!("{n}.0.0"));
        world.faults.fail_at(step, times);
        let result = match &wanted {
            Some(version) => world.install("acme", version, "list a").await.map(drop),
            None => world.plugins.uninstall(identity("acme")).await,
        };
        world = world.restart().await;
        let found = world.version("acme");
        if result.is_ok() {
            assert_eq!(found, wanted, "an answered command holds");
        } else {
            assert!(
                found == expected || found == wanted,
                "{found:?} is neither {expected:?} nor {wanted:?}"
            );
        }
        if found.is_some() {
            let resolved = world.plugins.resolve(given("https://acme.test/x"), None).await.unwrap();
            assert!(resolved.is_some(), "what is there works");
        }
        let snapshot = world.plugins.0.registry.snapshot();
        let needed: BTreeSet<_> = snapshot
            .plugins
            .values()
            .flat_map(|loaded| loaded.installation.digests())
            .collect();
        assert_eq!(world.packages(), needed.len(), "a start leaves no rubbish");
        expected = found;
    }
}

#[tokio::test]
async fn whenever_the_power_goes_either_the_old_or_the_new_version_works() {
    for step in [Step::Materialise, Step::Commit, Step::Activate, Step::Collect] {
        for times in 0..4 {
            survive(vec![
                (1, step, 99),
                (1, step, times),
                (1, step, times),
                (0, step, times),
                (1, step, 99),
            ])
            .await;
        }
    }
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Materialise),
        Just(Step::Commit),
        Just(Step::Activate),
        Just(Step::Collect)
    ]
}

proptest! {
    // Each case opens some databases, with all the syncing that takes.
    #![proptest_config(ProptestConfig::with_cases(25))]

    #[test]
    fn any_history_of_power_cuts_is_survived(steps in proptest::collection::vec((0..4_u8, any_step(), 0..4_u32), 1..7)) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(survive(steps));
    }
}
