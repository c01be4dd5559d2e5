//! Records about the market for clients.

use std::cmp::Reverse;

use jiff::Timestamp;
use market::{
    Digest, Freshness, Identity, Plugin, PublicKey, Revocation, SourceId,
    choice::{self, Host, Update},
};
use plugin_package::manifest::Asked;
use semver::Version;

use super::{
    bundled::BundledPlugin,
    error::Trouble,
    known::{KnownSource, OpenCatalogue, Opened},
};
use crate::{
    lifecycle::{Installation, Source},
    policy::grant::Permissions,
};

/// A plugin that a source offers: the newest version that can be installed, else the newest that there is.
#[derive(Debug, Clone)]
pub struct Offer {
    pub identity: Identity,
    pub source: Source,
    pub name: String,
    pub description: String,
    pub author: String,
    pub homepage: Option<String>,
    pub tags: Vec<String>,
    pub version: Version,
    /// Sequence number at the source.
    pub seq: u64,
    /// Its package.
    pub digest: Digest,
    /// Paths or URLs of the package.
    pub mirrors: Vec<String>,
    pub min_host: Option<Version>,
    pub permissions: Permissions,
    /// When it was published; `None` if bundled.
    pub published: Option<Timestamp>,
    /// The author's key; `None` if bundled.
    pub signed_by: Option<PublicKey>,
    /// Why it cannot be installed.
    pub unfit: Option<String>,
    /// The running version, else the one waiting for consent, and whether it is pinned.
    pub installed: Option<(Version, bool)>,
    /// Whether this version would replace that one, perhaps once the user agrees to it.
    pub is_update: bool,
    /// When that happens automatically.
    pub updates_at: Option<Timestamp>,
    /// Whether the source's state has expired, so that newer versions may be withheld from us.
    pub is_stale: bool,
    /// The revocation of the installed version, else of this one.
    pub revocation: Option<Revocation>,
}

/// A source.
#[derive(Debug, Clone)]
pub struct SourceSummary {
    pub source: Source,
    pub name: String,
    /// Its URL and the key with which it was added; `None` if bundled.
    pub place: Option<(url::Url, PublicKey)>,
    /// Whether its state is valid, so that plugins can be installed from it.
    pub is_fresh: bool,
    pub plugins: usize,
    /// Timestamps; `None` if bundled.
    pub times: Option<Times>,
    /// Why the last refresh failed.
    pub trouble: Option<Trouble>,
}

/// Timestamps of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub added: Timestamp,
    /// When it was last refreshed and verified.
    pub refreshed: Timestamp,
    pub until: Timestamp,
}

impl SourceSummary {
    pub(crate) fn bundled(plugins: usize) -> Self {
        Self {
            source: Source::Bundled,
            name: "Svc".to_owned(),
            place: None,
            is_fresh: true,
            plugins,
            times: None,
            trouble: None,
        }
    }

    pub(crate) fn of(id: &SourceId, known: &KnownSource, now: Timestamp) -> Self {
        let until = match known.state.freshness(now) {
            Freshness::Fresh(until) | Freshness::Stale(until) => until,
            Freshness::Unknown => known.refreshed,
        };
        Self {
            source: Source::Market(id.clone()),
            name: known.name.clone(),
            place: Some((known.url.clone(), known.key)),
            is_fresh: known.is_fresh(now),
            plugins: known.plugins,
            times: Some(Times {
                added: known.added,
                refreshed: known.refreshed,
                until,
            }),
            trouble: known.trouble.clone(),
        }
    }
}

/// The version that runs, or that waits for consent if none does.
fn version(installed: &Installation) -> Option<&Version> {
    installed.current().map(|release| &release.version)
}

