//! Refreshing sources: on demand, and by a timer. Sources are independent: an error of one has no effect on another.

use std::{sync::Arc, time::Duration};

use engine::Proxies;
use futures_util::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use market::{
    AuthorChange, Consent, Refreshed, SourceId, SourceState,
    fetch::{self, Source as Asked},
};
use url::Url;

use super::{Market, Settings};
use crate::{
    catalogue::{MarketError, MarketState, SourceSummary, Trouble, TroubleKind, rows::Row},
    error::chain,
    install::{Plugins, Shared},
    lifecycle::Source,
    package::fault_point::Step,
    runtime::Event,
};

/// For one source, whose index is below 10 MiB.
const REFRESH_TIME: Duration = Duration::from_mins(5);

const CONCURRENT_REFRESHES: usize = 4;

/// On demand, a source is refreshed again if its last attempt is older than this.
pub(super) const ON_DEMAND_AGE: SignedDuration = SignedDuration::from_mins(10);

/// How long listing the offers waits for a refresh, which continues in the background.
const MAX_WAIT_FOR_NEWS: Duration = Duration::from_secs(20);

/// The delay of the first refresh after a start, which has more urgent work.
const FIRST_REFRESH: Duration = Duration::from_secs(30);

/// The longest pause between two checks of what is due: clocks are set, and machines sleep.
const MAX_POLL_INTERVAL: Duration = Duration::from_mins(15);

impl Market {
    /// Refreshes one source or all of them. Returns the present state of all.
    pub async fn refresh(&self, source: Option<&str>) -> Result<Vec<SourceSummary>, MarketError> {
        let asked = match source {
            None => self.shared.market.catalogue().known.keys().cloned().collect(),
            Some(Source::BUNDLED) => Vec::new(),
            Some(name) => vec![self.shared.market.source_named(name)?],
        };
        let (shared, proxies) = (Arc::clone(&self.shared), self.proxies.clone());
        let refreshing = async move { shared.refresh(asked, SignedDuration::ZERO, &proxies).await };
        let refreshing = self.shared.tasks.spawn(refreshing);
        // Closing the plugins cancels it.
        let _ended = refreshing.await;
        Ok(self.sources())
    }

    /// Refreshes sources whose last attempt is older than [`ON_DEMAND_AGE`], waiting at most [`MAX_WAIT_FOR_NEWS`].
    pub(super) async fn refresh_if_old(&self) {
        let (shared, proxies) = (Arc::clone(&self.shared), self.proxies.clone());
        let all = self.shared.market.catalogue().known.keys().cloned().collect();
        let refreshing = async move { shared.refresh(all, ON_DEMAND_AGE, &proxies).await };
        let refreshing = self.shared.tasks.spawn(refreshing);
        let _too_slow = tokio::time::timeout(MAX_WAIT_FOR_NEWS, refreshing).await;
    }
}

impl Plugins {
    /// Keeps sources up to date, and plugins if `settings` allow it, until `settings` returns `None` or plugins are
    /// closed.
    pub fn keep_current(&self, settings: impl Fn() -> Option<Settings> + Send + Sync + 'static) {
        let shared = Arc::clone(&self.0);
        self.0.spawn(async move {
            let mut pause = FIRST_REFRESH;
            loop {
                tokio::time::sleep(pause).await;
                let Some(settings) = settings() else { return };
                pause = shared.poll_sources(&settings).await;
            }
        });
    }
}

impl Shared {
    /// Refreshes what is due and installs updates; returns the pause until the next check.
    pub(crate) async fn poll_sources(self: &Arc<Self>, settings: &Settings) -> Duration {
        let due = self.market.catalogue().due(self.market.clock.now());
        self.refresh(due, SignedDuration::ZERO, &settings.proxies).await;
        if settings.updates_itself {
            self.update_all(&settings.proxies).await;
        }
        let next = self.market.catalogue().next_due();
        let until = next.map(|next| self.market.clock.now().duration_until(next));
        let until = until
            .and_then(|until| Duration::try_from(until).ok())
            .unwrap_or_default();
        if next.is_some() {
            until.clamp(FIRST_REFRESH, MAX_POLL_INTERVAL)
        } else {
            MAX_POLL_INTERVAL
        }
    }

    async fn refresh(&self, sources: Vec<SourceId>, if_older: SignedDuration, proxies: &Proxies) {
        let refreshes = sources.into_iter().map(|id| self.refresh_one(id, if_older, proxies));
        stream::iter(refreshes)
            .buffer_unordered(CONCURRENT_REFRESHES)
            .collect::<()>()
            .await;
    }

