//! How the calls of each plugin went lately: what opens its breaker, and what says that its site has changed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plugin_package::{HostPattern, Identity};
use tokio::time::Instant;

use super::{
    breaker::{Breaker, Change, SiteHealth},
    fault::PluginFault,
};

/// The unit of a breaker: its calls are paused together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capability {
    Resolver,
    Preview,
}

/// The health of all plugins. Kept in memory only: a restart clears it.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<HashMap<Identity, PluginHealth>>);

/// The recent calls of one plugin.
#[derive(Debug, Default)]
struct PluginHealth {
    breakers: BTreeMap<Capability, Breaker>,
    site: SiteHealth,
    /// How the last calls of the version before went.
    before: SiteHealth,
    calls: u32,
    /// Hosts that the user granted for the next call.
    once: Vec<HostPattern>,
}

/// What a call's end says about its plugin.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) change: Change,
    /// The site's pages are understood much less than by the version before.
    pub(crate) is_worse: bool,
    /// Of this version since the process started.
    pub(crate) calls: u32,
}

impl Health {
    fn by_plugin(&self) -> MutexGuard<'_, HashMap<Identity, PluginHealth>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn admit(&self, plugin: &Identity, capability: Capability) -> Result<(), Duration> {
        let mut by_plugin = self.by_plugin();
        let health = by_plugin.entry(plugin.clone()).or_default();
        let breaker = health.breakers.entry(capability).or_default();
        breaker.admit(Instant::now().into_std())
    }

    pub(crate) fn record(
        &self,
        plugin: &Identity,
        capability: Capability,
        url: &str,
        fault: Option<&PluginFault>,
    ) -> Verdict {
        let mut by_plugin = self.by_plugin();
        let health = by_plugin.entry(plugin.clone()).or_default();
        health.calls += 1;
        health
            .site
            .record(url, fault.is_some_and(PluginFault::counts_against_site));
        let is_fault = fault.is_some_and(PluginFault::counts_against_plugin);
        let breaker = health.breakers.entry(capability).or_default();
        Verdict {
            change: breaker.record(Instant::now().into_std(), is_fault),
            is_worse: health.site.is_worse_than(&health.before),
            calls: health.calls,
        }
    }

    /// Forgets what failed: another version, or the user, gives it another chance.
    pub(crate) fn start_afresh(&self, plugin: &Identity) {
        let mut by_plugin = self.by_plugin();
        let before = by_plugin.remove(plugin).map(|health| health.site).unwrap_or_default();
        let fresh = PluginHealth {
            before,
            ..PluginHealth::default()
        };
        by_plugin.insert(plugin.clone(), fresh);
    }

    /// Forgets a plugin that is gone.
    pub(crate) fn remove(&self, plugin: &Identity) {
        self.by_plugin().remove(plugin);
    }

    pub(crate) fn is_site_broken(&self, plugin: &Identity) -> bool {
        self.by_plugin()
            .get(plugin)
            .is_some_and(|health| health.site.is_broken())
    }

    pub(crate) fn grant_once(&self, plugin: &Identity, host: HostPattern) {
        let mut by_plugin = self.by_plugin();
        let once = &mut by_plugin.entry(plugin.clone()).or_default().once;
        if !once.contains(&host) {
            once.push(host);
        }
    }

    pub(crate) fn take_once(&self, plugin: &Identity) -> Vec<HostPattern> {
        let mut by_plugin = self.by_plugin();
        by_plugin
            .get_mut(plugin)
            .map(|health| std::mem::take(&mut health.once))
            .unwrap_or_default()
    }
}
