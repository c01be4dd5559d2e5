//! The recent calls of each plugin: the input of its breaker and of the detection of changed sites.

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

/// The unit of a breaker: calls of one capability are paused together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capability {
    Resolver,
    Preview,
    Feed,
    Hook,
    Post,
}

/// The health of all plugins. Kept in memory only: a restart clears it.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<HashMap<Identity, PluginHealth>>);

/// The recent calls of one plugin.
#[derive(Debug, Default)]
struct PluginHealth {
    breakers: BTreeMap<Capability, Breaker>,
    site: SiteHealth,
    /// The last calls of the previous version.
    before: SiteHealth,
    calls: u32,
    /// The condition after the last call, and since when, in milliseconds of the Unix epoch.
    condition: (Condition, i64),
    /// Hosts that the user granted for the next call.
    once: Vec<HostPattern>,
}

/// How a plugin does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Condition {
    #[default]
    Ok,
    /// It failed several times by its own fault: calls pause, those of its hooks or all others that failed.
    Degraded,
    /// Its site seems to have changed: several of its pages could not be parsed.
    SiteBroken,
}

/// The consequences of a call's result.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) change: Change,
    /// The condition is another one than before the call.
    pub(crate) has_new_condition: bool,
    /// The version is worse than its predecessor.
    pub(crate) is_worse: bool,
    /// Of this version since the process started.
    pub(crate) calls: u32,
}

impl PluginHealth {
    fn condition(&self) -> Condition {
        if self.site.is_broken() {
            Condition::SiteBroken
        } else if self.breakers.values().any(Breaker::is_open) {
            Condition::Degraded
        } else {
            Condition::Ok
        }
    }
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
        now_ms: i64,
    ) -> Verdict {
        let mut by_plugin = self.by_plugin();
        let health = by_plugin.entry(plugin.clone()).or_default();
        health.calls += 1;
        health
            .site
            .record(url, fault.is_some_and(PluginFault::counts_against_site));
        let is_fault = fault.is_some_and(PluginFault::counts_against_plugin);
        let breaker = health.breakers.entry(capability).or_default();
        let change = breaker.record(Instant::now().into_std(), is_fault);
        let condition = health.condition();
        let has_new_condition = health.condition.0 != condition;
        if has_new_condition {
            health.condition = (condition, now_ms);
        }
        Verdict {
            change,
            has_new_condition,
            is_worse: health.site.is_worse_than(&health.before),
            calls: health.calls,
        }
    }

    /// Resets the records, for another version or on request of the user.
    pub(crate) fn start_afresh(&self, plugin: &Identity) {
        let mut by_plugin = self.by_plugin();
        let before = by_plugin.remove(plugin).map(|health| health.site).unwrap_or_default();
        let fresh = PluginHealth {
            before,
            ..PluginHealth::default()
        };
        by_plugin.insert(plugin.clone(), fresh);
    }

    /// Drops the records of an uninstalled plugin.
    pub(crate) fn remove(&self, plugin: &Identity) {
        self.by_plugin().remove(plugin);
    }

    /// The condition of a plugin, and since when, in milliseconds of the Unix epoch; 0 before its first call.
    pub(crate) fn condition(&self, plugin: &Identity) -> (Condition, i64) {
        let by_plugin = self.by_plugin();
        by_plugin.get(plugin).map(|health| health.condition).unwrap_or_default()
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
