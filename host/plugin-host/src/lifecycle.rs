//! The life of a plugin on this machine, as a pure function: what is installed now and what happens make what is
//! installed next, and what is to be done about it.
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

use crate::{
    error::Refusal,
    policy::grant::{Grant, HostChoice, Permissions},
    runtime::Event,
};

pub(crate) mod registry;
pub(crate) mod rows;
pub(crate) mod values;

/// What is installed of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installation {
    /// Where it came from.
    pub source: Source,
    /// What runs. A plugin under development runs from its folder instead.
    pub active: Option<Release>,
    /// What ran before.
    pub previous: Option<Release>,
    /// What will run when the user agrees to it.
    pub staged: Option<Release>,
    /// Where that came from, if a source of the market, or its author's folder, answers for what runs until then.
    pub staged_source: Option<Source>,
    /// The folder that it will run from when the user agrees to that.
    pub folder: Option<Folder>,
    /// Whether it may run.
    pub switch: Switch,
    /// What the user agreed to. What was given once stays given until the plugin is uninstalled, so that the version
    /// before can always run again.
    pub grant: Grant,
    /// It is only replaced when the user says so: the user wanted that, or the version before was put back because the new
    /// one kept failing.
    pub is_pinned: bool,
}

/// A version that lies unpacked in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    /// Names its package.
    pub digest: Digest,
    /// Its version.
    pub version: semver::Version,
    /// What it needs.
    pub needed: Permissions,
    /// When it was installed, in milliseconds since the Unix epoch.
    pub installed_ms: i64,
    /// The author's key that signed it.
    pub signed_by: Option<PublicKey>,
    /// The version of the host in which its fixtures last passed.
    pub proved_in: Option<semver::Version>,
}

/// An author's folder, as it was when its use was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Folder {
    /// Where it is.
    pub path: PathBuf,
    /// The version that lay there.
    pub version: semver::Version,
    /// What that needed.
    pub needed: Permissions,
}

/// Where a plugin came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file that the user gave.
    File,
    /// The service itself, which brings some plugins with it.
    Bundled,
    /// This source of the market.
    Market(SourceId),
    /// A folder of its author's.
    Development(PathBuf),
}

impl Source {
    /// What interfaces call the service itself as a source.
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

    /// The source of the market that it is, if it is one.
    pub(crate) fn market(&self) -> Option<&SourceId> {
        match self {
            Self::Market(id) => Some(id),
            Self::File | Self::Bundled | Self::Development(_) => None,
        }
    }

    /// Whether interfaces call something else by the name of this source.
    pub(crate) fn is_reserved(id: &SourceId) -> bool {
        [Self::BUNDLED, Self::FILE, Self::DEVELOPMENT].contains(&id.to_string().as_str())
    }

    /// Whether it alone updates what it brought.
    fn is_exclusive(&self) -> bool {
        matches!(self, Self::Bundled | Self::Market(_))
    }
}

/// Whether calls are allowed, by the user or the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Switch {
    /// It may.
    On,
    /// The user switched it off.
    Off,
    /// It kept failing.
    Tripped,
}

/// The state of a plugin as interfaces show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It is called for its URLs.
    Enabled,
    /// The user has not yet agreed to its first version.
    PendingConsent,
    /// The user switched it off.
    Disabled,
    /// It was switched off because it kept failing.
    Tripped,
    /// Its market says that it does harm.
    Revoked,
}

/// An input of the state machine.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A version was unpacked that the user wants.
    Install(Release, Source),
    /// A version was unpacked that nobody asked for: it is newer than the one that this source brought.
    Update(Release, Source),
    /// A folder is used in place.
    Develop(Folder),
    /// The user agreed to what [`Installation::asked`] named by this digest.
    Consent(Digest),
    /// The user chose about a host that the plugin can do without.
    Choose(HostPattern, HostChoice),
    /// The package of this digest did what its author recorded, in the host of this version.
    FixturesPassed(Digest, semver::Version),
    /// The user switched it on or off.
    Switch(Switch),
    /// The user wants to be asked before it is replaced, or not any more.
    Pin(bool),
    /// The version before is wanted again.
    RollBack {
        /// By the user; else because the new version keeps failing.
        by_user: bool,
    },
    /// The user does not want it any more.
    Uninstall,
}

/// What is to be done once the new state is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Load what is to run now.
    Load,
    /// Forget what failed so far.
    ForgetFaults,
    /// Remove packages that no installation uses any more.
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

    /// The state that interfaces show.
    pub(crate) fn status(&self) -> Status {
        match self.switch {
            Switch::Off => Status::Disabled,
            Switch::Tripped => Status::Tripped,
            Switch::On if self.active.is_some() || self.is_development() => Status::Enabled,
            Switch::On => Status::PendingConsent,
        }
    }

    /// What runs, else what waits for consent to run.
    pub(crate) fn current(&self) -> Option<&Release> {
        self.active.as_ref().or(self.staged.as_ref())
    }

    /// Whether a version may be another author's than what runs. What the user gave, secrets above all, was given to
    /// that one. Its author is known by a key; where nobody signed, a file is no successor of what came from elsewhere, and
    /// a folder, whose content changes, is not the author of any package.
    pub(crate) fn has_other_author(&self, release: &Release, source: &Source) -> bool {
        if self.is_development() {
            return true;
        }
        self.active.as_ref().is_some_and(|active| {
            let is_unsigned = active.signed_by.is_none() && release.signed_by.is_none();
            active.signed_by != release.signed_by || (is_unsigned && self.source != *source)
        })
    }

    /// Where the version came from that waits.
    pub(crate) fn source_of_staged(&self) -> &Source {
        self.staged_source.as_ref().unwrap_or(&self.source)
    }

    /// Names what the user is asked: about a folder that is to be used, else about the version that waits. That is what it
    /// needs, and its author if that is another one.
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

    /// The active release, if its fixtures have not passed in this version of the host yet. Code from an author's
    /// folder is exempt.
    pub(crate) fn fixtures_due(&self, host: &semver::Version) -> Option<&Release> {
        let active = self.active.as_ref().filter(|_| !self.is_development());
        active.filter(|active| active.proved_in.as_ref() != Some(host))
    }

    /// Whether it runs from its author's folder.
    pub(crate) fn is_development(&self) -> bool {
        matches!(self.source, Source::Development(_))
    }

    /// Whether the same code runs of both.
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
            // The active version keeps running, and its source still answers for it.
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

    /// What waits for consent waits no longer: the user wanted the folder after it.
    fn develop(&mut self, path: PathBuf) -> Vec<Effect> {
        self.source = Source::Development(path);
        self.staged = None;
        self.staged_source = None;
        self.folder = None;
        vec![Effect::Load, Effect::ForgetFaults, Effect::Collect]
    }

    /// Uses the folder again that is in use, or another one once the user agrees: it gets what was given to the plugin of
    /// this name until now, which are secrets, cookies, settings and what it remembers.
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
            Input::Uninstall => unreachable!("it leaves nothing to apply it to"),
        })
    }
}

/// What is installed next, and what is to be done about it. Refused, nothing changes.
pub(crate) fn apply(now: Option<Installation>, input: Input) -> Result<(Option<Installation>, Vec<Effect>), Refusal> {
    let mut next = match (&input, now) {
        (Input::Uninstall, Some(_)) => {
            return Ok((
                None,
                vec![
                    Effect::ForgetFaults,
                    Effect::Collect,
                    Effect::Record(Event::Uninstalled),
                ],
            ));
        }
        // Uninstalling what is not there is what was wanted.
        (Input::Uninstall, None) => return Ok((None, vec![])),
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
