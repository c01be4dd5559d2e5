//! `rss::Providers` implemented with plugins.

use std::{collections::BTreeMap, time::Duration};

use plugin_host::{CallError, CallTarget, Feed, FeedItem, FeedRefusal, FeedRequest, Identity, Plugins, Retry};
use rss::{
    ProviderError, ProviderFuture, ProviderRequest, Providers,
    feed::{ProvidedFeed, ProvidedItem},
    rule::InvalidField,
};
use transfer::SafeUrl;

use crate::refusal::of_call;

#[derive(Debug)]
pub(super) struct PluginFeeds(pub(super) Plugins);

impl Providers for PluginFeeds {
    fn check(&self, provider: &str, url: &SafeUrl, config: &BTreeMap<String, String>) -> Result<(), InvalidField> {
        self.0.check_feed(provider, url.as_url(), config).map_err(|refusal| {
            let field = match &refusal {
                FeedRefusal::Provider(_) => "providerId".to_owned(),
                FeedRefusal::Url { .. } => "url".to_owned(),
                FeedRefusal::Config(setting) => format!("providerConfig.{}", setting.key),
            };
            InvalidField::new(field, refusal.to_string())
        })
    }

    fn secret_fields(&self, provider: &str) -> Option<Vec<String>> {
        self.0.secret_feed_fields(provider)
    }

    fn resolves(&self, url: &SafeUrl) -> bool {
        self.0.claim(url.as_url()).is_some()
    }

    fn fetch(&self, request: ProviderRequest) -> ProviderFuture<'_> {
        Box::pin(async move {
            let plugin: Identity = request.provider.parse().map_err(|_| ProviderError {
                message: FeedRefusal::Provider(request.provider.clone()).to_string(),
                retry_after: None,
            })?;
            let target = CallTarget {
                request: request.request,
                proxies: request.proxies,
                ..CallTarget::by_user(request.url.as_url().clone())
            };
            let etag = Some(request.etag).filter(|etag| !etag.is_empty());
            let since = request.since.map(jiff::Timestamp::as_millisecond);
            let asked = FeedRequest {
                since_ms: since.and_then(|since| u64::try_from(since).ok()),
                etag: etag.clone(),
                config: request.config,
            };
            let feed = self
                .0
                .feed(&plugin, target, asked)
                .await
                .map_err(|error| failed(&error))?;
            Ok((!feed.is_unchanged(etag.as_deref())).then(|| provided(feed)))
        })
    }
}

fn failed(error: &CallError) -> ProviderError {
    ProviderError {
        message: of_call(error),
        retry_after: match error.reason.retry() {
            Retry::Backoff(pause) => pause,
            Retry::Never | Retry::Once | Retry::AfterUser | Retry::NextPlugin => None,
        },
    }
}

fn provided(feed: Feed) -> ProvidedFeed {
    ProvidedFeed {
        title: feed.title.unwrap_or_default(),
        etag: feed.etag.unwrap_or_default(),
        ttl: Duration::from_secs(feed.ttl_seconds.unwrap_or(0).into()),
        items: feed.items.into_iter().map(item).collect(),
    }
}

fn item(item: FeedItem) -> ProvidedItem {
    let (enclosure, media_type) = item
        .enclosure
        .map(|file| (file.url.into(), file.media_type))
        .unwrap_or_default();
    ProvidedItem {
        guid: item.guid,
        title: item.title,
        link: item.link.map(String::from).unwrap_or_default(),
        enclosure,
        media_type,
        size: item.size,
        summary: item.summary.unwrap_or_default(),
        published_ms: item.published_ms,
        infohash: item.infohash.unwrap_or_default(),
        resolve_with_plugin: item.resolve_with_plugin,
    }
}
