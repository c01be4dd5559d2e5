//! The user's commands: installing archives and folders, and changing settings.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use market::{AuthorSignature, Digest, Identity, PublicKey, VerifiedPackage};
use plugin_package::{
    Manifest, Package,
    manifest::{self, Reading},
};

use super::{
    delivery::{Delivery, InstallReason},
    shared::Shared,
};
use crate::{
    error::{CommandError, Refusal},
    lifecycle::{Folder, Input, Release, Source, registry::Loaded, rows},
    package::{
        archive::{host_version, parse},
        disk::blocking,
        load,
    },
    runtime::{Event, now_ms},
};

/// The result of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub identity: Identity,
    pub version: semver::Version,
    /// Digest of the permissions that need consent before this version runs.
    pub pending_consent: Option<Digest>,
    /// Keys of the manifest that this host does not know.
    pub unknown_keys: Vec<String>,
    pub source: Source,
    pub signed_by: Option<PublicKey>,
}

impl Shared {
    pub(crate) async fn install(self: Arc<Self>, delivery: Delivery) -> Result<Installed, CommandError> {
        let Delivery {
            archive,
            source,
            expected,
            reason,
        } = delivery;
        let reading = match source {
            Source::Bundled | Source::Market(_) => Reading::Lenient,
            Source::File | Source::Development(_) => Reading::Strict,
        };
        let (package, manifest, unknown_keys) = blocking(move || parse(&archive, reading)).await?;
        expected.check_manifest(&manifest, package.file(manifest::FILE, "manifest")?)?;
        let plugin = manifest.identity.clone();
        let _turn = self.turn(&plugin).await;
        let signed_by = self.check_signature(&package, &manifest, expected.package())?;
        let code = package.file(&manifest.entry, "entry")?.clone();
        let running = load::load_code(&*self.runtime, &manifest, manifest.language, code).await?;
        expected.check_code(&running)?;
        self.replay_fixtures(&package.files, &manifest, &running).await?;
        let release = Release {
            digest: package.digest,
            version: manifest.version.clone(),
            needed: running.needed.clone(),
            installed_ms: now_ms(),
            signed_by,
            proved_in: Some(host_version()),
        };
        let input = match reason {
            InstallReason::User => Input::Install(release, source.clone()),
            InstallReason::Update => Input::Update(release, source.clone()),
        };
        let effects = {
            let _packages = self.packages.read().await;
            let disk = self.disk.clone();
            blocking(move || Ok(disk.put(&package)?)).await?;
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

    /// Checks the signature of a package against the author's key: the one in the source's index, else that of the
    /// installed version, else that of the manifest. A user's own package may be unsigned, but an invalid signature is
    /// always refused.
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

    pub(crate) async fn install_dev(self: Arc<Self>, folder: PathBuf) -> Result<Installed, CommandError> {
        let (manifest, running) = load::load_folder(&*self.runtime, &folder).await?;
        let plugin = manifest.identity.clone();
        let _turn = self.turn(&plugin).await;
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

    pub(crate) async fn update_settings(
        &self,
        plugin: &Identity,
        batch: BTreeMap<String, String>,
    ) -> Result<(), CommandError> {
        let _turn = self.turn(plugin).await;
        let loaded = self.registry.get(plugin).ok_or(Refusal::NotInstalled)?;
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
}
