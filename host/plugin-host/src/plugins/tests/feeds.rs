use super::*;
use crate::{FeedRefusal, FeedRequest};

const SCRIPT: &str = "exports feed-handler
use apiKey https://acme.test/api
use apiKey https://other.test/api
use token https://acme.test/api";

#[tokio::test]
async fn a_feed_has_the_fields_of_its_source_and_their_secrets_go_to_its_host_only() {
    let world = World::new().await;
    world.install("acme", "1.0.0", SCRIPT).await.unwrap();
    let request = |config: &[(&str, &str)]| FeedRequest {
        etag: Some("1".to_owned()),
        config: batch(config),
        ..FeedRequest::default()
    };
    let (plugin, given) = (identity("acme"), given("https://acme.test/feed/1"));
    let config = [("search", "linux"), ("apiKey", "hunter2"), ("gone", "x")];
    let feed = world
        .plugins
        .feed(&plugin, given.clone(), request(&config))
        .await
        .unwrap();
    assert_eq!(feed.title.as_deref(), Some("linux"));
    let guids: Vec<_> = feed.items.iter().map(|item| &*item.guid).collect();
    let sent = [
        "apiKey https://acme.test/api true",
        "apiKey https://other.test/api false",
    ];
    assert_eq!(guids, [&sent[..], &["token https://acme.test/api false"]].concat());
    // Nothing of one source is there for the next.
    let feed = world.plugins.feed(&plugin, given, request(&[])).await.unwrap();
    assert_eq!(
        (feed.title, &*feed.items[0].guid),
        (None, "apiKey https://acme.test/api false")
    );
}

#[tokio::test]
async fn a_source_is_refused_with_what_is_wrong_about_it() {
    let world = World::new().await;
    world.install("acme", "1.0.0", SCRIPT).await.unwrap();
    world.install("other", "1.0.0", "list a").await.unwrap();
    let check = |provider: &str, url: &str, config: &[(&str, &str)]| {
        world
            .plugins
            .check_feed(provider, &url.parse().unwrap(), &batch(config))
    };
    let (url, good) = ("https://acme.test/feed/1", [("search", "x"), ("apiKey", "y")]);
    assert_eq!(check("acme@test", url, &good), Ok(()));
    for provider in ["other@test", "missing@test", "acme"] {
        assert_eq!(
            check(provider, url, &good),
            Err(FeedRefusal::Provider(provider.to_owned()))
        );
    }
    assert!(matches!(
        check("acme@test", "https://acme.test/s/1", &good),
        Err(FeedRefusal::Url { .. })
    ));
    for (config, key) in [
        (&[("apiKey", "y")][..], "search"),
        (&[("search", "x"), ("serch", "x")], "serch"),
    ] {
        match check("acme@test", url, config) {
            Err(FeedRefusal::Config(error)) => assert_eq!(error.key, key),
            other => panic!("{config:?}: {other:?}"),
        }
    }
    assert_eq!(world.plugins.secret_feed_fields("acme@test").unwrap(), ["apiKey"]);
    assert_eq!(world.plugins.secret_feed_fields("other@test"), None);
}

#[test]
fn a_feed_without_items_is_unchanged_if_its_etag_is() {
    let feed = |etag: Option<&str>| Feed {
        etag: etag.map(str::to_owned),
        ..Feed::default()
    };
    assert!(feed(Some("1")).is_unchanged(Some("1")));
    assert!(!feed(Some("2")).is_unchanged(Some("1")));
    assert!(!feed(None).is_unchanged(None), "it is empty");
}
