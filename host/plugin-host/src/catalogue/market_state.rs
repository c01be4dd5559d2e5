//! The market's part of the shared state: the known sources, and how they are reached.

use std::{collections::BTreeMap, fmt, sync::Arc};

use engine::Proxies;
use jiff::Timestamp;
use market::{Origin, OriginError, Revocations, SourceId, VerifiedPackage};
use tokio::sync::{Mutex, OnceCell, Semaphore, watch};
use url::Url;

use super::{
    bundled::{Bundled, BundledPlugin},
    known::{Catalogue, KnownSource},
};
use crate::{error::CommandError, lifecycle::Installation, package::disk::blocking};

/// Concurrent downloads: each package is held in memory.
const DOWNLOADS: usize = 2;

/// Configuration of the market.
#[derive(Debug, Clone)]
pub struct Config {
    pub origins: Arc<dyn Origins>,
    /// The plugins that came with the service. Trusted like the executable that contains them.
    pub bundled: &'static [Bundled],
}

/// Opens connections to sources.
pub trait Origins: fmt::Debug + Send + Sync {
    /// The files of the source at `url`, reached through `proxies`.
    fn at(&self, url: &Url, proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError>;
}

#[derive(Debug)]
struct Nowhere;

impl Origins for Nowhere {
    fn at(&self, _url: &Url, _proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        Err(OriginError::Failed("this service uses no sources".to_owned()))
    }
}

impl Default for Config {
    /// No bundled plugins and no network.
    fn default() -> Self {
        Self {
            origins: Arc::new(Nowhere),
            bundled: &[],
        }
    }
}

/// The clock; tests replace it.
#[derive(Clone)]
pub(crate) struct Clock(pub(crate) Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(Timestamp::now))
    }
}

pub(crate) struct MarketState {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// The bundled packages, opened on first use.
    pub(crate) bundled: OnceCell<Arc<[BundledPlugin]>>,
    /// Held while rows of sources are written or must not change: a source's row and the installations from it change
    /// in one transaction.
    pub(crate) writing: Mutex<()>,
    pub(crate) downloads: Semaphore,
}

impl MarketState {
    pub(crate) fn new(config: Config, clock: Clock, catalogue: Catalogue) -> Self {
        Self {
            config,
            clock,
            catalogue: watch::Sender::new(Arc::new(catalogue)),
            bundled: OnceCell::new(),
            writing: Mutex::default(),
            downloads: Semaphore::new(DOWNLOADS),
        }
    }

    pub(crate) fn catalogue(&self) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.borrow())
    }

    /// Replaces the saved state of a source, or removes the source. The caller holds `writing`.
    pub(crate) fn put(&self, id: &SourceId, known: Option<KnownSource>) {
        self.catalogue.send_modify(|catalogue| {
            let catalogue = Arc::make_mut(catalogue);
            match known {
                Some(known) => drop(catalogue.known.insert(id.clone(), Arc::new(known))),
                None => drop(catalogue.known.remove(id)),
            }
        });
    }

    pub(crate) async fn bundled(&self) -> Result<Arc<[BundledPlugin]>, CommandError> {
        let packages = self.config.bundled;
        let open = || blocking(move || packages.iter().map(BundledPlugin::open).collect());
        self.bundled.get_or_try_init(open).await.map(Arc::clone)
    }

    /// The pins of sources once the installation of `plugin` is `next` (from `package` if just installed). The caller
    /// holds `writing`, saves the result together with `next`, and then calls [`MarketState::keep`].
    pub(crate) fn pinning(
        &self,
        plugin: &market::Identity,
        next: Option<&Installation>,
        package: Option<&VerifiedPackage>,
    ) -> Result<Vec<(SourceId, KnownSource)>, CommandError> {
        let catalogue = self.catalogue();
        // A staged version is pinned at its source already, and the running one still is at its own.
        let source = next.and_then(|next| next.source_of_staged().market());
        let running = next.and_then(|next| next.source.market());
        if let (Some(source), Some(_)) = (source, package)
            && !catalogue.known.contains_key(source)
        {
            return Err(CommandError::SourceGone(source.clone()));
        }
        let mut changed = Vec::new();
        for (id, known) in &catalogue.known {
            let mut known = KnownSource::clone(known);
            match package {
                Some(package) if source == Some(id) => known.state.pin(package),
                _ if source != Some(id) && running != Some(id) && known.state.pinned(plugin).is_some() => {
                    known.state.unpin(plugin);
                }
                _ => continue,
            }
            changed.push((id.clone(), known));
        }
        Ok(changed)
    }

    pub(crate) fn keep(&self, changed: Vec<(SourceId, KnownSource)>) {
        for (id, known) in changed {
            self.put(&id, Some(known));
        }
    }

    /// The revocations of all sources.
    pub(crate) fn revocations(&self) -> BTreeMap<SourceId, Arc<Revocations>> {
        self.catalogue().revocations()
    }
}
