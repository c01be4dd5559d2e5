//! The state machine of an installed plugin. Pure: the present installation and an input give the next installation and
//! the effects to perform.
//!
//! ```text
//!            install                 consent
//!  (nothing) ───────► pending consent ──────► enabled ◄──► disabled by the user or by the breaker
//!                └──────────────────────────────▲  │
//!                   nothing new to agree to     └──┘ install: at once, or staged until there is consent; roll back;
//!                                                    develop: the folder waits for consent
//! ```

use std::{collections::BTreeSet, path::PathBuf};

use market::{Digest, PublicKey, SourceId};
use plugin_package::HostPattern;
use serde::{Deserialize, Serialize};

use crate::{
    as_text::{OptionalText, Text},
    error::Refusal,
    policy::grant::{Grant, HostChoice, Permissions},
    runtime::Event,
};

pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod values;

/// The state of an installed plugin, and the content of its row: a renamed field needs a migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Installation {
    /// Where it came from.
    pub source: Source,
    /// The running version. A plugin under development runs from its folder instead.
    pub active: Option<Release>,
    /// The previous version, for a rollback.
    pub previous: Option<Release>,
    /// A version that waits for consent.
    pub staged: Option<Release>,
    /// The source of the staged version, if it differs from that of the running one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged_source: Option<Source>,
    /// A folder that waits for consent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Folder>,
    /// Whether it may run.
    pub switch: Switch,
    /// The consents of the user. They are kept until the plugin is uninstalled, so that the previous version can always
    /// run again.
    #[serde(flatten)]
    pub grant: Grant,
    /// No automatic updates: the user pinned it, or it was rolled back because the new version kept failing.
    pub is_pinned: bool,
}

/// An unpacked version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Release {
    /// Digest of its package.
    #[serde(with = "Text")]
    pub digest: Digest,
    #[serde(with = "Text")]
    pub version: semver::Version,
    pub needed: Permissions,
    /// When it was installed, in milliseconds since the Unix epoch.
    pub installed_ms: i64,
    #[serde(default, with = "OptionalText", skip_serializing_if = "Option::is_none")]
    pub signed_by: Option<PublicKey>,
    /// The version of the host in which its fixtures last passed.
    #[serde(default, with = "OptionalText", skip_serializing_if = "Option::is_none")]
    pub proved_in: Option<semver::Version>,
}

/// An author's folder, as of the request to use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Folder {
    pub path: PathBuf,
    #[serde(with = "Text")]
    pub version: semver::Version,
    pub needed: Permissions,
}

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// An archive from the user.
    File,
    /// The plugins bundled with the service.
    Bundled,
    /// A market source.
    Market(#[serde(with = "Text")] SourceId),
    /// The author's folder.
    Development(PathBuf),
}

impl Source {
    /// The name of the bundled source in interfaces.
    pub const BUNDLED: &str = "bundled";
    const FILE: &str = "file";
    const DEVELOPMENT: &str = "development";

    /// Its name in interfaces.
    pub fn name(&self) -> String {
        match self {
            Self::File => Self::FILE.to_owned(),
            Self::Bundled => Self::BUNDLED.to_owned(),
            Self::Market(id) => id.to_string(),
            Self::Development(_) => Self::DEVELOPMENT.to_owned(),
        }
    }

    /// The market source, if it is one.
    pub(crate) fn market(&self) -> Option<&SourceId> {
        match self {
            Self::Market(id) => Some(id),
            Self::File | Self::Bundled | Self::Development(_) => None,
        }
    }

    /// Whether the id of a source is reserved.
    pub(crate) fn is_reserved(id: &SourceId) -> bool {
        [Self::BUNDLED, Self::FILE, Self::DEVELOPMENT].contains(&id.to_string().as_str())
    }

    /// Whether only this source may update the plugin.
    fn is_exclusive(&self) -> bool {
        matches!(self, Self::Bundled | Self::Market(_))
    }
}

