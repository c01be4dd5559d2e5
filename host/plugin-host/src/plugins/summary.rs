//! Summaries of plugins for clients. No field holds a secret.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use market::{Digest, Identity, PublicKey, Revocation};
use plugin_package::Manifest;

use crate::{
    lifecycle::{
        Installation, Source, Status,
        registry::{DevelopmentError, Idle, Loaded},
    },
    policy::{
        grant::{HostChoice, Permission, Permissions},
        health::{Condition, Health},
    },
};

/// A summary of one plugin.
#[derive(Debug, Clone)]
pub struct PluginSummary {
    pub identity: Identity,
    /// The manifest of the running version, else of the one waiting for consent; `None` if unreadable.
    pub manifest: Option<Arc<Manifest>>,
    pub status: Status,
    pub source: Source,
    /// The key of the author who signed it.
    pub signed_by: Option<PublicKey>,
    pub revocation: Option<Revocation>,
    /// The digest of the code that runs, as it is in the package or the folder.
    pub code: Option<Digest>,
    /// Why it has no running code, if so.
    pub idle: Option<Idle>,
    /// Why the present content of its author's folder does not run.
    pub development_error: Option<DevelopmentError>,
    /// The permissions that the code's imports need.
    pub permissions: Vec<Permission>,
    /// The user's choices about optional hosts; undecided ones are absent.
    pub host_choices: BTreeMap<String, HostChoice>,
    /// A version that waits for consent.
    pub pending: Option<Pending>,
    /// The version that a rollback would return to.
    pub previous: Option<semver::Version>,
    pub is_pinned: bool,
    /// The values that it reads: the user's, else the defaults.
    pub values: BTreeMap<String, String>,
    /// Which secret settings have a value.
    pub secrets_set: BTreeSet<String>,
    /// How its calls went, and since when, in milliseconds of the Unix epoch.
    pub condition: (Condition, i64),
}

/// A version that waits for consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    pub version: semver::Version,
    /// The permissions that are not granted yet.
    pub added: Vec<Permission>,
    /// The key of the author who signed it.
    pub signed_by: Option<PublicKey>,
    /// Whether it may be from another author than the running version. Consent gives this author the secrets that were
    /// entrusted to the other.
    pub has_other_author: bool,
    /// The folder to run from, whatever its content. Consent gives it the plugin's present secrets and settings, and
    /// everything that it will ask for.
    pub folder: Option<PathBuf>,
    /// Digest of all of that, for the consent.
    pub digest: Digest,
}

fn pending(installation: &Installation) -> Option<Pending> {
    let digest = installation.asked()?;
    let added = |needed: &Permissions| needed.beyond(&installation.grant.allowed);
    if let Some(folder) = &installation.folder {
        return Some(Pending {
            version: folder.version.clone(),
            added: added(&folder.needed),
            signed_by: None,
            has_other_author: true,
            folder: Some(folder.path.clone()),
            digest,
        });
    }
    let staged = installation.staged.as_ref()?;
    Some(Pending {
        version: staged.version.clone(),
        added: added(&staged.needed),
        signed_by: staged.signed_by,
        has_other_author: installation.has_other_author(staged, installation.source_of_staged()),
        folder: None,
        digest,
    })
}

impl PluginSummary {
    pub(crate) fn of(identity: &Identity, loaded: &Loaded, health: &Health) -> Self {
        let installation = &loaded.installation;
        let definitions = loaded.manifest.as_ref().map_or(&[][..], |manifest| &manifest.settings);
        let needed = match (&loaded.running, &installation.active) {
            (Ok(running), _) => Some(&running.needed),
            (Err(_), active) => active.as_ref().map(|active| &active.needed),
        };
        let choices = installation.grant.optional.iter();
        Self {
            identity: identity.clone(),
            status: loaded.status(),
            source: installation.source.clone(),
            signed_by: installation.current().and_then(|release| release.signed_by),
            revocation: loaded.revocation.clone(),
            code: loaded.running.as_ref().ok().map(|running| running.code),
            idle: loaded.running.as_ref().err().cloned(),
            development_error: loaded.development_error.clone(),
            permissions: needed.into_iter().flat_map(Permissions::iter).cloned().collect(),
            host_choices: choices
                .map(|(host, is_always)| {
                    let choice = if *is_always {
                        HostChoice::Always
                    } else {
                        HostChoice::Never
                    };
                    (host.to_string(), choice)
                })
                .collect(),
            pending: pending(installation),
            previous: installation.previous.as_ref().map(|previous| previous.version.clone()),
            is_pinned: installation.is_pinned,
            values: loaded.values.effective(definitions),
            secrets_set: loaded.values.secret.keys().cloned().collect(),
            condition: health.condition(identity),
            manifest: loaded.manifest.clone(),
        }
    }

    /// Its author's folder, if it runs from there.
    pub fn development_folder(&self) -> Option<&PathBuf> {
        match &self.source {
            Source::Development(folder) => Some(folder),
            Source::File | Source::Bundled | Source::Market(_) => None,
        }
    }
}
