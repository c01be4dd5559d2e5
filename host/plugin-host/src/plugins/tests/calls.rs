use engine::{Resolution, ResolveRequest, Resolved as Answer, Resolver, ResolverId};
use transfer::{GivenBy, RequestOptions, SafeUrl};

use super::*;
use crate::{Previewed, Proxies, runtime::Event};

#[tokio::test]
async fn a_claimed_url_fails_closed_and_an_unclaimed_one_runs_nothing() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "parse").await.unwrap();
    assert_eq!(
        world
            .plugins
            .resolve(given("https://other.test/x"), None)
            .await
            .unwrap(),
        None
    );
    let called = |entry: &JournalEntry| matches!(entry.event, Event::Called { .. });
    assert!(!world.plugins.journal().events(None).iter().any(called));
    let error = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap_err();
    assert_eq!(
        (error.reason.code(), error.version.as_deref()),
        ("parse", Some("1.0.0"))
    );
    assert!(world.plugins.journal().events(None).iter().any(called));
}

#[tokio::test]
async fn a_plugin_that_knows_better_passes_the_url_on() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "no").await.unwrap();
    assert_eq!(
        world.plugins.resolve(given("https://acme.test/x"), None).await.unwrap(),
        None
    );
}

#[tokio::test]
async fn a_switched_off_plugin_claims_nothing_and_says_so_when_it_is_asked_by_name() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "list a").await.unwrap();
    let acme = identity("acme");
    let ask = || {
        world
            .plugins
            .link_for(&acme, given("https://acme.test/x"), "file".to_owned(), None)
    };
    assert_eq!(ask().await.unwrap().url.as_str(), "https://acme.test/file");
    world.plugins.set_enabled(identity("acme"), false).await.unwrap();
    assert_eq!(world.plugins.claim(&given("https://acme.test/x").url), None);
    assert_eq!(ask().await.unwrap_err().reason, CallFailure::Disabled);
    let world = world.restart().await;
    assert_eq!(world.plugins.get(&identity("acme")).unwrap().status, Status::Disabled);
    world.plugins.uninstall(identity("acme")).await.unwrap();
    let error = world
        .plugins
        .link_for(&acme, given("https://acme.test/x"), "f".to_owned(), None)
        .await;
    assert_eq!(error.unwrap_err().reason, CallFailure::NotInstalled);
}

#[tokio::test]
async fn a_plugin_claims_the_sites_that_the_user_names_in_its_setting() {
    let world = World::new().await;
    let script = "list a\nchooses sites";
    world.install("acme", "1.0.0", script).await.unwrap();
    let claims = |world: &World, url: &str| world.plugins.claim(&given(url).url).is_some();
    assert!(claims(&world, "https://acme.test/x"), "its own pattern");
    assert!(claims(&world, "https://hd/x"), "the default of the setting");
    assert!(!claims(&world, "https://www.films.example/x"));
    let sites = batch(&[("quality", "films.example\nnas:8080")]);
    world.plugins.update_settings(identity("acme"), sites).await.unwrap();
    let world = world.restart().await;
    assert!(claims(&world, "https://www.films.example/x") && claims(&world, "http://nas:8080/x"));
    assert!(!claims(&world, "https://hd/x") && !claims(&world, "https://other.test/x"));
    let given = given("http://nas:8080/x");
    assert!(world.plugins.resolve(given, None).await.unwrap().is_some());
}

#[tokio::test]
async fn settings_reach_the_plugin_and_secrets_do_not_come_back() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "setting quality").await.unwrap();
    let set = |values: &[(&str, &str)]| world.plugins.update_settings(identity("acme"), batch(values));
    set(&[("quality", "sd"), ("token", "hunter2")]).await.unwrap();
    assert!(matches!(
        set(&[("quality", "4k"), ("count", "0")]).await,
        Err(CommandError::Setting(_))
    ));
    let world = world.restart().await;
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(summary.values, batch(&[("quality", "sd")]));
    assert!(summary.secrets_set.contains("token"));
    assert!(!format!("{summary:?}").contains("hunter2"));
    let listing = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap()
        .unwrap()
        .listing;
    assert_eq!(listing.description.as_deref(), Some("sd"));
    let raw = std::fs::read(world.path().join("data/svc.db")).unwrap();
    assert!(raw.windows(9).any(|window| window == b"acme@test"));
    assert!(!raw.windows(7).any(|window| window == b"hunter2"), "sealed on the disk");
}

