//! What others hold of the plugins: commands, and questions about what there is.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
};

use futures_util::future::join_all;
use market::{AuthorSignature, Digest, Identity, PublicKey, VerifiedPackage};
use store::{Store, Vault};
use tokio::sync::{Mutex, RwLock};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call::Health,
    development,
    disk::Disk,
    error::{CommandError, StartError},
    fault_point::{FaultPoints, Step},
    grant::HostChoice,
    journal::{Event, Journal, now_ms},
    keyed::Keyed,
    lifecycle::{self, Effect, Folder, Input, Installation, Release, Source, Switch},
    load, loading,
    market::{self as room, Delivery, Expected, Holdings, WantedBy},
    registry::{Idle, Loaded, Registry},
    runtime::Runtime,
    settings::Values,
    slots::Slots,
    store as rows,
    summary::PluginSummary,
};
use plugin_package::{
    HostPattern, InvalidManifest, Manifest, Package,
    manifest::{self, Reading},
};

/// How many hosts the user may choose about for one plugin: by hand, one by one, nobody gets there.
const MAX_CHOSEN_HOSTS: usize = 256;

/// The plugins. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Plugins(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) disk: Disk,
    faults: FaultPoints,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) registry: Registry,
    pub(crate) market: Holdings,
    pub(crate) journal: Journal,
    pub(crate) slots: Slots,
    pub(crate) health: Health,
    pub(crate) next_call: AtomicU64,
    /// One change of a plugin at a time.
    changes: Keyed<Mutex<()>>,
    /// One load of a plugin at a time, of those that wait for it since the start.
    pub(crate) loads: Keyed<Mutex<()>>,
    /// Shared by whoever makes packages and rows for them, alone for whoever removes packages without a row.
    packages: RwLock<()>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

/// What plugins run on.
pub(crate) struct Machine {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) market: room::Config,
    pub(crate) clock: room::Clock,
    pub(crate) faults: FaultPoints,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// What an installation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Which plugin it is.
    pub identity: Identity,
    /// Which version.
    pub version: semver::Version,
    /// Names what the user has to agree to before this version runs.
    pub pending_consent: Option<Digest>,
    /// Keys of the manifest that this host does not know.
    pub unknown_keys: Vec<String>,
    /// Where it came from.
    pub source: Source,
    /// The author's key that signed it.
    pub signed_by: Option<PublicKey>,
}

