//! Plugins that read feeds, as far as subscriptions know of them.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, time::Duration};

use engine::Proxies;
use jiff::Timestamp;
use transfer::{RequestOptions, SafeUrl};

use crate::{feed::ProvidedFeed, rule::InvalidField};
use protocol::RssSourceDto;

/// What reads the feeds of sources that name a provider.
pub trait Providers: fmt::Debug + Send + Sync + 'static {
    /// Checks the provider of a source, its URL and its fields.
    fn check(&self, provider: &str, url: &SafeUrl, config: &BTreeMap<String, String>) -> Result<(), InvalidField>;

    /// The fields that are never shown; `None` if there is no such provider now.
    fn secret_fields(&self, provider: &str) -> Option<Vec<String>>;

    /// Whether a plugin resolves this URL. Must be cheap.
    fn resolves(&self, url: &SafeUrl) -> bool;

    /// Reads a feed; `None` if it has not changed. Dropping the future ends the call.
    fn fetch(&self, request: ProviderRequest) -> ProviderFuture<'_>;
}

/// See [`Providers::fetch`].
pub type ProviderFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<ProvidedFeed>, ProviderError>> + Send + 'a>>;

/// What a provider is asked.
#[derive(Debug, Clone)]
pub struct ProviderRequest {
    /// The provider's id.
    pub provider: String,
    /// What the user filled in.
    pub config: BTreeMap<String, String>,
    /// The URL of the source; the user gave it.
    pub url: SafeUrl,
    /// When the feed was last read.
    pub since: Option<Timestamp>,
    /// What the provider gave then; empty is nothing.
    pub etag: String,
    /// Cookies, login and user agent for the URL's own site.
    pub request: RequestOptions,
    /// The proxies for all requests.
    pub proxies: Proxies,
}

/// Why a provider gives no feed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// What happened, and what to do.
    pub message: String,
    /// When it wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// Where no plugins run.
#[derive(Debug)]
pub(crate) struct NoProviders;

const NONE: &str = "plugins are switched off, so that no plugin reads feeds";

impl Providers for NoProviders {
    fn check(&self, _: &str, _: &SafeUrl, _: &BTreeMap<String, String>) -> Result<(), InvalidField> {
        Err(InvalidField::new("providerId", NONE))
    }

    fn secret_fields(&self, _: &str) -> Option<Vec<String>> {
        None
    }

    fn resolves(&self, _: &SafeUrl) -> bool {
        false
    }

    fn fetch(&self, _: ProviderRequest) -> ProviderFuture<'_> {
        Box::pin(async {
            Err(ProviderError {
                message: NONE.to_owned(),
                retry_after: None,
            })
        })
    }
}

/// Masks the secret fields of a source; all fields if its plugin, which declares the secret ones, is not installed.
pub(crate) fn mask(source: &mut RssSourceDto, providers: &dyn Providers) {
    let secret = providers.secret_fields(&source.provider_id);
    let is_secret = |key: &String| secret.as_ref().is_none_or(|secret| secret.contains(key));
    let fields = source.provider_config.iter_mut();
    for (_, value) in fields.filter(|(key, value)| !value.is_empty() && is_secret(key)) {
        protocol::MASKED.clone_into(value);
    }
}