/// Whether user and breaker allow calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Switch {
    /// Calls are allowed.
    On,
    /// The user switched it off.
    Off,
    /// The breaker disabled it.
    Tripped,
}

/// The state of a plugin as interfaces show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It can be called.
    Enabled,
    /// The user has not yet agreed to its first version.
    PendingConsent,
    /// The user switched it off.
    Disabled,
    /// It was switched off because it kept failing.
    Tripped,
    /// Its source has revoked it as malicious.
    Revoked,
}

/// An input of the state machine.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Install an unpacked version on request of the user.
    Install(Release, Source),
    /// Install an unpacked version as an automatic update from its own source.
    Update(Release, Source),
    /// Use a folder in place.
    Develop(Folder),
    /// The user consents to what [`Installation::asked`] identified by this digest.
    Consent(Digest),
    Choose(HostPattern, HostChoice),
    /// The fixtures of this package passed in this host version.
    FixturesPassed(Digest, semver::Version),
    /// The user or the breaker enables or disables it.
    Switch(Switch),
    Pin(bool),
    /// Return to the previous version.
    RollBack {
        /// On request of the user; else because the new version keeps failing.
        by_user: bool,
    },
    Uninstall {
        /// Its accounts stay, for another installation by the same author.
        keeps_accounts: bool,
    },
}

/// A side effect to perform after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Load the version that must run now.
    Load,
    /// Reset breaker and site health.
    ForgetFaults,
    /// Delete packages that no installation uses any more.
    Collect,
    /// Append to the journal.
    Record(Event),
}

impl Installation {
    fn new(source: Source) -> Self {
        Self {
            source,
            active: None,
            previous: None,
            staged: None,
            staged_source: None,
            folder: None,
            switch: Switch::On,
            grant: Grant::default(),
            is_pinned: false,
        }
    }

    /// The status that interfaces show.
    pub(crate) fn status(&self) -> Status {
        match self.switch {
            Switch::Off => Status::Disabled,
            Switch::Tripped => Status::Tripped,
            Switch::On if self.active.is_some() || self.is_development() => Status::Enabled,
            Switch::On => Status::PendingConsent,
        }
    }

    /// The running version, else the one waiting for consent.
    pub(crate) fn current(&self) -> Option<&Release> {
        self.active.as_ref().or(self.staged.as_ref())
    }

    /// Who wrote it, as far as that is certain: the signing key, or that it is bundled with the service.
    pub(crate) fn author(&self) -> Option<String> {
        let release = self.active.as_ref().or(self.staged.as_ref())?;
        match (&release.signed_by, &self.source) {
            (Some(key), _) => Some(key.to_string()),
            (None, Source::Bundled) => Some(Source::BUNDLED.to_owned()),
            (None, _) => None,
        }
    }

    /// Whether a version may be from another author than the running one. The user entrusted secrets to that author, so
    /// another one needs consent. Authors are identified by their keys; an unsigned file does not succeed a version
    /// from elsewhere, and a folder, whose content changes, does not succeed any package.
    pub(crate) fn has_other_author(&self, release: &Release, source: &Source) -> bool {
        if self.is_development() {
            return true;
        }
        self.active.as_ref().is_some_and(|active| {
            let is_unsigned = active.signed_by.is_none() && release.signed_by.is_none();
            active.signed_by != release.signed_by || (is_unsigned && self.source != *source)
        })
    }

    /// The source of the staged version.
    pub(crate) fn source_of_staged(&self) -> &Source {
        self.staged_source.as_ref().unwrap_or(&self.source)
    }