impl Plugins {
    /// Opens the plugins of `store`, with their packages in `folder`. Their URLs are theirs when this returns; their code
    /// is loaded from then on, which takes long if it was not compiled before. One that does not load is listed with its
    /// reason. What an installation left behind when it was cut off is removed.
    pub async fn open(
        store: Store,
        vault: Arc<Vault>,
        folder: PathBuf,
        runtime: Arc<dyn Runtime>,
        market: room::Config,
    ) -> Result<Self, StartError> {
        let machine = Machine {
            runtime,
            market,
            clock: room::Clock::default(),
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
        let catalogue = store.read(room::store::load).await??;
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
            store,
            vault,
            disk,
            faults,
            runtime,
            registry: Registry::new(plugins, revoked),
            market: Holdings::new(market, clock, catalogue),
            journal: Journal::default(),
            slots: Slots::new(),
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

    /// Waits for the next change of what [`Plugins::list`] gives. Each receiver sees the last of several.
    pub fn changes(&self) -> Changes {
        Changes(self.0.registry.watch())
    }

    /// What plugins did.
    pub fn journal(&self) -> &Journal {
        &self.0.journal
    }

    /// Installs an archive that the user has, the first or another version of its plugin.
    pub async fn install_zip(&self, archive: Vec<u8>) -> Result<Installed, CommandError> {
        let delivery = Delivery {
            archive: archive.into(),
            source: Source::File,
            expected: Expected::Anything,
            wanted_by: WantedBy::User,
        };
        self.run(|shared| async move { shared.install(delivery).await }).await
    }

    /// Uses an author's folder in place, from now on and whenever its files change. If a plugin of its identity is
    /// installed from elsewhere, the user has to agree first: the folder gets what was given to that one.
    pub async fn install_dev(&self, folder: PathBuf) -> Result<Installed, CommandError> {
        self.run(|shared| async move { shared.install_dev(folder).await }).await
    }

    /// Forgets a plugin with its settings and its memory. One that is not there is gone already.
    pub async fn uninstall(&self, plugin: Identity) -> Result<(), CommandError> {
        self.change(plugin, Input::Uninstall).await
    }

    /// Switches a plugin on or off.
    pub async fn set_enabled(&self, plugin: Identity, is_enabled: bool) -> Result<(), CommandError> {
        let switch = if is_enabled { Switch::On } else { Switch::Off };
        self.change(plugin, Input::Switch(switch)).await
    }

    /// Pins a plugin to its version, so that it is only replaced when the user says so, or no longer.
    pub async fn set_pinned(&self, plugin: Identity, is_pinned: bool) -> Result<(), CommandError> {
        self.change(plugin, Input::Pin(is_pinned)).await
    }

    /// The user agrees to what the plugin asks for; `digest` names what was shown.
    pub async fn consent(&self, plugin: Identity, digest: Digest) -> Result<(), CommandError> {
        self.change(plugin, Input::Consent(digest)).await
    }

    /// The user chooses about a host that the plugin can do without.
    pub async fn choose_host(
        &self,
        plugin: Identity,
        host: HostPattern,
        choice: HostChoice,
    ) -> Result<(), CommandError> {
        let loaded = self.0.registry.get(&plugin).ok_or(lifecycle::Refusal::NotInstalled)?;
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

    /// Goes back to the version before.
    pub async fn roll_back(&self, plugin: Identity) -> Result<(), CommandError> {
        self.change(plugin, Input::RollBack { by_user: true }).await
    }

    /// Sets values, all or none of them.
    pub async fn update_settings(&self, plugin: Identity, batch: BTreeMap<String, String>) -> Result<(), CommandError> {
        self.run(|shared| async move { shared.update_settings(&plugin, batch).await })
            .await
    }

    /// Ends what is under way and starts nothing more. The store stays open.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    async fn change(&self, plugin: Identity, input: Input) -> Result<(), CommandError> {
        self.run(|shared| async move {
            let turn = shared.turn(&plugin);
            let _turn = turn.lock().await;
            shared.apply(&plugin, input).await
        })
        .await
    }

    /// Runs a command to its end, also when whoever asked goes away: between the commit and the new version being in
    /// service there is no good moment to stop.
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

/// Tells when plugins change.
#[derive(Debug, Clone)]
pub struct Changes(tokio::sync::watch::Receiver<Arc<crate::registry::Snapshot>>);

impl Changes {
    /// Waits for a change since the last call, or `false` when there will be none.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Shared {
    /// Runs `work` to its end or until plugins are closed, which waits for it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(self.stop.clone().run_until_cancelled_owned(work));
    }

    pub(crate) fn turn(&self, plugin: &Identity) -> Arc<Mutex<()>> {
        self.changes.of(plugin, Mutex::default)
    }

    pub(crate) async fn install(self: Arc<Self>, delivery: Delivery) -> Result<Installed, CommandError> {
        let Delivery {
            archive,
            source,
            expected,
            wanted_by,
        } = delivery;
        let reading = match source {
            Source::Bundled | Source::Market(_) => Reading::Lenient,
            Source::File | Source::Development(_) => Reading::Strict,
        };
        let (package, manifest, unknown_keys) = load::blocking(move || parse(&archive, reading)).await?;
        expected.check_manifest(&manifest, package.file(manifest::FILE, "manifest")?)?;
        let plugin = manifest.identity.clone();
        let turn = self.turn(&plugin);
        let _turn = turn.lock().await;
        let signed_by = self.check_signature(&package, &manifest, expected.package())?;
        let code = package.file(&manifest.entry, "entry")?.clone();
        let running = load::load_code(&*self.runtime, &manifest, manifest.language, code).await?;
        expected.check_code(&running)?;
        self.prove(&package.files, &manifest, &running).await?;
        let release = Release {
            digest: package.digest,
            version: manifest.version.clone(),
            needed: running.needed.clone(),
            installed_ms: now_ms(),
            signed_by,
            proved_in: Some(host_version()),
        };
        let input = match wanted_by {
            WantedBy::User => Input::Install(release, source.clone()),
            WantedBy::Nobody => Input::Update(release, source.clone()),
        };
        let effects = {
            let _packages = self.packages.read().await;
            let disk = self.disk.clone();
            load::blocking(move || Ok(disk.put(&package)?)).await?;
            self.commit(&plugin, input, expected.package()).await?
        };
        self.perform(&plugin, &effects).await;
        let installed = self.registry.get(&plugin);
        Ok(Installed {
            identity: plugin,
            version: manifest.version,
            pending_consent: installed.and_then(|loaded| loaded.installation.asked()),
            unknown_keys,
            source,
            signed_by,
        })
    }

    /// Who signed a package: the author whose key the source names, or else the one who signed what is installed, or else
    /// the one that the manifest names. A package of the user's may have no signature; a wrong one is refused, always.
    fn check_signature(
        &self,
        package: &Package,
        manifest: &Manifest,
        listed: Option<&VerifiedPackage>,
    ) -> Result<Option<PublicKey>, CommandError> {
        let author = listed.map(|listed| *listed.author());
        let before = self.registry.get(&manifest.identity);
        let before = before.and_then(|before| before.installation.current()?.signed_by);
        let named = manifest
            .author
            .as_ref()
            .and_then(|author| author.key.as_ref()?.parse().ok());
        let key = author.or(before).or(named);
        let signature = ::market::verify_files(&package.files, &manifest.identity, &manifest.version, key.as_ref())?;
        Ok(match signature {
            AuthorSignature::Signed(key) => Some(key),
            AuthorSignature::Unsigned => author,
        })
    }

    async fn install_dev(self: Arc<Self>, folder: PathBuf) -> Result<Installed, CommandError> {
        let (manifest, running) = load::load_folder(&*self.runtime, &folder).await?;
        let plugin = manifest.identity.clone();
        let turn = self.turn(&plugin);
        let _turn = turn.lock().await;
        let source = Source::Development(folder.clone());
        let develop = Input::Develop(Folder {
            path: folder,
            version: manifest.version.clone(),
            needed: running.needed,
        });
        self.apply(&plugin, develop).await?;
        let waits = self
            .registry
            .get(&plugin)
            .filter(|loaded| loaded.installation.folder.is_some());
        Ok(Installed {
            identity: plugin,
            version: manifest.version.clone(),
            pending_consent: waits.and_then(|loaded| loaded.installation.asked()),
            unknown_keys: Vec::new(),
            source,
            signed_by: None,
        })
    }

    async fn update_settings(&self, plugin: &Identity, batch: BTreeMap<String, String>) -> Result<(), CommandError> {
        let turn = self.turn(plugin);
        let _turn = turn.lock().await;
        let loaded = self.registry.get(plugin).ok_or(lifecycle::Refusal::NotInstalled)?;
        let definitions = loaded.manifest.as_ref().map_or(&[][..], |manifest| &manifest.settings);
        let values = Arc::new(loaded.values.with(definitions, &batch)?);
        let (vault, identity, saved) = (Arc::clone(&self.vault), plugin.clone(), Arc::clone(&values));
        self.store
            .write(move |transaction| rows::save_values(transaction, &vault, &identity, &saved))
            .await?;
        self.registry.put(
            plugin,
            Some(Loaded {
                values,
                ..(*loaded).clone()
            }),
        );
        let keys = batch.into_keys().collect();
        self.journal.record(plugin, Event::SettingsChanged { keys });
        Ok(())
    }

    /// Makes a change: saves it, then puts it into service. The caller has the plugin's turn.
    pub(crate) async fn apply(&self, plugin: &Identity, input: Input) -> Result<(), CommandError> {
        let effects = self.commit(plugin, input, None).await?;
        self.perform(plugin, &effects).await;
        Ok(())
    }

    /// The moment at which a change holds: one transaction, of the plugin and of what its source remembers of it. Nothing
    /// before it is seen by a later start, and everything after it is made up for by one.
    async fn commit(
        &self,
        plugin: &Identity,
        input: Input,
        package: Option<&VerifiedPackage>,
    ) -> Result<Vec<Effect>, CommandError> {
        let _writing = self.market.writing.lock().await;
        let loaded = self.registry.get(plugin);
        let now = loaded.as_ref().map(|loaded| loaded.installation.clone());
        if let (Input::RollBack { .. }, Some(now)) = (&input, &now) {
            self.check_previous(plugin, now)?;
        }
        let (next, effects) = lifecycle::apply(now, input)?;
        let sources = self.market.pinning(plugin, next.as_ref(), package)?;
        self.pass(Step::Commit)?;
        let (identity, saved) = (plugin.clone(), next.clone());
        let heads: Vec<_> = sources
            .iter()
            .map(|(id, known)| room::store::Row::new(id, known))
            .collect();
        self.store
            .write(move |transaction| {
                rows::save_installation(transaction, &identity, saved.as_ref())?;
                heads.iter().try_for_each(|head| head.save_head(transaction))
            })
            .await?;
        self.market.keep(sources);
        self.pass(Step::Activate)?;
        let next = next.map(|installation| {
            let before = loaded.map_or_else(|| not_loaded(installation.clone()), |loaded| (*loaded).clone());
            // Who calls it before it is loaded waits.
            let running = match before.running {
                Err(_) if effects.contains(&Effect::Load) => Err(Idle::Loading),
                running => running,
            };
            Loaded {
                installation,
                running,
                ..before
            }
        });
        self.registry.put(plugin, next);
        Ok(effects)
    }

    /// Whether the version before may run. A version that failed is better than one that does harm.
    pub(crate) fn check_previous(&self, plugin: &Identity, now: &Installation) -> Result<(), CommandError> {
        let Some(previous) = &now.previous else { return Ok(()) };
        let snapshot = self.registry.snapshot();
        match snapshot.revocation(plugin, &now.source, previous) {
            Some(revocation) if !revocation.level.allows_run() => Err(CommandError::Revoked {
                version: previous.version.clone(),
                reason: revocation.reason.clone(),
            }),
            _ => Ok(()),
        }
    }

    async fn perform(&self, plugin: &Identity, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Load => self.load(plugin).await,
                Effect::ForgetFaults => self.health.start_afresh(plugin),
                Effect::Collect => self.collect().await,
                Effect::Tell(event) => {
                    if *event == Event::Uninstalled {
                        self.journal.forget(plugin);
                        self.health.remove(plugin);
                    }
                    self.journal.record(plugin, event.clone());
                }
            }
        }
    }

