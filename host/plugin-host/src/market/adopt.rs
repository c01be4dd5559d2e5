//! Adding and removing sources. The user enters a link, is shown the fingerprint of its key, and confirms it.

use std::sync::Arc;

use market::{Link, SourceId, SourceState};

use super::Market;
use crate::{
    catalogue::{
        MarketError, SourceSummary,
        known::{KnownSource, MAX_SOURCES},
        rows::{self, Row},
    },
    error::CommandError,
    install::Shared,
    lifecycle::Source,
    package::fault_point::Step,
};

/// The result of adopting a link.
#[derive(Debug, Clone)]
pub struct Adoption {
    pub link: Link,
    /// The source, if the user confirmed the fingerprint.
    pub source: Option<SourceSummary>,
}

impl Market {
    /// Adds the source of a link if `fingerprint` is that of its key; otherwise sends no request. A source that fails
    /// verification is not added.
    pub async fn adopt(&self, link: &str, fingerprint: Option<&str>) -> Result<Adoption, MarketError> {
        let link: Link = link.parse()?;
        let Some(fingerprint) = fingerprint else {
            return Ok(Adoption { link, source: None });
        };
        if digits(fingerprint) != digits(&link.key.fingerprint()) {
            return Err(MarketError::Fingerprint(link.key.fingerprint()));
        }
        let (market, adopted) = (self.clone(), link.clone());
        let adopting = self.shared.tasks.spawn(async move { market.add(&adopted).await });
        let id = adopting.await.map_err(|_| CommandError::Closed)??;
        let source = Source::Market(id);
        let mut sources = self.sources().into_iter();
        Ok(Adoption {
            link,
            source: sources.find(|found| found.source == source),
        })
    }

    async fn add(&self, link: &Link) -> Result<SourceId, MarketError> {
        let (market, now) = (&self.shared.market, self.shared.market.clock.now());
        self.check_room(link)?;
        let state = SourceState::with_key(link.key);
        let fetching = market.fetch(&state, &link.url, &self.proxies, now);
        let fetched = self.shared.stop.run_until_cancelled(fetching).await;
        let refreshed = fetched.ok_or(CommandError::Closed)??;
        let root = refreshed.state.root().expect("a source that is believed has a root");
        let id = root.source().clone();
        if Source::is_reserved(&id) {
            return Err(MarketError::ReservedSource(id));
        }
        let _writing = market.writing.lock().await;
        self.check_room(link)?;
        if market.catalogue().known.contains_key(&id) {
            return Err(MarketError::SourceExists(id.to_string()));
        }
        let known = KnownSource::first(link.url.clone(), link.key, refreshed, now);
        let row = Row::new(&id, &known);
        self.shared.pass(Step::Refresh)?;
        self.shared
            .store
            .write(move |transaction| row.save(transaction))
            .await?;
        market.put(&id, Some(known));
        self.shared.apply_revocations();
        Ok(id)
    }

    fn check_room(&self, link: &Link) -> Result<(), MarketError> {
        let catalogue = self.shared.market.catalogue();
        if catalogue.known.values().any(|known| known.url == link.url) {
            return Err(MarketError::SourceExists(link.url.to_string()));
        }
        if catalogue.known.len() >= MAX_SOURCES {
            return Err(MarketError::TooManySources(MAX_SOURCES));
        }
        Ok(())
    }

    /// Removes a source with its rollback protection, so only if no plugin is installed from it.
    pub async fn remove(&self, source: &str) -> Result<(), MarketError> {
        if source == Source::BUNDLED {
            return Err(MarketError::BundledSource);
        }
        let id = self.shared.market.source_named(source)?;
        let shared = Arc::clone(&self.shared);
        let removing = self.shared.tasks.spawn(async move { shared.remove_source(id).await });
        removing.await.map_err(|_| CommandError::Closed)?
    }
}

impl Shared {
    async fn remove_source(&self, id: SourceId) -> Result<(), MarketError> {
        let _writing = self.market.writing.lock().await;
        let source = Source::Market(id.clone());
        let snapshot = self.registry.snapshot();
        let came = snapshot.plugins.iter();
        let came = came.filter(|(_, loaded)| loaded.installation.source == source);
        let plugins: Vec<_> = came.map(|(plugin, _)| plugin.clone()).collect();
        if !plugins.is_empty() {
            let source_name = id.to_string();
            return Err(MarketError::SourceInUse { source_name, plugins });
        }
        self.pass(Step::Refresh)?;
        let removed = id.clone();
        self.store
            .write(move |transaction| rows::remove(transaction, &removed))
            .await?;
        self.market.put(&id, None);
        self.apply_revocations();
        Ok(())
    }
}

/// A fingerprint without separators.
fn digits(fingerprint: &str) -> String {
    let digits = fingerprint.chars().filter(char::is_ascii_hexdigit);
    digits.map(|digit| digit.to_ascii_uppercase()).collect()
}
