//! Getting packages: what the user wants, and what comes by itself. Nothing is parsed before it is what the source's list
//! promises and what the author signed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use engine::Proxies;
use market::{Digest, Identity, VerifiedPackage, choice::Host, fetch};
use semver::Version;

use super::{
    BundledPlugin, Market, MarketError, Offer, SourceSummary,
    catalogue::{Choice, Opened, Shelf, Wish},
};
use crate::{
    author,
    error::CommandError,
    journal::Event,
    lifecycle::{Installation, Source},
    load,
    plugins::{self, Installed, Shared},
    registry::{Running, Snapshot},
    runtime::Interface,
};
use plugin_package::Manifest;

/// How long a package may take from all of its mirrors: the largest at 14 KB a second.
const DOWNLOAD_TIME: Duration = Duration::from_mins(5);

/// An archive to install, and what is promised about it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) archive: Bytes,
    pub(crate) source: Source,
    pub(crate) expected: Expected,
    pub(crate) wanted_by: WantedBy,
}

/// Why something is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WantedBy {
    /// The user wants it.
    User,
    /// It is newer than what is installed.
    Nobody,
}

/// What an archive must be.
#[derive(Debug)]
pub(crate) enum Expected {
    /// Whatever it says.
    Anything,
    /// This plugin.
    Plugin(Identity),
    /// What a source's list says.
    Listed(Box<Listed>),
}

/// What a source's list says of a package, besides its bytes, which are checked.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) package: VerifiedPackage,
    permissions: serde_json::Value,
    imports: Option<Digest>,
}

impl Delivery {
    fn bundled(plugin: &BundledPlugin) -> Self {
        Self {
            archive: plugin.zip.clone(),
            source: Source::Bundled,
            expected: Expected::Plugin(plugin.identity().clone()),
            wanted_by: WantedBy::User,
        }
    }
}

impl Expected {
    /// The package, if a source answers for it.
    pub(crate) fn package(&self) -> Option<&VerifiedPackage> {
        match self {
            Self::Listed(listed) => Some(&listed.package),
            Self::Anything | Self::Plugin(_) => None,
        }
    }

    /// Whether the manifest is that of what was asked for. A list that says something else than the package is no mistake:
    /// users decide by the list.
    pub(crate) fn check_manifest(&self, manifest: &Manifest, text: &[u8]) -> Result<(), CommandError> {
        let plugin = match self {
            Self::Anything => return Ok(()),
            Self::Plugin(plugin) => plugin,
            Self::Listed(listed) => listed.package.identity(),
        };
        if *plugin != manifest.identity {
            return Err(CommandError::OtherPlugin {
                asked: plugin.clone(),
                found: manifest.identity.clone(),
            });
        }
        let Self::Listed(listed) = self else { return Ok(()) };
        if *listed.package.version() != manifest.version {
            return Err(CommandError::NotAsListed("version"));
        }
        let manifest: serde_json::Value = serde_json::from_slice(text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text))
            .map_err(|_| CommandError::NotAsListed("manifest"))?;
        let nothing = serde_json::json!({});
        if *manifest.get("permissions").unwrap_or(&nothing) != listed.permissions {
            return Err(CommandError::NotAsListed("permissions"));
        }
        Ok(())
    }

    /// Whether the code imports what was listed.
    pub(crate) fn check_code(&self, running: &Running) -> Result<(), CommandError> {
        let listed = match self {
            Self::Listed(listed) => listed.imports,
            Self::Anything | Self::Plugin(_) => None,
        };
        let is_as_listed = listed.is_none_or(|listed| imports_digest(running.guest.interface()) == listed);
        is_as_listed.then_some(()).ok_or(CommandError::NotAsListed("imports"))
    }
}

/// Names the functions that code imports, as lists of sources do.
pub fn imports_digest(interface: &Interface) -> Digest {
    let mut imports = interface.imports.clone();
    imports.sort_unstable();
    imports.dedup();
    Digest::of(imports.join("\n").as_bytes())
}

/// What this host runs.
fn host() -> Host {
    Host {
        version: plugins::host_version(),
        abis: author::ABI.parse().into_iter().collect(),
    }
}

fn installation<'s>(snapshot: &'s Snapshot, plugin: &Identity) -> Option<&'s Installation> {
    snapshot.plugins.get(plugin).map(|loaded| &loaded.installation)
}

impl Market {
    /// Everything that is offered, the bundled plugins first.
    pub async fn list(&self) -> Result<Vec<Offer>, MarketError> {
        self.see_to_news().await;
        let (shelf, now) = (self.shared.shelf().await?, self.shared.market.clock.now());
        let snapshot = self.shared.registry.snapshot();
        let offers = shelf.offers(|plugin| installation(&snapshot, plugin), &host(), now);
        let trouble = || {
            let catalogue = self.shared.market.catalogue();
            catalogue.known.values().find_map(|known| known.trouble.clone())
        };
        match offers.is_empty().then(trouble).flatten() {
            Some(trouble) => Err(trouble.into()),
            None => Ok(offers),
        }
    }

