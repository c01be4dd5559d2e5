//! The plugins that come with the service.

use super::*;

use crate::error::CommandError;

/// A bundled package, for as long as the tests run.
fn bundled(version: &'static str, script: &str) -> &'static [Bundled] {
    let zip = crate::plugins::tests::zip("acme", version, script);
    Box::leak(Box::new([Bundled {
        identity: "acme@test",
        version,
        zip: zip.leak(),
    }]))
}

#[tokio::test]
async fn a_bundled_plugin_is_installed_without_any_network_and_before_any_other_source() {
    let (outside, world) = begin_with(bundled("1.0.0", "list a")).await;
    let offers = world.market().list().await.unwrap();
    assert_eq!(offers[0].source, Source::Bundled);
    assert!(!offers[0].is_stale && offers[0].signed_by.is_none());
    let place = TestSource::new(&outside, "main").await;
    place.release("acme", "9.0.0", "list a").await;
    world.adopt(&place).await;
    let installed = world.get("acme").await.unwrap();
    assert_eq!(
        (installed.source, installed.version.to_string().as_str()),
        (Source::Bundled, "1.0.0")
    );
    let market = world.market();
    let other = market.install(identity("acme"), None, Some("main".to_owned())).await;
    assert!(matches!(other, Err(MarketError::Plugin(CommandError::Refused(_)))));
    world.after(&outside, hours(48)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    world.check_pins();
    let sources = market.sources();
    assert_eq!((&sources[0].source, sources[0].plugins), (&Source::Bundled, 1));
}

#[tokio::test]
async fn a_newer_executable_updates_what_it_brought() {
    let (outside, world) = begin_with(bundled("1.0.0", "list a")).await;
    world.get("acme").await.unwrap();
    let world = world.restart_with(bundled("1.1.0", "list a\nlist b")).await;
    assert!(world.market().list().await.unwrap()[0].is_update);
    world.after(&outside, hours(0)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
    let asking = "list a\nimports http.send\nhost https://a.acme.com";
    let world = world.restart_with(bundled("1.2.0", asking)).await;
    world.after(&outside, hours(0)).await;
    world.settled("acme").await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"), "it asks for more");
    let pending = world.plugins.get(&identity("acme")).unwrap().pending.unwrap();
    assert_eq!(pending.version.to_string(), "1.2.0");
    // An older executable leaves it alone, unless the user names the version.
    let world = world.restart_with(bundled("1.0.0", "list a")).await;
    world.after(&outside, hours(0)).await;
    world.settled("acme").await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Older { .. }));
    let version = Some("1.0.0".parse().unwrap());
    world.market().install(identity("acme"), version, None).await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
}