    /// Refreshes a source, unless its last attempt was within `if_older`.
    async fn refresh_one(&self, id: SourceId, if_older: SignedDuration, proxies: &Proxies) {
        let known = || self.market.catalogue().known.get(&id).cloned();
        let Some(turn) = known().map(|known| Arc::clone(&known.turn)) else {
            return;
        };
        let _turn = turn.lock().await;
        let Some(known) = known() else { return };
        let now = self.market.clock.now();
        if known.was_asked_within(if_older, now) {
            return;
        }
        let fetching = self.market.fetch(&known.state, &known.url, proxies, now);
        let Some(fetched) = self.stop.run_until_cancelled(fetching).await else {
            return;
        };
        if let Err(trouble) = &fetched {
            tracing::warn!(source = %id, %trouble, "a source of plugins gave no news");
        }
        if let Err(error) = self.save_refresh(&id, fetched, now).await {
            tracing::warn!(source = %id, %error, "what a source of plugins said could not be saved");
        }
    }

    /// Saves the result of a refresh in one transaction and stops plugins that are revoked now.
    async fn save_refresh(
        &self,
        id: &SourceId,
        fetched: Result<Refreshed, Trouble>,
        now: Timestamp,
    ) -> Result<(), MarketError> {
        let _writing = self.market.writing.lock().await;
        let Some(known) = self.market.catalogue().known.get(id).cloned() else {
            return Ok(());
        };
        let (next, authors) = match fetched {
            Ok(mut refreshed) => {
                let authors = std::mem::take(&mut refreshed.changes.authors);
                (known.with_news(refreshed, now), authors)
            }
            Err(trouble) => (known.with_trouble(trouble, now), Vec::new()),
        };
        let (before, row) = (known.state.to_stored(), Row::new(id, &next));
        let after = next.state.to_stored();
        let has_same_files = before.index == after.index && before.revocations == after.revocations;
        self.pass(Step::Refresh)?;
        self.store
            .write(move |transaction| {
                if has_same_files {
                    row.save_head(transaction)
                } else {
                    row.save(transaction)
                }
            })
            .await?;
        self.market.put(id, Some(next));
        self.apply_revocations();
        self.record_author_changes(id, authors);
        Ok(())
    }

    /// Stops revoked plugins and records warnings in the journal. The caller holds `MarketState::writing`.
    pub(super) fn apply_revocations(&self) {
        for (plugin, revocation) in self.registry.revoke(self.market.revocations()) {
            let event = Event::Revoked {
                level: revocation.level.name(),
                reason: revocation.reason.clone(),
            };
            self.journal.record(&plugin, event);
        }
    }

    fn record_author_changes(&self, id: &SourceId, changes: Vec<AuthorChange>) {
        let source = Source::Market(id.clone());
        for change in changes {
            let loaded = self.registry.get(&change.identity);
            if loaded.is_some_and(|loaded| loaded.installation.source == source) {
                let event = Event::AuthorChanged {
                    to: change.to.fingerprint(),
                    reason: match change.by {
                        Consent::Author => None,
                        Consent::Root(reason) => Some(reason),
                    },
                };
                self.journal.record(&change.identity, event);
            }
        }
    }
}

impl MarketState {
    /// Fetches a source's state, verified against the previous one.
    pub(super) async fn fetch(
        &self,
        state: &SourceState,
        url: &Url,
        proxies: &Proxies,
        now: Timestamp,
    ) -> Result<Refreshed, Trouble> {
        let unreachable = |message: String| Trouble::new(TroubleKind::Unreachable, message);
        let origin = self.config.origins.at(url, proxies);
        let origin = origin.map_err(|error| unreachable(chain(&error)))?;
        let origins = [&*origin];
        let asked = Asked {
            state,
            origins: &origins,
        };
        let fetched = tokio::time::timeout(REFRESH_TIME, fetch::refresh(asked, now)).await;
        let fetched = fetched.map_err(|_| unreachable(format!("it took longer than {} s", REFRESH_TIME.as_secs())))?;
        Ok(fetched?)
    }

    pub(super) fn source_named(&self, name: &str) -> Result<SourceId, MarketError> {
        let unknown = || MarketError::UnknownSource(name.to_owned());
        let id: SourceId = name.parse().map_err(|_| unknown())?;
        let is_known = self.catalogue().known.contains_key(&id);
        is_known.then_some(id).ok_or_else(unknown)
    }
}
