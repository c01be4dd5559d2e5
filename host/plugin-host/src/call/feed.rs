//! Feeds: which plugin reads those of a source, and what users fill in for it.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::FutureExt as _;
use market::Identity;
use plugin_package::Manifest;
use url::Url;

use crate::{
    error::{CallError, InvalidSetting},
    install::Plugins,
    lifecycle::values::{Values, bindings_of_source, of_source},
    policy::grant::CallTarget,
    runtime::{Ask, Call, Feed, FeedRequest, Guest},
};

/// Why a plugin cannot read the feed of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FeedRefusal {
    #[error("no plugin {0} is installed that reads feeds; see svc plugin list")]
    Provider(String),
    #[error("the plugin {plugin} reads feeds of these URLs: {patterns}")]
    Url { plugin: Identity, patterns: String },
    #[error(transparent)]
    Config(#[from] InvalidSetting),
}

impl Plugins {
    /// Checks what a user says of a source whose feed a plugin reads.
    pub fn check_feed(&self, provider: &str, url: &Url, config: &BTreeMap<String, String>) -> Result<(), FeedRefusal> {
        let manifest = self.feed_manifest(provider);
        let feed = manifest
            .as_ref()
            .and_then(|manifest| manifest.capabilities.feed.as_ref());
        let (Some(manifest), Some(feed)) = (&manifest, feed) else {
            return Err(FeedRefusal::Provider(provider.to_owned()));
        };
        if !feed.matches.iter().any(|pattern| pattern.claims(url)) {
            let patterns: Vec<_> = feed.matches.iter().map(ToString::to_string).collect();
            return Err(FeedRefusal::Url {
                plugin: manifest.identity.clone(),
                patterns: patterns.join(", "),
            });
        }
        Values::default().with(&feed.config, config)?;
        let is_missing = |key: &String| config.get(key).is_none_or(String::is_empty);
        let required = feed
            .config
            .iter()
            .filter(|field| field.is_required && field.default.is_none());
        match required.map(|field| &field.key).find(|key| is_missing(key)) {
            Some(key) => Err(InvalidSetting {
                key: key.clone(),
                reason: "must not be empty".to_owned(),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// The secret fields of the sources of a plugin; `None` if there is no such plugin.
    pub fn secret_feed_fields(&self, provider: &str) -> Option<Vec<String>> {
        let manifest = self.feed_manifest(provider)?;
        let fields = manifest.capabilities.feed.iter().flat_map(|feed| &feed.config);
        let secret = fields.filter(|field| field.is_secret);
        Some(secret.map(|field| field.key.clone()).collect())
    }

    /// The feed of a URL, by `plugin`.
    pub async fn feed(&self, plugin: &Identity, target: CallTarget, request: FeedRequest) -> Result<Feed, CallError> {
        let ask = Ask::Feed(request.clone());
        let call = |guest: Arc<dyn Guest>, call| {
            let request = request.clone();
            async move { guest.feed(call, request).await }.boxed()
        };
        self.0.call(plugin.clone(), ask, &target, call).await
    }

    fn feed_manifest(&self, provider: &str) -> Option<Arc<Manifest>> {
        let loaded = self.0.registry.get(&provider.parse().ok()?)?;
        let manifest = loaded.manifest.as_ref()?;
        manifest.capabilities.feed.as_ref().map(|_| Arc::clone(manifest))
    }
}

/// The call of a feed with the fields of its source.
pub(super) fn with_source(mut call: Call, manifest: &Manifest, ask: &Ask) -> Call {
    let (Ask::Feed(request), Some(feed)) = (ask, &manifest.capabilities.feed) else {
        return call;
    };
    let values = of_source(feed, &request.config);
    Arc::make_mut(&mut call.settings).extend(values.effective(&feed.config));
    let bindings = bindings_of_source(manifest, &call.given.url);
    call.secrets = call.secrets.with_source(values.secret, bindings);
    call
}
