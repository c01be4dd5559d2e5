//! What is loaded, as one value that is replaced whole. A call keeps what it began with, so nothing waits for calls.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::watch;
use url::Url;

use crate::{
    grant::{Grant, Permissions},
    identity::{Digest, Identity},
    lifecycle::{Installation, Status},
    manifest::Manifest,
    matching::Matcher,
    runtime::Guest,
    settings::Values,
};

/// A plugin, as far as it could be loaded.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) installation: Installation,
    /// Of what runs, else of what waits for consent, as far as it can be read.
    pub(crate) manifest: Option<Arc<Manifest>>,
    /// What runs, or why nothing does.
    pub(crate) running: Result<Running, Idle>,
    pub(crate) values: Arc<Values>,
    /// Why the folder's present state does not run; what ran before goes on.
    pub(crate) development_error: Option<DevelopmentError>,
}

/// Code that can be called.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) guest: Arc<dyn Guest>,
    /// What the code needs, as its imports show.
    pub(crate) needed: Permissions,
    /// What the code is.
    pub(crate) code: Digest,
}

/// Why nothing of a plugin runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// Its code is being loaded, or soon will be.
    Loading,
    /// The user has not yet agreed to what it asks for.
    ConsentPending,
    /// Its code or its manifest is not accepted.
    Failed(String),
}

/// Why a plugin under development was not loaded again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevelopmentError {
    /// `read`, `manifest` or `load`.
    pub step: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Loaded {
    /// What the user agreed to. Who runs a plugin from a folder of their own has written what it asks for.
    pub(crate) fn grant(&self) -> Grant {
        let mut grant = self.installation.grant.clone();
        if let (true, Ok(running)) = (self.installation.is_development(), &self.running) {
            grant.allowed = running.needed.clone();
        }
        grant
    }

    /// Whether its code is still to come.
    pub(crate) fn is_loading(&self) -> bool {
        self.running.as_ref().is_err_and(|idle| *idle == Idle::Loading)
    }

    /// Whether its URLs are its own. A plugin that fails keeps them: nobody gets a page instead of the file it is
    /// about because a plugin is broken.
    fn claims(&self) -> bool {
        matches!(self.installation.status(), Status::Enabled | Status::Tripped)
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded")
            .field("installation", &self.installation)
            .field("idle", &self.running.as_ref().err())
            .finish_non_exhaustive()
    }
}

/// Everything that is loaded.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) plugins: BTreeMap<Identity, Arc<Loaded>>,
    matcher: Matcher<Identity>,
}

impl Snapshot {
    /// Who would claim a URL, if the user had agreed to what it asks for.
    pub(crate) fn awaiting_consent(&self, url: &Url) -> Option<Identity> {
        let knows = |loaded: &Loaded| {
            let manifest = loaded.manifest.as_ref();
            let resolver = manifest.and_then(|manifest| manifest.capabilities.resolver.as_ref());
            resolver.is_some_and(|resolver| resolver.matches.iter().any(|pattern| pattern.claims(url)))
        };
        let mut waiting = self
            .plugins
            .iter()
            .filter(|(_, loaded)| loaded.installation.status() == Status::PendingConsent && knows(loaded));
        waiting.next().map(|(plugin, _)| plugin.clone())
    }

    /// Who claims a URL, the first to be asked first.
    pub(crate) fn claims(&self, url: &Url) -> Vec<Identity> {
        self.matcher.claims(url)
    }
}

/// The present snapshot.
#[derive(Debug)]
pub(crate) struct Registry(watch::Sender<Arc<Snapshot>>);

impl Registry {
    pub(crate) fn new(plugins: BTreeMap<Identity, Arc<Loaded>>) -> Self {
        Self(watch::Sender::new(Arc::new(compile(plugins))))
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.0.borrow())
    }

    pub(crate) fn get(&self, plugin: &Identity) -> Option<Arc<Loaded>> {
        self.0.borrow().plugins.get(plugin).cloned()
    }

    /// Replaces a plugin, or removes it.
    pub(crate) fn put(&self, plugin: &Identity, loaded: Option<Loaded>) {
        self.0.send_modify(|snapshot| {
            let mut plugins = snapshot.plugins.clone();
            match loaded {
                Some(loaded) => drop(plugins.insert(plugin.clone(), Arc::new(loaded))),
                None => drop(plugins.remove(plugin)),
            }
            *snapshot = Arc::new(compile(plugins));
        });
    }

    /// Tells of every replacement.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.0.subscribe()
    }
}

fn compile(plugins: BTreeMap<Identity, Arc<Loaded>>) -> Snapshot {
    let mut rules = Vec::new();
    for (plugin, loaded) in plugins.iter().filter(|(_, loaded)| loaded.claims()) {
        let resolver = loaded
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.capabilities.resolver.as_ref());
        let of_plugin = resolver.into_iter().flat_map(|resolver| {
            let patterns = resolver.matches.iter().cloned();
            patterns.map(|pattern| (plugin.clone(), resolver.priority, pattern))
        });
        rules.extend(of_plugin);
    }
    Snapshot {
        matcher: Matcher::new(rules),
        plugins,
    }
}
