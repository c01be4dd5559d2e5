//! Where sources begin and end.

use super::*;

#[tokio::test]
async fn a_source_is_added_when_the_user_says_that_its_fingerprint_is_right() {
    let (outside, world) = begin().await;
    let place = TestSource::new(&outside, "main").await;
    let shown = world.market().adopt(&place.link(), None).await.unwrap();
    assert!(shown.source.is_none());
    let fingerprint = shown.link.key.fingerprint();
    let wrong = TestSource::new(&outside, "wrong").await.key.fingerprint();
    let error = world.market().adopt(&place.link(), Some(&wrong)).await.unwrap_err();
    assert!(matches!(error, MarketError::Fingerprint(right) if right == fingerprint));
    assert_eq!(world.market().sources().len(), 1, "the bundled one");

    // People leave out what stands between digits.
    let typed = fingerprint.replace(' ', "").to_lowercase();
    let adopted = world.market().adopt(&place.link(), Some(&typed)).await.unwrap();
    assert_eq!(adopted.source.unwrap().name, "The source main");
    let again = world.market().adopt(&place.link(), Some(&typed)).await.unwrap_err();
    assert!(matches!(again, MarketError::SourceExists(_)));

    let world = world.restart().await;
    let sources = world.market().sources();
    assert_eq!(sources[1].source, Source::Market("main".parse().unwrap()));
    assert_eq!(sources[1].place.as_ref().unwrap().1, place.key);
    assert!(sources[1].is_fresh);
    world.market().remove("main").await.unwrap();
    assert!(matches!(
        world.market().remove("main").await.unwrap_err(),
        MarketError::UnknownSource(_)
    ));
    assert_eq!(world.restart().await.market().sources().len(), 1);
}

#[tokio::test]
async fn a_source_that_is_not_believed_or_takes_a_name_is_not_added() {
    let (outside, world) = begin().await;
    let main = TestSource::new(&outside, "main").await;
    world.adopt(&main).await;
    // Another place that calls itself the same, with keys of its own.
    let twin = TestSource::new(&outside, "main").await;
    outside.put("main.test", &main.source());
    outside.put("twin.test", &twin.source());
    let link = twin.link().replace("main.test", "twin.test");
    let add = async |link: &str, key: PublicKey| {
        let adopted = world.market().adopt(link, Some(&key.fingerprint())).await;
        adopted.unwrap_err()
    };
    assert!(matches!(add(&link, twin.key).await, MarketError::SourceExists(id) if id == "main"));
    let bundled = TestSource::new(&outside, "bundled").await;
    assert!(matches!(
        add(&bundled.link(), bundled.key).await,
        MarketError::ReservedSource(_)
    ));
    // The right place with another key.
    outside.put("twin.test", &bundled.source());
    let error = add(&link, twin.key).await;
    assert!(matches!(
        error,
        MarketError::Refresh(Trouble {
            kind: TroubleKind::Invalid,
            ..
        })
    ));
    outside.take_away("twin.test");
    let error = add(&link, twin.key).await;
    assert!(matches!(
        error,
        MarketError::Refresh(Trouble {
            kind: TroubleKind::Unreachable,
            ..
        })
    ));
    for text in ["", "https://main.test/", "svc://market?url=https://main.test/"] {
        let error = world.market().adopt(text, None).await.unwrap_err();
        assert!(matches!(error, MarketError::Link(_)));
    }
    assert_eq!(world.market().sources().len(), 2);
}

#[tokio::test]
async fn a_source_stays_as_long_as_a_plugin_that_came_from_it() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    match world.market().remove("main").await.unwrap_err() {
        MarketError::SourceInUse { plugins, .. } => assert_eq!(plugins, [identity("acme")]),
        other => panic!("{other}"),
    }
    assert!(matches!(
        world.market().remove("bundled").await.unwrap_err(),
        MarketError::BundledSource
    ));
    world.plugins.uninstall(identity("acme")).await.unwrap();
    world.check_pins();
    world.market().remove("main").await.unwrap();
}

#[tokio::test]
async fn there_are_only_so_many_sources() {
    let (outside, world) = begin().await;
    for n in 0..crate::catalogue::known::MAX_SOURCES {
        world.adopt(&TestSource::new(&outside, &format!("s{n}")).await).await;
    }
    let more = TestSource::new(&outside, "more").await;
    let error = world.market().adopt(&more.link(), Some(&more.key.fingerprint())).await;
    assert!(matches!(error.unwrap_err(), MarketError::TooManySources(_)));
}