    /// Digest of what the user must consent to: the use of a folder, else the permissions of the staged version, and
    /// its author if that changes.
    pub(crate) fn asked(&self) -> Option<Digest> {
        if let Some(Folder { path, needed, .. }) = &self.folder {
            let asked = format!("{} in the folder {}", needed.digest(), path.display());
            return Some(Digest::of(asked.as_bytes()));
        }
        let staged = self.staged.as_ref()?;
        let needed = staged.needed.digest();
        if !self.has_other_author(staged, self.source_of_staged()) {
            return Some(needed);
        }
        let author = staged.signed_by.map_or_else(String::new, |key| key.to_string());
        Some(Digest::of(format!("{needed} by {author}").as_bytes()))
    }

    /// The running version, if its fixtures have not passed in this host version yet.
    pub(crate) fn fixtures_due(&self, host: &semver::Version) -> Option<&Release> {
        let active = self.active.as_ref().filter(|_| !self.is_development());
        active.filter(|active| active.proved_in.as_ref() != Some(host))
    }

    /// Whether it runs from its author's folder.
    pub(crate) fn is_development(&self) -> bool {
        matches!(self.source, Source::Development(_))
    }

    /// Whether both run the same code.
    pub(crate) fn runs_as(&self, other: &Self) -> bool {
        let digest = |it: &Self| it.active.as_ref().map(|active| active.digest);
        self.source == other.source && digest(self) == digest(other)
    }

    /// The packages it needs.
    pub(crate) fn digests(&self) -> BTreeSet<Digest> {
        let releases = [&self.active, &self.previous, &self.staged];
        releases.into_iter().flatten().map(|release| release.digest).collect()
    }

    fn activate(&mut self, release: Release) -> Vec<Effect> {
        let before = self.active.replace(release);
        if before.as_ref().map(|before| before.digest) != self.active.as_ref().map(|active| active.digest) {
            self.previous = before;
        }
        self.staged = None;
        self.staged_source = None;
        self.folder = None;
        self.is_pinned = false;
        if self.switch == Switch::Tripped {
            self.switch = Switch::On;
        }
        vec![Effect::Load, Effect::ForgetFaults, Effect::Collect]
    }

    fn install(&mut self, release: Release, source: Source) -> Result<Vec<Effect>, Refusal> {
        if self.source.is_exclusive() && source.is_exclusive() && self.source != source {
            return Err(Refusal::OtherSource(self.source.name()));
        }
        let version = release.version.to_string();
        let is_agreed =
            release.needed.beyond(&self.grant.allowed).is_empty() && !self.has_other_author(&release, &source);
        let mut effects = if is_agreed {
            self.source = source;
            self.activate(release)
        } else {
            self.staged = Some(release);
            self.staged_source = None;
            self.folder = None;
            // The active version keeps running, with its own source.
            if self.active.is_some() && self.source != source || self.is_development() {
                self.staged_source = Some(source);
            } else {
                self.source = source;
            }
            vec![Effect::Load, Effect::Collect]
        };
        effects.push(Effect::Record(Event::Installed { version }));
        Ok(effects)
    }

    fn consent(&mut self, digest: Digest) -> Result<Vec<Effect>, Refusal> {
        let asked = self.asked().ok_or(Refusal::NothingPending)?;
        if asked != digest {
            return Err(Refusal::OtherPermissions);
        }
        if let Some(folder) = self.folder.take() {
            let mut effects = self.develop(folder.path);
            effects.push(Effect::Record(Event::Consented));
            return Ok(effects);
        }
        let staged = self.staged.take().ok_or(Refusal::NothingPending)?;
        let allowed = self.grant.allowed.iter().chain(staged.needed.iter()).cloned();
        self.grant.allowed = allowed.collect();
        if let Some(source) = self.staged_source.take() {
            self.source = source;
        }
        let mut effects = self.activate(staged);
        effects.push(Effect::Record(Event::Consented));
        Ok(effects)
    }

    /// Drops a staged version, because the user chose the folder after it.
    fn develop(&mut self, path: PathBuf) -> Vec<Effect> {
        self.source = Source::Development(path);
        self.staged = None;
        self.staged_source = None;
        self.folder = None;
        vec![Effect::Load, Effect::ForgetFaults, Effect::Collect]
    }