#[tokio::test]
async fn a_link_carries_a_secret_only_to_hosts_that_the_user_allowed_for_it() {
    let world = World::new().await;
    let script = "imports listing.[method]link.secret-header\nhost https://acme.test\nsecret https://acme.test\nsends Bearer {token}";
    let installed = world.install("acme", "1.0.0", script).await.unwrap();
    let consent = installed.pending_consent.expect("the user is asked");
    world.plugins.consent(identity("acme"), consent).await.unwrap();
    let token = batch(&[("token", "hunter2")]);
    let link_to = |entry: &str| {
        let request = ResolveRequest {
            resolution: Resolution {
                resolver: ResolverId::new("acme@test"),
                item: Some(entry.parse().unwrap()),
            },
            url: SafeUrl::parse("https://acme.test/x").unwrap(),
            given_by: GivenBy::User,
            request: RequestOptions::default(),
            proxies: Proxies::none(),
            netrc: None,
            ignore_tls_errors: false,
            attempts: 0,
            full_accounts: Vec::new(),
        };
        Resolver::resolve(&world.plugins, request)
    };
    let unset = link_to("file").await.unwrap_err();
    assert!(unset.failure.message.contains("no secret token"), "{unset}");
    world.plugins.update_settings(identity("acme"), token).await.unwrap();
    let Answer::Link(link) = link_to("file").await.unwrap() else {
        panic!("it is a link")
    };
    let [(name, value)] = &link.headers[..] else {
        panic!("{link:?}")
    };
    assert_eq!((name.as_str(), value.expose()), ("authorization", "Bearer hunter2"));
    assert!(!format!("{link:?}").contains("hunter2"));
    let refused = link_to("https://evil.test/file").await.unwrap_err();
    assert!(refused.failure.message.contains("not bound to evil.test"), "{refused}");
}

#[tokio::test]
async fn a_refused_host_can_be_granted_once_always_or_never() {
    let world = World::new().await;
    let script = "imports http.send\noptional https://mirror.org\nreach https://mirror.org/x";
    world.install("acme", "1.0.0", script).await.unwrap();
    let resolve = || world.plugins.resolve(given("https://acme.test/x"), None);
    let choose = |choice| {
        world
            .plugins
            .choose_host(identity("acme"), "https://mirror.org".parse().unwrap(), choice)
    };
    assert_eq!(resolve().await.unwrap_err().grantable, ["https://mirror.org"]);
    choose(HostChoice::Once).await.unwrap();
    assert!(resolve().await.is_ok());
    assert_eq!(resolve().await.unwrap_err().grantable, ["https://mirror.org"]);
    choose(HostChoice::Never).await.unwrap();
    assert!(resolve().await.unwrap_err().grantable.is_empty());
    choose(HostChoice::Always).await.unwrap();
    let other = "https://other.org".parse().unwrap();
    let other = world.plugins.choose_host(identity("acme"), other, HostChoice::Always);
    assert!(matches!(other.await, Err(CommandError::UnknownHost(_))));
    let world = world.restart().await;
    assert!(world.plugins.resolve(given("https://acme.test/x"), None).await.is_ok());
}

#[tokio::test]
async fn a_plugin_that_keeps_failing_rests_and_is_switched_off_in_the_end() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "trap").await.unwrap();
    let resolve = || async {
        let resolved = world.plugins.resolve(given("https://acme.test/x"), None).await;
        resolved.unwrap_err().reason
    };
    for _ in 0..3 {
        assert_eq!(resolve().await.code(), "trap");
    }
    tokio::time::pause();
    for _ in 0..4 {
        let CallFailure::Resting(pause) = resolve().await else {
            panic!("it goes on")
        };
        tokio::time::advance(pause).await;
        assert_eq!(resolve().await.code(), "trap");
    }
    tokio::time::resume();
    let mut changes = world.plugins.changes();
    while world.plugins.get(&identity("acme")).unwrap().status != Status::Tripped {
        assert!(changes.changed().await);
    }
    assert_eq!(
        world.plugins.claim(&given("https://acme.test/x").url),
        Some(identity("acme")),
        "it fails closed"
    );
    assert_eq!(resolve().await, CallFailure::Tripped);
    world.plugins.set_enabled(identity("acme"), true).await.unwrap();
    assert_eq!(resolve().await.code(), "trap");
}