    async fn load(&self, plugin: &Identity) {
        let Some(loaded) = self.registry.get(plugin) else {
            return;
        };
        let loading = self.load_proved(&loaded.installation).await;
        self.put_loaded(plugin, &loaded, loading).await;
    }

    /// Puts what was loaded into service. The caller has the plugin's turn, and `loaded` is what it is now.
    pub(crate) async fn put_loaded(&self, plugin: &Identity, loaded: &Loaded, (manifest, running): load::Loading) {
        let error = match &running {
            Err(Idle::Failed(error)) => Some(error.clone()),
            _ => None,
        };
        let next = Loaded {
            manifest,
            running,
            development_error: None,
            ..loaded.clone()
        };
        let is_running = next.running.is_ok();
        self.registry.put(plugin, Some(next));
        self.journal.record(plugin, Event::Loaded { error });
        if let Some(unproved) = loaded.installation.unproved(&host_version()).filter(|_| is_running) {
            let proved = Input::Prove(unproved.digest, host_version());
            // It is proved again at the next start otherwise.
            if let Err(error) = self.commit(plugin, proved, None).await {
                tracing::warn!(%plugin, %error, "it is not remembered that a plugin does what its author recorded");
            }
        }
    }

    /// Removes packages that no plugin needs. Failing is no failure of the command before it: the next start tries
    /// again.
    async fn collect(&self) {
        let _packages = self.packages.write().await;
        let snapshot = self.registry.snapshot();
        let used = snapshot
            .plugins
            .values()
            .flat_map(|loaded| loaded.installation.digests())
            .collect();
        let disk = self.disk.clone();
        if let Err(error) = load::blocking(move || Ok(disk.keep_only(&used)?)).await {
            tracing::warn!(%error, "unused plugin packages stay on the disk");
        }
    }