    /// The sources, the bundled one first.
    pub fn sources(&self) -> Vec<SourceSummary> {
        let (catalogue, now) = (self.shared.market.catalogue(), self.shared.market.clock.now());
        let bundled = SourceSummary::bundled(self.shared.market.config.bundled.len());
        let others = catalogue.known.iter();
        let others = others.map(|(id, known)| SourceSummary::of(id, known, now));
        [bundled].into_iter().chain(others).collect()
    }

    /// Installs the newest version of a plugin, or replaces an older one by it. `version` is the one that the user was
    /// shown, `source` the one that the user chose.
    pub async fn install(
        &self,
        plugin: Identity,
        version: Option<Version>,
        source: Option<String>,
    ) -> Result<Installed, MarketError> {
        let wish = Wish {
            plugin,
            version,
            source,
        };
        self.see_to_news().await;
        let (shared, proxies) = (Arc::clone(&self.shared), self.proxies.clone());
        let installing = self.shared.tasks.spawn(async move {
            let delivery = shared.fetch_wish(&wish, &proxies).await?;
            Ok(shared.install(delivery).await?)
        });
        installing.await.map_err(|_| CommandError::Closed)?
    }
}

impl Shared {
    async fn shelf(&self) -> Result<Shelf, CommandError> {
        let bundled = self.market.bundled().await?;
        let catalogue = self.market.catalogue();
        // Reading the largest list takes a tenth of a second.
        load::blocking(move || Ok(catalogue.open(bundled))).await
    }

    async fn fetch_wish(&self, wish: &Wish, proxies: &Proxies) -> Result<Delivery, MarketError> {
        let (shelf, now) = (self.shelf().await?, self.market.clock.now());
        let snapshot = self.registry.snapshot();
        let choice = shelf.choose(wish, installation(&snapshot, &wish.plugin), &host(), now)?;
        self.deliver(&wish.plugin, choice, proxies).await
    }

    async fn deliver(&self, plugin: &Identity, choice: Choice<'_>, proxies: &Proxies) -> Result<Delivery, MarketError> {
        let (source, listed, entry) = match choice {
            Choice::Bundled(bundled) => return Ok(Delivery::bundled(bundled)),
            Choice::Listed(source, listed, entry) => (source, listed, entry),
        };
        let _room = self
            .market
            .downloads
            .acquire()
            .await
            .map_err(|_| CommandError::Closed)?;
        let origin = self.origin(source, proxies)?;
        let origins = [&*origin];
        let downloading = fetch::download(&origins, plugin, entry, &listed.author.key);
        let downloading = tokio::time::timeout(DOWNLOAD_TIME, downloading);
        let downloaded = self.stop.run_until_cancelled(downloading).await;
        let downloaded = downloaded.ok_or(CommandError::Closed)?;
        let package = downloaded
            .map_err(|_| MarketError::TooSlow(DOWNLOAD_TIME))?
            .map_err(MarketError::Download)?;
        Ok(Delivery {
            archive: package.bytes().clone(),
            source: Source::Market(source.id.clone()),
            expected: Expected::Listed(Box::new(Listed {
                package,
                permissions: serde_json::from_str(entry.permissions.get())
                    .map_err(|_| CommandError::NotAsListed("permissions"))?,
                imports: entry.imports_digest,
            })),
            wanted_by: WantedBy::User,
        })
    }

    fn origin(&self, source: &Opened, proxies: &Proxies) -> Result<Arc<dyn market::Origin>, MarketError> {
        let origin = self.market.config.origins.at(&source.known.url, proxies);
        origin.map_err(|error| MarketError::Download(fetch::DownloadError(vec![(String::new(), error.into())])))
    }

    /// Installs what comes by itself. What asks for more is installed only when the user agrees, as always.
    pub(super) async fn update_all(self: &Arc<Self>, proxies: &Proxies) {
        let snapshot = self.registry.snapshot();
        let is_of_a_source = |installed: &Installation| matches!(installed.source, Source::Bundled | Source::Market(_));
        if !snapshot
            .plugins
            .values()
            .any(|loaded| is_of_a_source(&loaded.installation))
        {
            return;
        }
        let shelf = match self.shelf().await {
            Ok(shelf) => shelf,
            Err(error) => return tracing::warn!(%error, "updates of plugins cannot be looked for"),
        };
        for (plugin, loaded) in &snapshot.plugins {
            let now = self.market.clock.now();
            let Some(choice) = shelf.update(plugin, &loaded.installation, &host(), now) else {
                continue;
            };
            if let Err(error) = self.update(plugin, choice, proxies).await {
                let error = load::chain(&error);
                tracing::warn!(%plugin, error, "a plugin was not updated");
                self.journal.record(plugin, Event::NotUpdated { error });
            }
        }
    }

    async fn update(
        self: &Arc<Self>,
        plugin: &Identity,
        choice: Choice<'_>,
        proxies: &Proxies,
    ) -> Result<(), MarketError> {
        let mut delivery = self.deliver(plugin, choice, proxies).await?;
        delivery.wanted_by = WantedBy::Nobody;
        // From here on nothing stops half way.
        let installing = self.tasks.spawn(Arc::clone(self).install(delivery));
        installing.await.map_err(|_| CommandError::Closed)??;
        Ok(())
    }
}
