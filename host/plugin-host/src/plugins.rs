//! The public handle: commands, queries, and how it is opened and closed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, OnceLock, atomic::AtomicU64},
    time::Duration,
};

use accounts::Accounts;
use futures_util::future::join_all;
use market::{Digest, Identity};
use plugin_package::HostPattern;
use store::{Store, Vault};
use tokio::{
    sync::{RwLock, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    catalogue::{self, Clock, Config, MarketState},
    error::{CommandError, Refusal, StartError},
    install::{
        Installed, Machine, Plugins, Shared,
        delivery::{Delivery, Expected, InstallReason},
        development, loading,
    },
    lifecycle::{
        Input, Source, Switch,
        registry::{Loaded, Registry, Snapshot},
        rows,
    },
    logins::Logins,
    package::{disk::Disk, fault_point::FaultPoints, load},
    policy::{grant::HostChoice, health::Health, hooks::HookQueue, keyed::Keyed, slots::Slots},
    runtime::{Journal, Runtime, Tools},
};

mod summary;

pub use summary::{Pending, PluginSummary};

/// Limit of host choices per plugin, far above manual use.
const MAX_CHOSEN_HOSTS: usize = 256;

/// The least time between two reports of changes. A report makes subscribers copy the list of all plugins, and keep the
/// copy for their own clients; without a pause, fifty plugins that load after a start make fifty copies.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

impl Plugins {
    /// Opens the plugins of `store`, with their packages in `folder`. When this returns, the URL patterns of all
    /// installed plugins are registered; their code loads in the background, which takes seconds if it was not compiled
    /// before. A plugin that does not load is listed with its reason. Remains of interrupted installations are deleted.
    pub async fn open(
        store: Store,
        vault: Arc<Vault>,
        folder: PathBuf,
        runtime: Arc<dyn Runtime>,
        market: Config,
    ) -> Result<Self, StartError> {
        let machine = Machine {
            runtime,
            market,
            clock: Clock::default(),
            faults: FaultPoints::default(),
        };
        Self::open_with(store, vault, folder, machine).await
    }

    pub(crate) async fn open_with(
        store: Store,
        vault: Arc<Vault>,
        folder: PathBuf,
        machine: Machine,
    ) -> Result<Self, StartError> {
        let Machine {
            runtime,
            market,
            clock,
            faults,
        } = machine;
        let for_rows = Arc::clone(&vault);
        let mut rows = store
            .read(move |connection| rows::load(connection, &for_rows))
            .await??;
        let catalogue = store.read(catalogue::rows::load).await??;
        let revoked = catalogue.revocations();
        let disk = Disk::new(folder.join("store"), faults.clone());
        let used: BTreeSet<_> = rows
            .installations
            .iter()
            .flat_map(|(_, installation)| installation.digests())
            .collect();
        let cleaned = disk.clone();
        let cleaning = tokio::task::spawn_blocking(move || cleaned.keep_only(&used)).await;
        if let Ok(Err(error)) = cleaning {
            return Err(error.into());
        }
        let announcing = rows.installations.into_iter().map(|(identity, installation)| {
            let values = Arc::new(rows.values.remove(&identity).unwrap_or_default());
            let disk = &disk;
            async move {
                let (manifest, running) = load::announce(disk, &installation).await;
                let loaded = Loaded {
                    installation,
                    manifest,
                    running,
                    values,
                    development_error: None,
                    revocation: None,
                };
                (identity, Arc::new(loaded))
            }
        });
        let plugins: BTreeMap<_, _> = join_all(announcing).await.into_iter().collect();
        let installed: Vec<_> = plugins.keys().cloned().collect();
        let plugins = Self(Arc::new(Shared {
            accounts: Accounts::new(store.clone(), Arc::clone(&vault)),
            logins: Logins::default(),
            store,
            vault,
            disk,
            faults,
            runtime,
            tools: OnceLock::new(),
            registry: Registry::new(plugins, revoked),
            market: MarketState::new(market, clock, catalogue),
            journal: Journal::default(),
            slots: Slots::new(),
            hooks: std::sync::Mutex::new(HookQueue::new()),
            health: Health::default(),
            next_call: AtomicU64::new(1),
            changes: Keyed::default(),
            loads: Keyed::default(),
            packages: RwLock::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }));
        plugins.0.spawn(loading::load_all(Arc::clone(&plugins.0), installed));
        plugins.0.spawn(development::watch(Arc::clone(&plugins.0)));
        Ok(plugins)
    }

    /// Lets calls use programs of the user, if the user agrees. Only the first ones count; without any, calls have none.
    pub fn use_tools(&self, tools: Arc<dyn Tools>) {
        let _has_some = self.0.tools.set(tools);
    }

    /// All plugins, by identity.
    pub fn list(&self) -> Vec<PluginSummary> {
        let snapshot = self.0.registry.snapshot();
        let plugins = snapshot.plugins.iter();
        plugins
            .map(|(identity, loaded)| PluginSummary::of(identity, loaded, &self.0.health))
            .collect()
    }

    /// One plugin.
    pub fn get(&self, plugin: &Identity) -> Option<PluginSummary> {
        let loaded = self.0.registry.get(plugin)?;
        Some(PluginSummary::of(plugin, &loaded, &self.0.health))
    }

    /// Subscribes to changes of [`Plugins::list`]. Several changes may be reported as one.
    pub fn changes(&self) -> Changes {
        Changes {
            snapshots: self.0.registry.watch(),
            next_report: Instant::now(),
        }
    }

    /// The journal of all plugins.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Installs an archive from the user.
    pub async fn install_zip(&self, archive: Vec<u8>) -> Result<Installed, CommandError> {
        let delivery = Delivery {
            archive: archive.into(),
            source: Source::File,
            expected: Expected::Anything,
            reason: InstallReason::User,
        };
        self.run(|shared| async move { shared.install(delivery).await }).await
    }

    /// Uses an author's folder in place, from now on and whenever its files change. If a plugin of its identity is
    /// installed from elsewhere, the user has to agree first: the folder gets its secrets and settings.
    pub async fn install_dev(&self, folder: PathBuf) -> Result<Installed, CommandError> {
        self.run(|shared| async move { shared.install_dev(folder).await }).await
    }

    /// Removes a plugin with its settings and its storage. A missing one is no error.
    pub async fn uninstall(&self, plugin: Identity) -> Result<(), CommandError> {
        self.change(plugin, Input::Uninstall { keeps_accounts: false }).await
    }

    /// Uninstalls a plugin and keeps its accounts, with their secrets, until it is installed again; by another author, they
    /// are deleted then. Refused for a plugin whose author is not known.
    pub async fn uninstall_keeping_accounts(&self, plugin: Identity) -> Result<(), CommandError> {
        self.change(plugin, Input::Uninstall { keeps_accounts: true }).await
    }

    /// Enables or disables a plugin.
    pub async fn set_enabled(&self, plugin: Identity, is_enabled: bool) -> Result<(), CommandError> {
        let switch = if is_enabled { Switch::On } else { Switch::Off };
        self.change(plugin, Input::Switch(switch)).await
    }

    /// Pins a plugin to its version, so that it is not updated automatically, or unpins it.
    pub async fn set_pinned(&self, plugin: Identity, is_pinned: bool) -> Result<(), CommandError> {
        self.change(plugin, Input::Pin(is_pinned)).await
    }

    /// Records the user's consent; `digest` identifies what was shown.
    pub async fn consent(&self, plugin: Identity, digest: Digest) -> Result<(), CommandError> {
        self.change(plugin, Input::Consent(digest)).await
    }

    /// Records the user's choice about an optional host.
    pub async fn choose_host(
        &self,
        plugin: Identity,
        host: HostPattern,
        choice: HostChoice,
    ) -> Result<(), CommandError> {
        let loaded = self.0.registry.get(&plugin).ok_or(Refusal::NotInstalled)?;
        let manifest = loaded.manifest.as_ref();
        if !manifest.is_some_and(|manifest| manifest.permissions.optional_hosts.has(&host)) {
            return Err(CommandError::UnknownHost(host.to_string()));
        }
        let chosen = &loaded.grant().optional;
        if chosen.len() >= MAX_CHOSEN_HOSTS && !chosen.contains_key(&host) {
            return Err(CommandError::TooManyHosts);
        }
        self.change(plugin.clone(), Input::Choose(host.clone(), choice)).await?;
        if choice == HostChoice::Once {
            self.0.health.grant_once(&plugin, host);
        }
        Ok(())
    }

    /// Returns to the previous version.
    pub async fn roll_back(&self, plugin: Identity) -> Result<(), CommandError> {
        self.change(plugin, Input::RollBack { by_user: true }).await
    }

    /// Sets values, all or none of them.
    pub async fn update_settings(&self, plugin: Identity, batch: BTreeMap<String, String>) -> Result<(), CommandError> {
        self.run(|shared| async move { shared.update_settings(&plugin, batch).await })
            .await
    }

    /// Ends calls and background work. The store stays open.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn change(&self, plugin: Identity, input: Input) -> Result<(), CommandError> {
        self.run(|shared| async move {
            let _turn = shared.turn(&plugin).await;
            shared.apply(&plugin, input).await
        })
        .await
    }

    /// Runs a command to its end, also when its caller is cancelled: it must not stop between the commit and the
    /// activation of the new version.
    async fn run<T, F>(&self, command: impl FnOnce(Arc<Shared>) -> F) -> Result<T, CommandError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CommandError>> + Send + 'static,
    {
        if self.0.stop.is_cancelled() {
            return Err(CommandError::Closed);
        }
        let running = self.0.tasks.spawn(command(Arc::clone(&self.0)));
        running.await.map_err(|_| CommandError::Closed)?
    }
}

/// A subscription to changes of plugins.
#[derive(Debug, Clone)]
pub struct Changes {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    next_report: Instant,
}

impl Changes {
    /// Waits for a change since the last report, and until [`REPORT_INTERVAL`] after that; `false` when there will be
    /// none. Cancel-safe.
    pub async fn changed(&mut self) -> bool {
        tokio::time::sleep_until(self.next_report).await;
        let is_open = self.snapshots.changed().await.is_ok();
        self.next_report = Instant::now() + REPORT_INTERVAL;
        is_open
    }

    /// Whether there was a change since the last report; [`Self::changed`] does not report it again.
    pub fn take(&mut self) -> bool {
        let is_changed = self.snapshots.has_changed().unwrap_or(false);
        self.snapshots.mark_unchanged();
        is_changed
    }
}

#[cfg(test)]
pub(crate) mod tests;
