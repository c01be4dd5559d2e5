//! The snapshot of loaded plugins, replaced as a whole on every change. A call keeps the snapshot that it began with,
//! so changes never wait for calls.

use std::{collections::BTreeMap, sync::Arc};

use market::{Digest, Identity, Revocation, Revocations, SourceId};
use plugin_package::{Manifest, Matcher, UrlPattern, manifest::Resolver};
use tokio::sync::watch;
use url::Url;

use crate::{
    error::CallFailure,
    lifecycle::{Installation, Release, Source, Status, values::Values},
    policy::grant::{Grant, Permissions},
    runtime::Guest,
};

/// An installed plugin and its loaded code.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) installation: Installation,
    /// The manifest of the running version, else of the one waiting for consent; `None` if unreadable.
    pub(crate) manifest: Option<Arc<Manifest>>,
    /// The running code, or why there is none.
    pub(crate) running: Result<Running, Idle>,
    pub(crate) values: Arc<Values>,
    /// Why the folder's present content does not run; the code loaded before still does.
    pub(crate) development_error: Option<DevelopmentError>,
    /// The revocation of its version; maintained by the registry.
    pub(crate) revocation: Option<Revocation>,
}

/// The revocations of all sources.
pub(crate) type Revoked = BTreeMap<SourceId, Arc<Revocations>>;

/// Loaded code.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) guest: Arc<dyn Guest>,
    /// The permissions that the code's imports need.
    pub(crate) needed: Permissions,
    /// Digest of the code.
    pub(crate) code: Digest,
}

/// Why a plugin has no running code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idle {
    /// Its code is being loaded or queued for loading.
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
    pub message: String,
}

impl Loaded {
    /// The permissions granted by the user. A plugin under development has all that it asks for, because its user wrote
    /// it.
    pub(crate) fn grant(&self) -> Grant {
        let mut grant = self.installation.grant.clone();
        if let (true, Ok(running)) = (self.installation.is_development(), &self.running) {
            grant.allowed = running.needed.clone();
        }
        grant
    }

    /// The status that interfaces show.
    pub(crate) fn status(&self) -> Status {
        match &self.revocation {
            Some(revocation) if !revocation.level.allows_run() => Status::Revoked,
            _ => self.installation.status(),
        }
    }

    /// Its code and manifest, if calls are allowed.
    pub(crate) fn callable(&self) -> Result<(&Running, &Arc<Manifest>), CallFailure> {
        match self.status() {
            Status::Enabled => {}
            Status::Disabled => return Err(CallFailure::Disabled),
            Status::Tripped => return Err(CallFailure::Tripped),
            Status::Revoked => return Err(self.revoked()),
            Status::PendingConsent => return Err(CallFailure::ConsentPending),
        }
        match (&self.running, &self.manifest) {
            (Ok(running), Some(manifest)) => Ok((running, manifest)),
            (Err(Idle::Loading), _) => Err(CallFailure::Loading),
            (Err(Idle::ConsentPending), _) => Err(CallFailure::ConsentPending),
            (Err(Idle::Failed(error)), _) => Err(CallFailure::NotLoaded(error.clone())),
            (Ok(_), None) => Err(CallFailure::NotLoaded("its manifest cannot be read".to_owned())),
        }
    }

    /// The failure of calls because of a revocation.
    pub(crate) fn revoked(&self) -> CallFailure {
        let reason = self.revocation.as_ref().map(|revocation| revocation.reason.clone());
        CallFailure::Revoked(reason.unwrap_or_default())
    }

    /// Whether its code is not loaded yet.
    pub(crate) fn is_loading(&self) -> bool {
        self.running.as_ref().is_err_and(|idle| *idle == Idle::Loading)
    }

    /// Whether it claims its URLs. A failing or revoked plugin keeps them, so that a web page is never downloaded
    /// instead of the file because a plugin is broken.
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

#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) plugins: BTreeMap<Identity, Arc<Loaded>>,
    revoked: Arc<Revoked>,
    matcher: Matcher<Identity>,
}

impl Snapshot {
    /// The plugin that would claim a URL after consent.
    pub(crate) fn awaiting_consent(&self, url: &Url) -> Option<Identity> {
        let knows = |loaded: &Loaded| {
            let manifest = loaded.manifest.as_ref();
            let resolver = manifest.and_then(|manifest| manifest.capabilities.resolver.as_ref());
            resolver.is_some_and(|resolver| resolver.matches.iter().any(|pattern| pattern.claims(url)))
        };
        let mut waiting = self
            .plugins
            .iter()
            .filter(|(_, loaded)| loaded.status() == Status::PendingConsent && knows(loaded));
        waiting.next().map(|(plugin, _)| plugin.clone())
    }