    /// Uses the present folder again; another folder needs consent, because it gets the secrets, cookies, settings and
    /// storage of the installed plugin.
    fn develop_or_ask(&mut self, folder: Folder) -> Vec<Effect> {
        if self.source == Source::Development(folder.path.clone()) {
            return self.develop(folder.path);
        }
        let version = folder.version.to_string();
        self.folder = Some(folder);
        vec![Effect::Record(Event::Installed { version })]
    }

    fn roll_back(&mut self, by_user: bool) -> Result<Vec<Effect>, Refusal> {
        let previous = self.previous.take().ok_or(Refusal::NoPrevious)?;
        self.previous = self.active.replace(previous);
        self.is_pinned = true;
        if self.switch == Switch::Tripped {
            self.switch = Switch::On;
        }
        let event = Event::RolledBack { by_user };
        Ok(vec![Effect::Load, Effect::ForgetFaults, Effect::Record(event)])
    }

    fn apply(&mut self, input: Input) -> Result<Vec<Effect>, Refusal> {
        Ok(match input {
            Input::Install(release, source) => self.install(release, source)?,
            Input::Update(_, source) if self.source != source => return Err(Refusal::OtherSource(self.source.name())),
            Input::Update(..) if self.is_pinned => return Err(Refusal::Pinned),
            Input::Update(release, source) => self.install(release, source)?,
            Input::Develop(folder) => self.develop_or_ask(folder),
            Input::Consent(digest) => self.consent(digest)?,
            Input::Choose(host, choice) => {
                match choice {
                    HostChoice::Once => drop(self.grant.optional.remove(&host)),
                    HostChoice::Always => drop(self.grant.optional.insert(host.clone(), true)),
                    HostChoice::Never => drop(self.grant.optional.insert(host.clone(), false)),
                }
                vec![Effect::Record(Event::HostChosen {
                    host: host.to_string(),
                    choice: choice.name(),
                })]
            }
            Input::FixturesPassed(digest, host) => {
                if let Some(active) = self.active.as_mut().filter(|active| active.digest == digest) {
                    active.proved_in = Some(host);
                }
                vec![]
            }
            Input::Switch(switch) => {
                self.switch = switch;
                let event = match switch {
                    Switch::Tripped => Event::Tripped,
                    Switch::On | Switch::Off => Event::Switched {
                        is_on: switch == Switch::On,
                    },
                };
                vec![Effect::ForgetFaults, Effect::Record(event)]
            }
            Input::Pin(is_pinned) => {
                self.is_pinned = is_pinned;
                vec![Effect::Record(Event::Pinned { is_pinned })]
            }
            Input::RollBack { by_user } => self.roll_back(by_user)?,
            Input::Uninstall { .. } => unreachable!("it leaves nothing to apply it to"),
        })
    }
}

/// Computes the next installation and the effects. A refusal changes nothing.
pub(crate) fn apply(now: Option<Installation>, input: Input) -> Result<(Option<Installation>, Vec<Effect>), Refusal> {
    let mut next = match (&input, now) {
        (Input::Uninstall { .. }, Some(_)) => {
            return Ok((
                None,
                vec![
                    Effect::ForgetFaults,
                    Effect::Collect,
                    Effect::Record(Event::Uninstalled),
                ],
            ));
        }
        // Uninstalling is idempotent.
        (Input::Uninstall { .. }, None) => return Ok((None, vec![])),
        (_, Some(now)) => now,
        (Input::Install(_, source), None) => Installation::new(source.clone()),
        (Input::Develop(folder), None) => Installation::new(Source::Development(folder.path.clone())),
        (_, None) => return Err(Refusal::NotInstalled),
    };
    let effects = next.apply(input)?;
    Ok((Some(next), effects))
}

#[cfg(test)]
mod tests;
