//! Getting packages: what the user wants, and what comes by itself. Nothing is parsed before it is what the source's list
//! promises and what the author signed.

use std::{sync::Arc, time::Duration};

use engine::Proxies;
use market::{Identity, choice::Host, fetch};
use semver::Version;

use super::Market;
use crate::{
    catalogue::{
        MarketError, Offer, SourceSummary,
        shelf::{Choice, Opened, Shelf, Wish},
    },
    error::{CommandError, chain},
    install::{
        Installed, Shared,
        delivery::{Delivery, Expected, Listed, WantedBy},
    },
    lifecycle::{Installation, Source, registry::Snapshot},
    package::{
        archive::{self},
        disk::blocking,
    },
    runtime::Event,
};

/// How long a package may take from all of its mirrors: the largest at 14 KB a second.
const DOWNLOAD_TIME: Duration = Duration::from_mins(5);

/// What this host runs.
fn host() -> Host {
    Host {
        version: archive::host_version(),
        abis: archive::ABI.parse().into_iter().collect(),
    }
}

fn installation<'s>(snapshot: &'s Snapshot, plugin: &Identity) -> Option<&'s Installation> {
    snapshot.plugins.get(plugin).map(|loaded| &loaded.installation)
}

impl Market {
    /// Everything that is offered, the bundled plugins first.
    pub async fn list(&self) -> Result<Vec<Offer>, MarketError> {
        self.refresh_if_old().await;
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
        self.refresh_if_old().await;
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
        blocking(move || Ok(catalogue.open(bundled))).await
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
                let error = chain(&error);
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