#[tokio::test]
async fn an_update_that_keeps_failing_is_taken_back() {
    for script in ["trap", "parse"] {
        let world = World::new().await;
        world.install("acme", "1.0.0", "list a").await.unwrap();
        world.install("acme", "2.0.0", script).await.unwrap();
        let mut changes = world.plugins.changes();
        for n in 0..3 {
            let error = world
                .plugins
                .resolve(given(&format!("https://acme.test/{n}")), None)
                .await
                .unwrap_err();
            assert_eq!(error.reason.code(), script);
        }
        while world.version("acme").as_deref() != Some("1.0.0") {
            assert!(changes.changed().await);
        }
        assert!(world.plugins.get(&identity("acme")).unwrap().is_pinned);
        world.plugins.close().await;
        let told = world.plugins.journal().events(Some(&identity("acme")));
        assert!(
            told.iter()
                .any(|entry| entry.event == Event::RolledBack { by_user: false })
        );
    }
}

#[tokio::test]
async fn an_update_is_not_to_blame_for_a_site_that_had_changed_before() {
    let world = World::new().await;
    for version in ["1.0.0", "2.0.0"] {
        world.install("acme", version, "parse").await.unwrap();
        for n in 0..5 {
            let url = format!("https://acme.test/{n}");
            assert!(world.plugins.resolve(given(&url), None).await.is_err());
        }
    }
    let (condition, since_ms) = world.plugins.get(&identity("acme")).unwrap().condition;
    assert!(condition == crate::Condition::SiteBroken && since_ms > 0);
    world.plugins.close().await;
    assert_eq!(world.version("acme").as_deref(), Some("2.0.0"));
}

#[tokio::test]
async fn a_call_outlives_the_update_and_the_uninstalling_of_its_plugin() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "wait\nlist old").await.unwrap();
    let resolving = world.plugins.resolve(given("https://acme.test/x"), None);
    let changing = async {
        while world.plugins.0.slots.is_idle(&identity("acme")) {
            tokio::task::yield_now().await;
        }
        world.install("acme", "2.0.0", "list new").await.unwrap();
        world.plugins.uninstall(identity("acme")).await.unwrap();
        world.runtime.go_on.notify_one();
    };
    let (resolved, ()) = tokio::join!(resolving, changing);
    assert_eq!(resolved.unwrap().unwrap().listing.entries[0].name, "old");
}

#[tokio::test]
async fn time_is_up_for_who_hangs_and_closing_waits_for_nobody() {
    let world = World::new().await;
    world.install("acme", "1.0.0", "hang").await.unwrap();
    tokio::time::pause();
    let error = world
        .plugins
        .resolve(given("https://acme.test/x"), None)
        .await
        .unwrap_err();
    let wall = Duration::from_secs(15);
    assert_eq!(
        error.reason,
        CallFailure::Fault(PluginFault::Limit(Exceeded::Wall(wall)))
    );
    tokio::time::resume();
    let resolving = world.plugins.resolve(given("https://acme.test/x"), None);
    let (resolved, ()) = tokio::join!(resolving, world.plugins.close());
    assert_eq!(resolved.unwrap_err().reason, CallFailure::Closed);
    assert!(matches!(
        world.install("acme", "2.0.0", "").await,
        Err(CommandError::Closed)
    ));
}

#[tokio::test]
async fn a_preview_is_for_plugins_that_give_lists() {
    let world = World::new().await;
    world.install("single", "1.0.0", "list a").await.unwrap();
    world.install("many", "1.0.0", "multi\nlist a").await.unwrap();
    world
        .install("quick", "1.0.0", "exports previewer\nlist a")
        .await
        .unwrap();
    let preview = |name: &str| world.plugins.preview(given(&format!("https://{name}.test/x")));
    let single = preview("single").await.unwrap();
    assert_eq!(single, Previewed::File(identity("single")));
    for name in ["many", "quick"] {
        let Previewed::List(listed) = preview(name).await.unwrap() else {
            panic!("{name} gives lists");
        };
        assert_eq!(listed.listing.entries.len(), 1, "{name}");
    }
    assert_eq!(preview("nobody").await.unwrap(), Previewed::Unclaimed);

    world
        .install("paged", "1.0.0", "multi\nlist a\ncount pages")
        .await
        .unwrap();
    let Previewed::List(listed) = preview("paged").await.unwrap() else {
        panic!("it gives lists");
    };
    let resolved = world.plugins.resolve(given("https://paged.test/x"), None).await;
    let first_page = resolved.unwrap().unwrap().listing.entries.len();
    assert!(first_page < listed.listing.entries.len(), "all pages are shown");
    world.plugins.uninstall(identity("paged")).await.unwrap();
    let identities: Vec<_> = world.plugins.list().into_iter().map(|plugin| plugin.identity).collect();
    assert_eq!(identities, ["many", "quick", "single"].map(identity));
}