impl OpenCatalogue {
    /// All offers. For an installed plugin, only those of its own source.
    pub(crate) fn offers<'i>(
        &self,
        installed: impl Fn(&Identity) -> Option<&'i Installation>,
        host: &Host,
        now: Timestamp,
    ) -> Vec<Offer> {
        let concerns = |source: &Source, identity: &Identity| {
            installed(identity).is_none_or(|installed| match &installed.source {
                bound @ (Source::Bundled | Source::Market(_)) => bound == source,
                Source::File | Source::Development(_) => true,
            })
        };
        let bundled = self
            .bundled
            .iter()
            .filter(|bundled| concerns(&Source::Bundled, bundled.identity()))
            .map(|bundled| bundled.offer(installed(bundled.identity())));
        let listed = self.sources.iter().flat_map(|source| {
            let origin = Source::Market(source.id.clone());
            let plugins = source.index.plugins();
            let concerning = plugins.filter(move |(identity, _)| concerns(&origin, identity));
            concerning.filter_map(|(identity, plugin)| source.offer(identity, plugin, installed(identity), host, now))
        });
        bundled.chain(listed).collect()
    }
}

impl BundledPlugin {
    fn offer(&self, installed: Option<&Installation>) -> Offer {
        let (manifest, version) = (&self.manifest, installed.and_then(version));
        Offer {
            identity: manifest.identity.clone(),
            source: Source::Bundled,
            name: manifest.name.clone(),
            description: manifest.description.clone(),
            author: manifest
                .author
                .as_ref()
                .map(|author| author.name.clone())
                .unwrap_or_default(),
            homepage: manifest.homepage.clone(),
            tags: Vec::new(),
            version: manifest.version.clone(),
            seq: 0,
            digest: self.digest,
            mirrors: Vec::new(),
            min_host: manifest.min_host.clone(),
            permissions: Permissions::asked(&manifest.permissions),
            published: None,
            signed_by: None,
            unfit: None,
            is_update: version.is_some_and(|version| version < &manifest.version),
            installed: version.cloned().zip(installed.map(|installed| installed.is_pinned)),
            updates_at: None,
            is_stale: false,
            revocation: None,
        }
    }
}

impl Opened {
    fn offer(
        &self,
        identity: &Identity,
        plugin: &Plugin,
        installed: Option<&Installation>,
        host: &Host,
        now: Timestamp,
    ) -> Option<Offer> {
        let revocations = &self.known.revocations;
        let (entry, unfit) = match choice::newest(identity, plugin, revocations, host) {
            Ok(entry) => (entry, None),
            Err(unfit) => {
                let mut entries: Vec<_> = plugin.versions.iter().collect();
                entries.sort_by_key(|entry| Reverse(&entry.version));
                (*entries.first()?, Some(unfit.to_string()))
            }
        };
        let own = installed.filter(|installed| installed.source == Source::Market(self.id.clone()));
        let active = own.and_then(Installation::current);
        let revocation = match active {
            Some(active) => revocations.of(identity, &active.version, &active.digest),
            None => revocations.of(identity, &entry.version, &entry.sha256),
        };
        let update = own.map(|own| self.update(identity, own, host, now));
        let version = installed.and_then(version);
        let is_pinned = installed.is_some_and(|installed| installed.is_pinned);
        // Unknown permissions in the index must not hide the offer.
        let asked = Asked::parse(entry.permissions.get()).unwrap_or_default();
        Some(Offer {
            identity: identity.clone(),
            source: Source::Market(self.id.clone()),
            name: plugin.name.clone(),
            description: plugin.description.clone(),
            author: plugin.author.name.clone(),
            homepage: plugin.homepage.clone(),
            tags: plugin.tags.clone(),
            version: entry.version.clone(),
            seq: entry.seq,
            digest: entry.sha256,
            mirrors: entry.mirrors.clone(),
            min_host: entry.min_host.clone(),
            permissions: Permissions::asked(&asked),
            published: Some(entry.published),
            signed_by: Some(plugin.author.key),
            is_update: unfit.is_none() && version.is_some_and(|version| *version < entry.version),
            unfit,
            installed: version.map(|version| (version.clone(), is_pinned)),
            updates_at: match update {
                Some(Update::At(due, _)) if !is_pinned => Some(due),
                Some(Update::Now(_)) if !is_pinned => Some(now),
                _ => None,
            },
            is_stale: !self.known.is_fresh(now),
            revocation: revocation.cloned(),
        })
    }
}