    /// The revocation of a version by its source.
    pub(crate) fn revocation(&self, plugin: &Identity, source: &Source, release: &Release) -> Option<&Revocation> {
        let Source::Market(id) = source else { return None };
        self.revoked.get(id)?.of(plugin, &release.version, &release.digest)
    }

    fn revocation_of(&self, plugin: &Identity, installation: &Installation) -> Option<Revocation> {
        let release = installation.current()?;
        self.revocation(plugin, &installation.source, release).cloned()
    }

    /// The plugins that claim a URL, in the order of calls.
    pub(crate) fn claims(&self, url: &Url) -> Vec<Identity> {
        self.matcher.claims(url)
    }
}

#[derive(Debug)]
pub(crate) struct Registry(watch::Sender<Arc<Snapshot>>);

impl Registry {
    pub(crate) fn new(plugins: BTreeMap<Identity, Arc<Loaded>>, revoked: Revoked) -> Self {
        let registry = Self(watch::Sender::new(Arc::new(compile(plugins, Arc::default()))));
        registry.revoke(revoked);
        registry
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
                Some(mut loaded) => {
                    loaded.revocation = snapshot.revocation_of(plugin, &loaded.installation);
                    plugins.insert(plugin.clone(), Arc::new(loaded));
                }
                None => drop(plugins.remove(plugin)),
            }
            *snapshot = Arc::new(compile(plugins, Arc::clone(&snapshot.revoked)));
        });
    }

    /// Replaces the revocations. Returns the plugins with new ones.
    pub(crate) fn revoke(&self, revoked: Revoked) -> Vec<(Identity, Revocation)> {
        let mut told = Vec::new();
        self.0.send_modify(|snapshot| {
            let plugins = snapshot.plugins.clone();
            let mut next = compile(plugins, Arc::new(revoked));
            for (plugin, loaded) in &snapshot.plugins {
                let revocation = next.revocation_of(plugin, &loaded.installation);
                if revocation != loaded.revocation {
                    told.extend(revocation.clone().map(|revocation| (plugin.clone(), revocation)));
                    let loaded = Loaded {
                        revocation,
                        ..Loaded::clone(loaded)
                    };
                    next.plugins.insert(plugin.clone(), Arc::new(loaded));
                }
            }
            *snapshot = Arc::new(next);
        });
        told
    }

    /// Resolves when a plugin was uninstalled or must not run. Cancel-safe.
    pub(crate) async fn stopped(&self, plugin: &Identity) -> Option<Arc<Loaded>> {
        let is_stopped = |snapshot: &Arc<Snapshot>| {
            let loaded = snapshot.plugins.get(plugin);
            loaded.is_none_or(|loaded| loaded.status() == Status::Revoked)
        };
        match self.watch().wait_for(is_stopped).await {
            Ok(snapshot) => snapshot.plugins.get(plugin).cloned(),
            Err(_) => None,
        }
    }

    /// Reports a change of what belongs to a plugin and is not in the snapshot: how its calls go.
    pub(crate) fn report_change(&self) {
        self.0.send_modify(|_| {});
    }

    /// Subscribes to replacements of the snapshot, and to what [`Self::report_change`] reports.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.0.subscribe()
    }
}

/// The sites that the user names in a setting of the plugin.
fn chosen(loaded: &Loaded, resolver: &Resolver) -> Vec<UrlPattern> {
    let definitions = loaded.manifest.iter().flat_map(|manifest| &manifest.settings);
    let named = resolver.match_setting.as_ref().and_then(|key| {
        let definitions = definitions.filter(|definition| definition.key == *key);
        loaded.values.effective(definitions).remove(key)
    });
    named.iter().flat_map(|sites| UrlPattern::of_sites(sites)).collect()
}

fn compile(plugins: BTreeMap<Identity, Arc<Loaded>>, revoked: Arc<Revoked>) -> Snapshot {
    let mut rules = Vec::new();
    for (plugin, loaded) in plugins.iter().filter(|(_, loaded)| loaded.claims()) {
        let resolver = loaded
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.capabilities.resolver.as_ref());
        let of_plugin = resolver.into_iter().flat_map(|resolver| {
            let patterns = resolver.matches.iter().cloned().chain(chosen(loaded, resolver));
            patterns.map(|pattern| (plugin.clone(), resolver.priority, pattern))
        });
        rules.extend(of_plugin);
    }
    Snapshot {
        matcher: Matcher::new(rules),
        plugins,
        revoked,
    }
}
