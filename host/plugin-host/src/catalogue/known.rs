//! The state of all sources as a value, and the decisions based on it: what to install for a user's request, which
//! updates to install, which sources to refresh. Pure: no clock, no disk, no network.

use std::{collections::BTreeMap, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use market::{
    Entry, Freshness, Identity, Index, Plugin, PublicKey, Refreshed, Revocations, SourceId, SourceState,
    choice::{self, Host, NoSource, Update},
};
use semver::Version;
use tokio::sync::Mutex;
use url::Url;

use super::{
    bundled::BundledPlugin,
    error::{MarketError, Trouble},
};
use crate::{
    error::Refusal,
    lifecycle::{Installation, Source},
};

/// Interval of automatic refreshes: an index is valid for days, but revocations should arrive sooner.
const INTERVAL: SignedDuration = SignedDuration::from_hours(6);

/// Interval after a failure.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_mins(30);

/// Random spread, so that not all installations refresh at the same moment.
const SPREAD_SECONDS: u64 = 3600;

/// Limits memory: the state of every source is held in memory.
pub(crate) const MAX_SOURCES: usize = 16;

/// The state of a source.
#[derive(Debug, Clone)]
pub(crate) struct KnownSource {
    pub(crate) url: Url,
    /// The root key with which the user added it.
    pub(crate) key: PublicKey,
    pub(crate) name: String,
    pub(crate) added: Timestamp,
    /// When it was last refreshed successfully.
    pub(crate) refreshed: Timestamp,
    /// When a refresh was last attempted.
    pub(crate) attempted: Timestamp,
    /// The number of its plugins; stored, because the long index is parsed only on demand.
    pub(crate) plugins: usize,
    /// Why the last refresh failed.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) state: SourceState,
    pub(crate) revocations: Arc<Revocations>,
    /// Serializes refreshes.
    pub(crate) turn: Arc<Mutex<()>>,
}

impl KnownSource {
    /// A source after its first successful refresh.
    pub(crate) fn first(url: Url, key: PublicKey, refreshed: Refreshed, now: Timestamp) -> Self {
        Self {
            url,
            key,
            name: name(&refreshed.state),
            added: now,
            refreshed: now,
            attempted: now,
            plugins: refreshed.index.plugins().len(),
            trouble: None,
            state: refreshed.state,
            revocations: Arc::new(refreshed.revocations),
            turn: Arc::default(),
        }
    }

    /// The state after a successful refresh. Pins of installations during the refresh are kept.
    pub(crate) fn with_news(&self, refreshed: Refreshed, now: Timestamp) -> Self {
        Self {
            name: name(&refreshed.state),
            refreshed: now,
            attempted: now,
            plugins: refreshed.index.plugins().len(),
            trouble: None,
            state: refreshed.state.with_pins_of(&self.state, &refreshed.index, now),
            revocations: Arc::new(refreshed.revocations),
            ..self.clone()
        }
    }

    /// The state after a failed refresh.
    pub(crate) fn with_trouble(&self, trouble: Trouble, now: Timestamp) -> Self {
        Self {
            attempted: now,
            trouble: Some(trouble),
            ..self.clone()
        }
    }

    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        matches!(self.state.freshness(now), Freshness::Fresh(_))
    }

    /// When its next automatic refresh is due.
    fn due(&self) -> Timestamp {
        let seconds = self.added.as_millisecond().unsigned_abs() % SPREAD_SECONDS;
        let spread = SignedDuration::from_secs(seconds.cast_signed());
        let pause = if self.trouble.is_some() {
            AFTER_FAILURE
        } else {
            INTERVAL + spread
        };
        // Beyond the representable time, never.
        self.attempted.checked_add(pause).unwrap_or(Timestamp::MAX)
    }

    /// Whether a refresh was attempted within `age`. False if the clock was set back.
    pub(crate) fn was_asked_within(&self, age: SignedDuration, now: Timestamp) -> bool {
        self.attempted <= now && self.attempted.duration_until(now) < age
    }
}

fn name(state: &SourceState) -> String {
    state.root().map(|root| root.name().to_owned()).unwrap_or_default()
}

