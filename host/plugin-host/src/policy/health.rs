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

/// What breaks as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capability {
    Resolver,
    Preview,
}

/// How plugins fare. Kept in memory: after a restart everybody starts afresh.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<HashMap<Identity, Fare>>);

/// How one plugin fares.
#[derive(Debug, Default)]
struct Fare {
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
    fn fares(&self) -> MutexGuard<'_, HashMap<Identity, Fare>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn admit(&self, plugin: &Identity, capability: Capability) -> Result<(), Duration> {
        let mut fares = self.fares();
        let fare = fares.entry(plugin.clone()).or_default();
        let breaker = fare.breakers.entry(capability).or_default();
        breaker.admit(Instant::now().into_std())
    }

    pub(crate) fn record(
        &self,
        plugin: &Identity,
        capability: Capability,
        url: &str,
        fault: Option<&PluginFault>,
    ) -> Verdict {
        let mut fares = self.fares();
        let fare = fares.entry(plugin.clone()).or_default();
        fare.calls += 1;
        fare.site
            .record(url, fault.is_some_and(PluginFault::counts_against_site));
        let is_fault = fault.is_some_and(PluginFault::counts_against_plugin);
        let breaker = fare.breakers.entry(capability).or_default();
        Verdict {
            change: breaker.record(Instant::now().into_std(), is_fault),
            is_worse: fare.site.is_worse_than(&fare.before),
            calls: fare.calls,
        }
    }

    /// Forgets what failed: another version, or the user, gives it another chance.
    pub(crate) fn start_afresh(&self, plugin: &Identity) {
        let mut fares = self.fares();
        let before = fares.remove(plugin).map(|fare| fare.site).unwrap_or_default();
        let fresh = Fare {
            before,
            ..Fare::default()
        };
        fares.insert(plugin.clone(), fresh);
    }

    /// Forgets a plugin that is gone.
    pub(crate) fn remove(&self, plugin: &Identity) {
        self.fares().remove(plugin);
    }

    pub(crate) fn is_site_broken(&self, plugin: &Identity) -> bool {
        self.fares().get(plugin).is_some_and(|fare| fare.site.is_broken())
    }

    pub(crate) fn grant_once(&self, plugin: &Identity, host: HostPattern) {
        let mut fares = self.fares();
        let once = &mut fares.entry(plugin.clone()).or_default().once;
        if !once.contains(&host) {
            once.push(host);
        }
    }

    pub(crate) fn take_once(&self, plugin: &Identity) -> Vec<HostPattern> {
        let mut fares = self.fares();
        fares
            .get_mut(plugin)
            .map(|fare| std::mem::take(&mut fare.once))
            .unwrap_or_default()
    }
}
