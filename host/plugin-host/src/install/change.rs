//! Changes of what is installed: each is decided by `lifecycle`, saved in one transaction and then activated.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use market::{Identity, VerifiedPackage};
use plugin_package::Manifest;

use super::shared::Shared;
use crate::{
    catalogue,
    error::{CommandError, Refusal, chain},
    fixture,
    lifecycle::{
        self, Effect, Input, Installation, Release,
        registry::{Idle, Loaded, Running},
        rows,
        values::Values,
    },
    package::{archive::host_version, disk::blocking, fault_point::Step, load},
    runtime::Event,
};

impl Shared {
    /// Makes a change: saves it, then performs its effects. The caller holds the plugin's turn (its lock).
    pub(crate) async fn apply(&self, plugin: &Identity, input: Input) -> Result<(), CommandError> {
        let effects = self.commit(plugin, input, None).await?;
        self.perform(plugin, &effects).await;
        Ok(())
    }

    /// Saves a change in one transaction: the installation, and what its source pins of it. If the process dies before
    /// the commit, nothing has changed; if it dies later, the next start performs the effects.
    pub(super) async fn commit(
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
        let keeps_accounts = matches!(input, Input::Uninstall { keeps_accounts: true });
        let was_there = now.is_some();
        let kept_for = now.as_ref().filter(|_| keeps_accounts).and_then(Installation::author);
        if keeps_accounts && was_there && kept_for.is_none() {
            return Err(Refusal::NoAuthor.into());
        }
        let (next, effects) = lifecycle::apply(now, input)?;
        let sources = self.market.pinning(plugin, next.as_ref(), package)?;
        self.pass(Step::Commit)?;
        let (identity, saved) = (plugin.clone(), next.clone());
        let heads: Vec<_> = sources
            .iter()
            .map(|(id, known)| catalogue::rows::Row::new(id, known))
            .collect();
        self.store
            .write(move |transaction| {
                match &saved {
                    None => rows::delete_installation(transaction, &identity, kept_for.as_deref())?,
                    Some(saved) => {
                        rows::save_installation(transaction, &identity, saved)?;
                        if !was_there {
                            accounts::take_back(transaction, &identity, saved.author().as_deref())?;
                        }
                    }
                }
                heads.iter().try_for_each(|head| head.save_head(transaction))
            })
            .await?;
        self.market.keep(sources);
        self.pass(Step::Activate)?;
        let next = next.map(|installation| {
            let before = loaded.map_or_else(|| not_loaded(installation.clone()), |loaded| (*loaded).clone());
            // A call that arrives before it is loaded waits.
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

    /// Fails if the previous version is revoked: a failing version is better than a harmful one.
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

    pub(super) async fn perform(&self, plugin: &Identity, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::Load => self.load(plugin).await,
                Effect::ForgetFaults => self.health.start_afresh(plugin),
                Effect::Collect => self.collect().await,
                Effect::Record(event) => {
                    if *event == Event::Uninstalled {
                        self.logins.forget(plugin);
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
        let loading = self.load_and_replay(&loaded.installation).await;
        self.put_loaded(plugin, &loaded, loading).await;
    }

    /// Publishes the result of loading to callers. The caller holds the plugin's turn, and `loaded` is its present
    /// state.
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
        if let Some(unproved) = loaded.installation.fixtures_due(&host_version()).filter(|_| is_running) {
            let proved = Input::FixturesPassed(unproved.digest, host_version());
            // If this fails, it is verified again at the next start.
            if let Err(error) = self.commit(plugin, proved, None).await {
                tracing::warn!(%plugin, %error, "it is not remembered that a plugin does what its author recorded");
            }
        }
    }

    /// Removes packages that no plugin needs. An error does not fail the command that caused it: the next start
    /// retries.
    async fn collect(&self) {
        let _packages = self.packages.write().await;
        let snapshot = self.registry.snapshot();
        let used = snapshot
            .plugins
            .values()
            .flat_map(|loaded| loaded.installation.digests())
            .collect();
        let disk = self.disk.clone();
        if let Err(error) = blocking(move || Ok(disk.keep_only(&used)?)).await {
            tracing::warn!(%error, "unused plugin packages stay on the disk");
        }
    }

    /// Loads what is installed. A version whose fixtures fail in this host version does not run.
    pub(crate) async fn load_and_replay(&self, installation: &Installation) -> load::Loading {
        let (manifest, running) = load::load(&*self.runtime, &self.disk, installation).await;
        let due = installation.fixtures_due(&host_version());
        match (&manifest, &running, due) {
            (Some(of), Ok(code), Some(release)) => match self.replay_installed(release, of, code).await {
                Ok(()) => (manifest, running),
                Err(error) => {
                    let reason = format!("does not run in this version of the service: {}", chain(&error));
                    (manifest, Err(Idle::Failed(reason)))
                }
            },
            _ => (manifest, running),
        }
    }

    async fn replay_installed(
        &self,
        release: &Release,
        manifest: &Manifest,
        running: &Running,
    ) -> Result<(), CommandError> {
        let (disk, digest) = (self.disk.clone(), release.digest);
        let files = blocking(move || Ok(disk.read_all(digest)?)).await?;
        self.replay_fixtures(&files, manifest, running).await
    }

    /// Replays a plugin's fixtures in this sandbox, without a network.
    pub(crate) async fn replay_fixtures(
        &self,
        files: &BTreeMap<String, Bytes>,
        manifest: &Manifest,
        running: &Running,
    ) -> Result<(), CommandError> {
        let slot = self.stop.run_until_cancelled(self.slots.take(&manifest.identity)).await;
        let _slot = slot.ok_or(CommandError::Closed)?;
        let checked = fixture::check(files, manifest, &running.guest).await;
        checked.map_err(|(name, reason)| CommandError::Fixture { name, reason })
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