/// All known sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    pub(crate) known: BTreeMap<SourceId, Arc<KnownSource>>,
}

impl Catalogue {
    pub(crate) fn revocations(&self) -> BTreeMap<SourceId, Arc<Revocations>> {
        let all = self.known.iter();
        all.map(|(id, known)| (id.clone(), Arc::clone(&known.revocations)))
            .collect()
    }

    /// The sources that are due for a refresh.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<SourceId> {
        let is_due = |known: &KnownSource| known.due() <= now || known.attempted > now;
        let due = self.known.iter().filter(|(_, known)| is_due(known));
        due.map(|(id, _)| id.clone()).collect()
    }

    /// When the next source is due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.known.values().map(|known| known.due()).min()
    }

    /// Parses the index of every source.
    pub(crate) fn open(&self, bundled: Arc<[BundledPlugin]>) -> OpenCatalogue {
        let sources = self.known.iter().map(|(id, known)| Opened {
            id: id.clone(),
            known: Arc::clone(known),
            // A damaged index offers nothing; the next refresh, which is due, replaces it.
            index: known.state.index().ok().flatten().unwrap_or_default(),
        });
        OpenCatalogue {
            sources: sources.collect(),
            bundled,
        }
    }
}

/// All sources with their parsed indexes.
pub(crate) struct OpenCatalogue {
    pub(crate) bundled: Arc<[BundledPlugin]>,
    pub(crate) sources: Vec<Opened>,
}

/// A source with its parsed index.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) id: SourceId,
    pub(crate) known: Arc<KnownSource>,
    pub(crate) index: Index,
}

/// A user's request to install a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InstallRequest {
    pub(crate) plugin: Identity,
    /// The version that the user was shown.
    pub(crate) version: Option<Version>,
    pub(crate) source: Option<String>,
}

/// The version to install.
#[derive(Debug)]
pub(crate) enum Choice<'s> {
    Bundled(&'s BundledPlugin),
    Listed(&'s Opened, &'s Plugin, &'s Entry),
}

impl Choice<'_> {
    fn version(&self) -> &Version {
        match self {
            Self::Bundled(plugin) => plugin.version(),
            Self::Listed(_, _, entry) => &entry.version,
        }
    }
}