    pub(crate) fn pass(&self, step: Step) -> Result<(), CommandError> {
        self.faults.pass(step).map_err(|_| CommandError::Closed)
    }
}

fn not_loaded(installation: Installation) -> Loaded {
    Loaded {
        installation,
        manifest: None,
        running: Err(Idle::Loading),
        values: Arc::new(Values::default()),
        development_error: None,
        revocation: None,
    }
}

/// The version of the host, which all its crates share.
pub(crate) fn host_version() -> semver::Version {
    env!("CARGO_PKG_VERSION")
        .parse()
        .expect("cargo accepts semantic versions only")
}

pub(crate) fn parse(archive: &[u8], reading: Reading) -> Result<(Package, Manifest, Vec<String>), CommandError> {
    let package = Package::open(archive)?;
    let (manifest, unknown) = Manifest::parse(package.file(manifest::FILE, "manifest")?, reading)?;
    if let Some(oldest) = manifest.min_host.as_ref().filter(|oldest| **oldest > host_version()) {
        let reason = format!("needs a host of version {oldest} or later");
        return Err(InvalidManifest::new("/minHost", reason).into());
    }
    if let Some(icon) = &manifest.icon {
        package.check_icon(icon)?;
    }
    Ok((package, manifest, unknown))
}

#[cfg(test)]
pub(crate) mod tests;
