//! The market's part of what plugins share: what is known of sources, and how they are reached.

use std::{collections::BTreeMap, fmt, sync::Arc};

use engine::Proxies;
use jiff::Timestamp;
use market::{Origin, OriginError, Revocations, SourceId, VerifiedPackage};
use tokio::sync::{Mutex, OnceCell, Semaphore, watch};
use url::Url;

use super::{
    bundled::{Bundled, BundledPlugin},
    shelf::{Catalogue, Known},
};
use crate::{error::CommandError, lifecycle::Installation, package::disk::blocking};

/// Packages that are on their way at once: each is held in memory.
const DOWNLOADS: usize = 2;

/// What the market is made of.
#[derive(Debug, Clone)]
pub struct Config {
    /// How the places of sources are reached.
    pub origins: Arc<dyn Origins>,
    /// The plugins that came with the service. They are part of the executable and believed as it is.
    pub bundled: &'static [Bundled],
}

/// Reaches the places of sources.
pub trait Origins: fmt::Debug + Send + Sync {
    /// What holds the files of the source at `url`; `proxies` says what to go through.
    fn at(&self, url: &Url, proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError>;
}

#[derive(Debug)]
struct Nowhere;

impl Origins for Nowhere {
    fn at(&self, _url: &Url, _proxies: &Proxies) -> Result<Arc<dyn Origin>, OriginError> {
        Err(OriginError::Failed("this service asks no sources".to_owned()))
    }
}

impl Default for Config {
    /// Nothing bundled, and nobody is asked.
    fn default() -> Self {
        Self {
            origins: Arc::new(Nowhere),
            bundled: &[],
        }
    }
}

/// The time.
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

/// The market's part of what plugins share.
pub(crate) struct Holdings {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) catalogue: watch::Sender<Arc<Catalogue>>,
    /// The bundled packages, opened on first use.
    pub(crate) bundled: OnceCell<Arc<[BundledPlugin]>>,
    /// Held while rows of sources are written or must not change: what is remembered of a source and
    /// which plugins came from it change in one transaction.
    pub(crate) writing: Mutex<()>,
    pub(crate) downloads: Semaphore,
}

impl Holdings {
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

    /// Puts what was saved of a source in place, or removes the source. The caller holds `writing`.
    pub(crate) fn put(&self, id: &SourceId, known: Option<Known>) {
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

    /// What sources remember once `plugin` is `next`, which `package` is if it was just installed. The caller holds
    /// `writing`, saves it together with `next`, and then [`Holdings::keep`]s it.
    pub(crate) fn pinning(
        &self,
        plugin: &market::Identity,
        next: Option<&Installation>,
        package: Option<&VerifiedPackage>,
    ) -> Result<Vec<(SourceId, Known)>, CommandError> {
        let catalogue = self.catalogue();
        // Of what waits for consent, its source answers already, and that of what runs still does.
        let source = next.and_then(|next| next.source_of_staged().market());
        let running = next.and_then(|next| next.source.market());
        if let (Some(source), Some(_)) = (source, package)
            && !catalogue.known.contains_key(source)
        {
            return Err(CommandError::SourceGone(source.clone()));
        }
        let mut changed = Vec::new();
        for (id, known) in &catalogue.known {
            let mut known = Known::clone(known);
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

    pub(crate) fn keep(&self, changed: Vec<(SourceId, Known)>) {
        for (id, known) in changed {
            self.put(&id, Some(known));
        }
    }

    /// What sources say must not run.
    pub(crate) fn revocations(&self) -> BTreeMap<SourceId, Arc<Revocations>> {
        self.catalogue().revocations()
    }
}