impl OpenCatalogue {
    /// Decides what to install for a request. A downgrade requires that the request names the version.
    pub(crate) fn choose(
        &self,
        request: &InstallRequest,
        installed: Option<&Installation>,
        host: &Host,
        now: Timestamp,
    ) -> Result<Choice<'_>, MarketError> {
        let choice = match self.source(request, installed)? {
            Source::Market(id) => self.listed(&id, &request.plugin, host, now)?,
            _ => Choice::Bundled(
                self.bundled(&request.plugin)
                    .ok_or_else(|| not_in_market(&request.plugin))?,
            ),
        };
        let newest = choice.version();
        if let Some(asked) = request.version.as_ref().filter(|asked| *asked != newest) {
            return Err(MarketError::VersionChanged {
                asked: asked.clone(),
                newest: newest.clone(),
            });
        }
        let goes_back = match &choice {
            Choice::Bundled(_) => installed
                .filter(|installed| installed.source == Source::Bundled)
                .and_then(newest_installed)
                .is_some_and(|installed| installed > newest),
            Choice::Listed(source, _, entry) => {
                let pin = source.known.state.pinned(&request.plugin);
                pin.is_some_and(|pin| pin.seq > entry.seq)
            }
        };
        if goes_back && request.version.is_none() {
            return Err(MarketError::Older {
                offered: newest.clone(),
            });
        }
        Ok(choice)
    }

    /// The source of the plugin: that of the installed one, else the one that the user names. A source never takes over
    /// a plugin of another one.
    fn source(&self, request: &InstallRequest, installed: Option<&Installation>) -> Result<Source, MarketError> {
        let bound = installed.and_then(|installed| match &installed.source {
            source @ (Source::Bundled | Source::Market(_)) => Some(source),
            Source::File | Source::Development(_) => None,
        });
        let named = request.source.as_deref().map(|name| self.named(name)).transpose()?;
        match (bound, named) {
            (Some(bound), Some(named)) if *bound != named => {
                Err(MarketError::Plugin(Refusal::OtherSource(bound.name()).into()))
            }
            (Some(bound), _) => Ok(bound.clone()),
            (None, Some(named)) => Ok(named),
            (None, None) if self.bundled(&request.plugin).is_some() => Ok(Source::Bundled),
            (None, None) => {
                let sources = self.sources.iter().map(|source| (&source.id, &source.index));
                match choice::source_of(&request.plugin, sources, None) {
                    Ok(id) => Ok(Source::Market(id.clone())),
                    Err(NoSource::Ambiguous(plugin, sources)) => Err(MarketError::Ambiguous {
                        plugin,
                        sources: sources.iter().map(ToString::to_string).collect(),
                    }),
                    Err(NoSource::Unknown(plugin) | NoSource::Bound(plugin, _)) => {
                        Err(MarketError::NotInMarket(plugin))
                    }
                }
            }
        }
    }

    fn named(&self, name: &str) -> Result<Source, MarketError> {
        if name == Source::BUNDLED {
            return Ok(Source::Bundled);
        }
        let source = self.sources.iter().find(|source| source.id.to_string() == name);
        let source = source.ok_or_else(|| MarketError::UnknownSource(name.to_owned()))?;
        Ok(Source::Market(source.id.clone()))
    }

    fn bundled(&self, plugin: &Identity) -> Option<&BundledPlugin> {
        self.bundled.iter().find(|bundled| bundled.identity() == plugin)
    }

    fn opened(&self, id: &SourceId) -> Option<&Opened> {
        self.sources.iter().find(|source| source.id == *id)
    }

    fn listed(&self, id: &SourceId, plugin: &Identity, host: &Host, now: Timestamp) -> Result<Choice<'_>, MarketError> {
        let source = self
            .opened(id)
            .ok_or_else(|| MarketError::UnknownSource(id.to_string()))?;
        if !source.known.is_fresh(now) {
            return Err(MarketError::Stale {
                id: id.clone(),
                trouble: source.known.trouble.clone(),
            });
        }
        let listed = source.index.plugin(plugin).ok_or_else(|| not_in_market(plugin))?;
        let entry = choice::newest(plugin, listed, &source.known.revocations, host)?;
        Ok(Choice::Listed(source, listed, entry))
    }

    /// The version that may replace the installed one automatically now.
    pub(crate) fn update(
        &self,
        plugin: &Identity,
        installed: &Installation,
        host: &Host,
        now: Timestamp,
    ) -> Option<Choice<'_>> {
        if installed.is_pinned {
            return None;
        }
        match &installed.source {
            Source::Bundled => {
                let bundled = self.bundled(plugin)?;
                let is_newer = newest_installed(installed).is_some_and(|installed| installed < bundled.version());
                is_newer.then_some(Choice::Bundled(bundled))
            }
            Source::Market(id) => {
                let source = self.opened(id)?;
                match source.update(plugin, installed, host, now) {
                    Update::Now(entry) => Some(Choice::Listed(source, source.index.plugin(plugin)?, entry)),
                    Update::None | Update::At(..) | Update::Stale => None,
                }
            }
            Source::File | Source::Development(_) => None,
        }
    }
}

impl Opened {
    /// The update for the installed version of a plugin from this source.
    pub(crate) fn update(
        &self,
        plugin: &Identity,
        installed: &Installation,
        host: &Host,
        now: Timestamp,
    ) -> Update<'_> {
        let Some(release) = installed.current() else {
            return Update::None;
        };
        let installed = choice::Installed {
            identity: plugin.clone(),
            version: release.version.clone(),
            sha256: release.digest,
        };
        choice::update(
            &self.known.state,
            &self.index,
            &self.known.revocations,
            &installed,
            host,
            now,
        )
    }
}

/// The newest installed version, including one that waits for consent.
pub(crate) fn newest_installed(installed: &Installation) -> Option<&Version> {
    let releases = [&installed.active, &installed.staged];
    releases.into_iter().flatten().map(|release| &release.version).max()
}

fn not_in_market(plugin: &Identity) -> MarketError {
    MarketError::NotInMarket(plugin.clone())
}
