//! Installs from sources: on request, and automatic updates. Nothing is parsed before its digest and signature are
//! verified.

use std::{sync::Arc, time::Duration};

use engine::Proxies;
use market::{Identity, choice::Host, fetch};
use semver::Version;

use super::Market;
use crate::{
    catalogue::{
        MarketError, Offer, SourceSummary,
        known::{Choice, InstallRequest, OpenCatalogue, Opened},
    },
    error::{CommandError, chain},
    install::{
        Installed, Shared,
        delivery::{Delivery, Expected, InstallReason, Listed},
    },
    lifecycle::{Installation, Source, registry::Snapshot},
    package::{
        archive::{self},
        disk::blocking,
    },
    runtime::Event,
};

/// For all mirrors together: the largest package at 14 KB/s.
const DOWNLOAD_TIME: Duration = Duration::from_mins(5);

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
    /// All offers, the bundled plugins first. Refreshes sources that were not refreshed recently. An empty list is an
    /// error if the last refresh of a source failed.
    pub async fn list(&self) -> Result<Vec<Offer>, MarketError> {
        self.refresh_if_old().await;
        let (catalogue, now) = (self.shared.open_catalogue().await?, self.shared.market.clock.now());
        let snapshot = self.shared.registry.snapshot();
        let offers = catalogue.offers(|plugin| installation(&snapshot, plugin), &host(), now);
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
        let request = InstallRequest {
            plugin,
            version,
            source,
        };
        self.refresh_if_old().await;
        let (shared, proxies) = (Arc::clone(&self.shared), self.proxies.clone());
        let installing = self.shared.tasks.spawn(async move {
            let delivery = shared.fetch_requested(&request, &proxies).await?;
            Ok(shared.install(delivery).await?)
        });
        installing.await.map_err(|_| CommandError::Closed)?
    }
}

impl Shared {
    async fn open_catalogue(&self) -> Result<OpenCatalogue, CommandError> {
        let bundled = self.market.bundled().await?;
        let catalogue = self.market.catalogue();
        // Parsing the largest index takes a tenth of a second.
        blocking(move || Ok(catalogue.open(bundled))).await
    }

    async fn fetch_requested(&self, request: &InstallRequest, proxies: &Proxies) -> Result<Delivery, MarketError> {
        let (catalogue, now) = (self.open_catalogue().await?, self.market.clock.now());
        let snapshot = self.registry.snapshot();
        let choice = catalogue.choose(request, installation(&snapshot, &request.plugin), &host(), now)?;
        self.deliver(&request.plugin, choice, proxies).await
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
            reason: InstallReason::User,
        })
    }

    fn origin(&self, source: &Opened, proxies: &Proxies) -> Result<Arc<dyn market::Origin>, MarketError> {
        let origin = self.market.config.origins.at(&source.known.url, proxies);
        origin.map_err(|error| MarketError::Download(fetch::DownloadError(vec![(String::new(), error.into())])))
    }

    /// Installs automatic updates. Those that need more permissions are staged until the user consents.
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
        let catalogue = match self.open_catalogue().await {
            Ok(catalogue) => catalogue,
            Err(error) => return tracing::warn!(%error, "cannot check for updates of plugins"),
        };
        for (plugin, loaded) in &snapshot.plugins {
            let now = self.market.clock.now();
            let Some(choice) = catalogue.update(plugin, &loaded.installation, &host(), now) else {
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
        delivery.reason = InstallReason::Update;
        // Spawned, so that a cancelled caller does not interrupt the installation.
        let installing = self.tasks.spawn(Arc::clone(self).install(delivery));
        installing.await.map_err(|_| CommandError::Closed)??;
        Ok(())
    }
}
