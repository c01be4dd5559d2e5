//! What comes by itself, and what is taken back.

use std::time::Duration;

use market::Level;

use super::*;

use crate::error::CommandError;

#[tokio::test]
async fn a_new_version_comes_a_day_after_it_was_first_seen() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.after(&outside, hours(7)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    let offer = &world.market().list().await.unwrap()[0];
    assert!(offer.is_update);
    assert_eq!(offer.updates_at, Some(outside.now() + hours(24)));
    world.after(&outside, hours(23)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    world.after(&outside, hours(2)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
    assert_eq!(world.resolves("acme").await, Ok(2));
    world.check_pins();
}

#[tokio::test]
async fn what_asks_for_more_waits_for_the_user_and_what_is_pinned_is_left_alone() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    place.release("other", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    world.get("other").await.unwrap();
    world.plugins.set_pinned(identity("other"), true).await.unwrap();
    let asking = "list a\nimports http.send\nhost https://a.acme.com";
    place.release("acme", "1.1.0", asking).await;
    place.release("other", "1.1.0", "list a").await;
    world.after(&outside, hours(7)).await;
    world.after(&outside, hours(25)).await;
    assert_eq!(world.version("other").as_deref(), Some("1.0.0"));
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(summary.manifest.unwrap().version.to_string(), "1.0.0");
    let pending = summary.pending.unwrap();
    assert_eq!(pending.added[0].to_string(), "host https://a.acme.com");
    assert_eq!(world.resolves("acme").await, Ok(1), "the old version goes on");
    let offer = world.market().list().await.unwrap().remove(0);
    assert!(
        offer.is_update && offer.updates_at.is_none(),
        "it can be had, and does not come by itself"
    );
    assert_eq!(offer.installed.unwrap().0.to_string(), "1.0.0");
    world.check_pins();
    world.plugins.consent(identity("acme"), pending.digest).await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
    world.plugins.set_pinned(identity("other"), false).await.unwrap();
    world.after(&outside, hours(7)).await;
    assert_eq!(world.version("other").as_deref(), Some("1.1.0"));
    world.check_pins();
}

#[tokio::test]
async fn what_another_author_signed_gets_no_secret_before_the_user_agrees() {
    let (outside, place, world) = begin_with_source().await;
    let script = "list a\nimports http.send\nhost https://a.acme.com\nsecret https://a.acme.com";
    place.release("acme", "1.0.0", script).await;
    world.market().refresh(None).await.unwrap();
    let agreed = world.get("acme").await.unwrap().pending_consent.unwrap();
    world.plugins.consent(identity("acme"), agreed).await.unwrap();
    let secret = crate::plugins::tests::batch(&[("token", "old-secret")]);
    world.plugins.update_settings(identity("acme"), secret).await.unwrap();
    place.release_of_heir("acme", "1.1.0", script).await;
    world.after(&outside, hours(7)).await;
    let told = |event: &Event| matches!(event, Event::AuthorChanged { reason: None, .. });
    assert!(world.told().iter().any(told));
    world.after(&outside, hours(25)).await;

    let world = world.restart().await;
    let summary = world.settled("acme").await.unwrap();
    assert_eq!(summary.manifest.unwrap().version.to_string(), "1.0.0", "it goes on");
    let pending = summary.pending.unwrap();
    assert!(pending.has_other_author && pending.added.is_empty(), "{pending:?}");
    assert_ne!(pending.signed_by, summary.signed_by);
    world.check_pins();
    // What the user once agreed to is not an agreement to somebody else.
    world.plugins.consent(identity("acme"), agreed).await.unwrap_err();
    world.plugins.consent(identity("acme"), pending.digest).await.unwrap();
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(summary.signed_by, pending.signed_by);
    assert!(summary.secrets_set.contains("token"), "the user agreed to that");
    // The same author needs no further word.
    place.release("acme", "1.2.0", script).await;
    world.get("acme").await.unwrap();
    assert_eq!(world.plugins.get(&identity("acme")).unwrap().pending, None);
    world.check_pins();
}

#[tokio::test]
async fn nothing_comes_by_itself_if_the_user_does_not_want_that() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "list a\nlist b").await;
    let settings = Settings {
        proxies: Proxies::none(),
        updates_itself: false,
    };
    for _ in 0..3 {
        outside.pass(hours(25));
        let pause = world.plugins.0.poll_sources(&settings).await;
        assert!(pause >= Duration::from_secs(30) && pause <= Duration::from_hours(1));
    }
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    world.get("acme").await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
}

