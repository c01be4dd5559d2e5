//! What the user installs.

use super::*;

use crate::error::CommandError;

#[tokio::test]
async fn a_plugin_is_listed_installed_and_remembered_with_its_source_and_author() {
    let (_outside, place, world) = begin_with_source().await;
    let script = "list a\nimports http.send\nhost https://a.acme.com";
    place.release("acme", "1.0.0", script).await;
    world.market().refresh(None).await.unwrap();
    let offers = world.market().list().await.unwrap();
    assert_eq!(offers.len(), 1);
    let (offer, author) = (&offers[0], place.signing_key("author").public());
    assert_eq!((offer.version.to_string().as_str(), offer.seq), ("1.0.0", 1));
    assert_eq!(offer.permissions.texts()[0], "host https://a.acme.com");
    assert_eq!((offer.signed_by, &offer.installed), (Some(author), &None));
    assert!(!offer.is_stale && !offer.is_update && offer.unfit.is_none());

    let installed = world.get("acme").await.unwrap();
    assert_eq!(installed.source, Source::Market("main".parse().unwrap()));
    assert_eq!(installed.signed_by, Some(author));
    let consent = installed.pending_consent.unwrap();
    world.plugins.consent(identity("acme"), consent).await.unwrap();
    world.check_pins();

    let world = world.restart().await;
    world.settled("acme").await.unwrap();
    assert_eq!(world.resolves("acme").await, Ok(1));
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(summary.signed_by, Some(author));
    world.check_pins();
    let offer = &world.market().list().await.unwrap()[0];
    assert_eq!(offer.installed, Some(("1.0.0".parse().unwrap(), false)));
    assert!(!offer.is_update);
    world.plugins.uninstall(identity("acme")).await.unwrap();
    world.check_pins();
    assert_eq!(world.packages(), 0);
}

#[tokio::test]
async fn what_the_user_was_shown_is_installed_or_nothing() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    let market = world.market();
    let install = |version: &str, source: Option<&str>| {
        let version = Some(version.parse().unwrap());
        market.install(identity("acme"), version, source.map(str::to_owned))
    };
    let wait = install("1.0.0", None).await.unwrap_err();
    assert!(matches!(wait, MarketError::VersionChanged { newest, .. } if newest.to_string() == "1.1.0"));
    let error = install("1.1.0", Some("other")).await.unwrap_err();
    assert!(matches!(error, MarketError::UnknownSource(_)));
    install("1.1.0", Some("main")).await.unwrap();
    assert_eq!(world.resolves("acme").await, Ok(2));
    let unknown = world.get("nothing").await.unwrap_err();
    assert!(matches!(unknown, MarketError::NotInMarket(_)));
}

#[tokio::test]
async fn a_plugin_belongs_to_the_source_that_it_came_from() {
    let (outside, main, world) = begin_with_source().await;
    let second = TestSource::new(&outside, "second").await;
    world.adopt(&second).await;
    main.release("acme", "1.0.0", "list a").await;
    second.release("acme", "9.0.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    assert_eq!(world.market().list().await.unwrap().len(), 2);
    match world.get("acme").await.unwrap_err() {
        MarketError::Ambiguous { sources, .. } => assert_eq!(sources, ["main", "second"]),
        other => panic!("{other}"),
    }
    let market = world.market();
    let from = |source: &str| market.install(identity("acme"), None, Some(source.to_owned()));
    from("main").await.unwrap();
    let error = from("second").await.unwrap_err();
    assert!(
        matches!(error, MarketError::Plugin(CommandError::Refused(_))),
        "{error}"
    );
    let offers = world.market().list().await.unwrap();
    assert_eq!(offers.len(), 1, "only its own source matters");
    world.after(&outside, hours(48)).await;
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    world.check_pins();
    world.plugins.uninstall(identity("acme")).await.unwrap();
    from("second").await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("9.0.0"));
    world.check_pins();
}

#[tokio::test]
async fn going_back_needs_the_users_word() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    place.release("acme", "1.1.0", "list a\nlist b").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    place.withdraw("acme", "1.1.0").await;
    world.market().refresh(None).await.unwrap();
    let offer = &world.market().list().await.unwrap()[0];
    assert!(!offer.is_update && offer.version.to_string() == "1.0.0");
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Older { .. }), "{error}");
    let named = Some("1.0.0".parse().unwrap());
    world.market().install(identity("acme"), named, None).await.unwrap();
    assert_eq!(world.version("acme").as_deref(), Some("1.0.0"));
    world.check_pins();
    place.withdraw("acme", "1.0.0").await;
    world.market().refresh(None).await.unwrap();
    let error = world.get("acme").await.unwrap_err();
    assert!(matches!(error, MarketError::Unfit(Unfit::Yanked(..))), "{error}");
    let offer = &world.market().list().await.unwrap()[0];
    assert!(offer.unfit.as_ref().unwrap().contains("it is broken"));
}

#[tokio::test]
async fn the_user_s_own_file_replaces_it_once_the_user_agrees_to_its_author_and_the_source_forgets_it() {
    let (_outside, place, world) = begin_with_source().await;
    place.release("acme", "1.0.0", "list a").await;
    world.market().refresh(None).await.unwrap();
    world.get("acme").await.unwrap();
    let stranger = crate::plugins::tests::zip("acme", "3.0.0", "list a\nlist b");
    let waiting = world.plugins.install_zip(stranger).await.unwrap();
    assert_eq!(
        world.version("acme").as_deref(),
        Some("1.0.0"),
        "it is not signed by who signed that"
    );
    // Until then the source answers for what runs: it is from there, and can be revoked.
    let world = world.restart().await;
    world.check_pins();
    let source = world.settled("acme").await.unwrap().source;
    assert_eq!(source, Source::Market("main".parse().unwrap()));
    let agree = async |installed: crate::Installed| {
        let asked = installed.pending_consent.unwrap();
        world.plugins.consent(identity("acme"), asked).await.unwrap();
    };
    agree(waiting).await;
    world.check_pins();
    assert_eq!(world.plugins.get(&identity("acme")).unwrap().signed_by, None);
    // A package that is signed and changed is refused, wherever it is from.
    let path = place.package("acme", "4.0.0", "list a", None);
    let package = Package::read(&path).unwrap();
    let mut files = package.files.clone();
    files.insert("plugin.wasm".to_owned(), "list a\nlist c".as_bytes().into());
    let error = world
        .plugins
        .install_zip(plugin_package::pack(&files).unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, CommandError::Signature(_)), "{error}");
    agree(world.plugins.install_zip(package.bytes.to_vec()).await.unwrap()).await;
    let summary = world.plugins.get(&identity("acme")).unwrap();
    assert_eq!(summary.signed_by, Some(place.signing_key("author").public()));
}
