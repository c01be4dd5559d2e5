//! What others try, as far as the host has a part in stopping it. The rest is in the tests of the crate `market`.

use market::path;

use super::*;

use crate::error::CommandError;

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn an_older_list_is_not_believed_and_takes_nothing_away() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    let old = tempfile::tempdir().unwrap();
    copy(&place.source(), old.path());
    outside.pass(hours(1));
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    outside.put("main.test", old.path());
    let sources = world.market().refresh(Some("main")).await.unwrap();
    assert_eq!(sources[1].trouble.as_ref().unwrap().kind, TroubleKind::Rollback);
    assert!(sources[1].is_fresh, "what is known still counts");
    let offer = &world.market().list().await.unwrap()[0];
    assert_eq!(offer.version.to_string(), "1.1.0");
    let world = world.restart().await;
    let trouble = world.market().sources().remove(1).trouble;
    assert_eq!(trouble.unwrap().kind, TroubleKind::Rollback, "also after a restart");
}

#[tokio::test]
async fn news_that_is_kept_back_stops_installing_and_nothing_else() {
    let (outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    place.release("other", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    outside.take_away("main.test");
    world.after(&outside, hours(24 * 8)).await;
    let error = world.get("other").await.unwrap_err();
    match error {
        MarketError::Stale { trouble, .. } => assert_eq!(trouble.unwrap().kind, TroubleKind::Unreachable),
        other => panic!("{other}"),
    }
    let offers = world.market().list().await.unwrap();
    assert!(offers.len() == 2 && offers.iter().all(|offer| offer.is_stale));
    assert_eq!(world.resolves("acme").await, Ok(1), "what is installed goes on");
    outside.put("main.test", &place.source());
    place.publish().await;
    outside.pass(hours(1));
    world.get("other").await.unwrap();
}

#[tokio::test]
async fn a_package_that_was_swapped_or_does_not_come_leaves_what_was_there() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    let version = |version: &str| path::package(&identity("acme"), &version.parse().unwrap());
    let (old, new) = (version("1.0.0"), place.source().join(version("1.1.0")));
    let honest = std::fs::read(&new).unwrap();
    std::fs::copy(place.source().join(old), &new).unwrap();
    let error = world.get("acme").await.unwrap_err();
    assert!(error.is_other_package(), "{error}");
    std::fs::write(&new, [honest.as_slice(), b"more"].concat()).unwrap();
    let error = world.get("acme").await.unwrap_err();
    assert!(error.is_too_large(), "{error}");
    std::fs::remove_file(&new).unwrap();
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Download(_)) && !error.is_too_large() && !error.is_other_package());
    assert_eq!(world.resolves("acme").await, Ok(1));
    assert_eq!(world.packages(), 1);
    world.check_pins();
    std::fs::write(&new, honest).unwrap();
    world.get("acme").await.unwrap();
    assert_eq!(world.resolves("acme").await, Ok(2));
}

#[tokio::test]
async fn a_list_that_says_something_else_than_the_package_is_found_out() {
    let (_outside, place, world) = begin_with_source().await;
    let package = place.package("acme", "1.0.0", "list a\nimports http.send", None);
    place.add(&package, &|_| Ok(market::Digest::of(b"nothing"))).await;
    world.market().refresh(None).await.unwrap();
    let error = world.get("acme").await.unwrap_err();
    assert!(
        matches!(error, MarketError::Plugin(CommandError::NotAsListed("imports"))),
        "{error}"
    );
    assert!(world.plugins.list().is_empty());
    assert_eq!(world.packages(), 0);
}

#[tokio::test]
async fn what_was_damaged_on_the_disk_counts_as_nothing_and_is_asked_for_again() {
    let (outside, place, mut world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    place.revoke("other", "1.0.0", market::Level::Malicious).await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    for damage in [
        "UPDATE market_source SET plugins = x'00'",
        "UPDATE market_source SET plugins = CAST(replace(CAST(plugins AS TEXT), 'acme@test', 'acme@best') AS BLOB)",
        "UPDATE market_source SET revocations = CAST(replace(CAST(revocations AS TEXT), 'other', 'nobody') AS BLOB)",
    ] {
        world.damage(damage).await;
        outside.take_away("main.test");
        world = world.restart().await;
        let source = world.market().sources().remove(1);
        assert!(!source.is_fresh && source.trouble.unwrap().message.contains("damaged"));
        let error = world.get("acme").await.unwrap_err();
        assert!(matches!(error, MarketError::Stale { .. }), "{error}");
        assert_eq!(world.resolves("acme").await, Ok(1), "what is installed goes on");
        // It is asked by itself, and what it says now is compared with what is installed.
        outside.put("main.test", &place.source());
        world.after(&outside, SignedDuration::from_mins(31)).await;
        assert!(world.market().sources()[1].is_fresh);
        assert_eq!(world.market().list().await.unwrap().len(), 1);
        world.check_pins();
    }
}

#[tokio::test]
async fn one_bad_source_spoils_nothing_of_another() {
    let (outside, main, world) = begin_with_source().await;
    let bad = TestSource::new(&outside, "bad").await;
    bad.release("other", "1.0.0", "list a").await;
    world.adopt(&bad).await;
    main.release("acme", "1.0.0", "list a").await;
    let timestamp = bad.source().join(path::TIMESTAMP_SIGNATURE);
    std::fs::write(timestamp, "nonsense").unwrap();
    outside.pass(hours(1));
    let offers = world.market().list().await.unwrap();
    assert_eq!(offers.len(), 2);
    let sources = world.market().sources();
    let kinds: Vec<_> = sources
        .iter()
        .map(|source| source.trouble.as_ref().map(|it| it.kind))
        .collect();
    assert_eq!(kinds, [None, Some(TroubleKind::Invalid), None]);
    world.get("acme").await.unwrap();
    // What was believed once still counts, for as long as it said.
    world.get("other").await.unwrap();
    world.check_pins();
}