#[tokio::test]
async fn a_version_that_does_not_do_what_was_recorded_does_not_come() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    let fixture = serde_json::json!({
        "name": "one", "call": "resolve", "input": { "url": "https://acme.test/x" },
        "expect": { "entries": [{ "name": "a" }] },
    });
    let broken = place.package("acme", "1.1.0", "parse", Some(&fixture.to_string()));
    place.add(&broken, &imports).await;
    world.after(&outside, hours(7)).await;
    world.after(&outside, hours(25)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    let told = world.told();
    let tells = |event: &Event| matches!(event, Event::NotUpdated { error } if error.contains("fixture"));
    assert!(told.iter().any(tells), "{told:?}");
    assert_eq!(world.packages(), 1);
    world.check_pins();
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Plugin(CommandError::Fixture { .. })));
}

#[tokio::test]
async fn a_call_that_is_under_way_ends_with_the_version_that_it_began_with() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a\nwait").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    let begun = Arc::clone(&world.runtime.begun);
    let calling = world.resolves("acme");
    let updating = async {
        begun.notified().await;
        world.get("acme").await.unwrap();
        assert_eq!(world.resolves("acme").await, Ok(2), "the new version answers already");
        world.runtime.go_on.notify_one();
    };
    assert_eq!(tokio::join!(calling, updating).0, Ok(1));
}

#[tokio::test]
async fn a_malicious_version_stops_at_once_and_stays_stopped_until_there_is_another() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "list a\nwait").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    let begun = Arc::clone(&world.runtime.begun);
    let calling = world.resolves("acme");
    let revoking = async {
        begun.notified().await;
        place.revoke("acme", "1.2.0", Level::Malicious).await;
        world.after(&outside, hours(7)).await;
    };
    let (ended, ()) = tokio::join!(calling, revoking);
    assert_eq!(
        ended,
        Err(CallFailure::Revoked("it is bad".to_owned())),
        "the running call ends"
    );
    assert_eq!(world.plugins.get(&identity("acme")).unwrap().status, Status::Revoked);
    let url = given("https://acme.test/x").url;
    assert_eq!(world.plugins.claim(&url), Some(identity("acme")), "it keeps its URLs");
    let told = Event::Revoked {
        level: "malicious",
        reason: "it is bad".to_owned(),
    };
    assert!(world.told().contains(&told));
    let error = world.plugins.roll_back(identity("acme")).await.unwrap_err();
    assert!(matches!(error, CommandError::Revoked { .. }), "{error}");
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Unfit(Unfit::Revoked(..))), "{error}");

    let world = world.restart().await;
    assert_eq!(world.resolves("acme").await.unwrap_err().code(), "revoked");
    // What replaces it does not wait a day.
    place.release("acme", "1.2.0", "list a\nlist b").await;
    world.after(&outside, hours(7)).await;
    assert_eq!(world.resolves("acme").await, Ok(2));
    assert_eq!(world.plugins.get(&identity("acme")).unwrap().status, Status::Enabled);
    world.check_pins();
}

#[tokio::test]
async fn a_vulnerable_version_goes_on_with_a_warning_and_is_not_installed_any_more() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.revoke("acme", "1.1.0", Level::Vulnerable).await;
    world.after(&outside, hours(7)).await;
    assert_eq!(world.resolves("acme").await, Ok(1));
    let revocation = world.plugins.get(&identity("acme")).unwrap().revocation.unwrap();
    assert_eq!(revocation.level, Level::Vulnerable);
    let offer = world.market().list().await.unwrap().remove(0);
    assert_eq!(offer.revocation.unwrap().level, Level::Vulnerable);
    assert!(offer.unfit.is_some());
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Unfit(Unfit::Revoked(..))), "{error}");
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.after(&outside, hours(7)).await;
    assert_eq!(world.resolves("acme").await, Ok(2), "without waiting a day");
    assert!(world.plugins.get(&identity("acme")).unwrap().revocation.is_none());
}

#[tokio::test]
async fn an_update_that_keeps_failing_is_taken_back_and_does_not_come_again() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "trap").await;
    world.after(&outside, hours(7)).await;
    world.after(&outside, hours(25)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.1.0"));
    let mut changes = world.plugins.changes();
    for _ in 0..3 {
        assert!(world.resolves("acme").await.is_err());
    }
    while world.version("acme").as_deref() != Some("1.0.0") {
        assert!(changes.changed().await);
    }
    world.settled("acme").await.unwrap();
    assert_eq!(world.resolves("acme").await, Ok(1));
    assert!(world.told().contains(&Event::RolledBack { by_user: false }));
    world.check_pins();
    place.release("acme", "1.2.0", "trap").await;
    world.after(&outside, hours(7)).await;
    world.after(&outside, hours(25)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"), "it is pinned");
    assert!(world.plugins.get(&identity("acme")).unwrap().is_pinned);
}
