//! The errors of this crate, in one module below those that return them, so that commands can carry all of them.

use std::{io, path::PathBuf};

use ::store::SealError;
use market::Identity;
use plugin_package::{InvalidManifest, InvalidPackage};

use crate::{
    policy::fault::{PluginFault, Retry},
    runtime::{CallId, LoadError},
};

/// Why plugins do not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The rows cannot be read.
    #[error("cannot read the plugins")]
    Read(#[from] store::ReadError),
    /// A row has content that no version writes.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The packages cannot be used.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why a package could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// An I/O error.
    #[error("cannot {act} {}", path.display())]
    Io {
        /// The action.
        act: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file differs from what was unpacked.
    #[error("{} is missing or damaged; install the plugin again", .0.display())]
    Damaged(PathBuf),
}

/// Why a row cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// It has content that no version writes.
    #[error("the row of plugin {plugin} cannot be read: {reason}")]
    Content {
        /// The plugin.
        plugin: String,
        /// What is wrong.
        reason: String,
    },
    /// The row of a source has such content.
    #[error("the row of the market's source {id} cannot be read: {reason}")]
    Source {
        /// The source.
        id: String,
        /// What is wrong.
        reason: String,
    },
    /// Its secrets cannot be decrypted.
    #[error("the secrets of plugin {plugin} do not open")]
    Sealed {
        /// The plugin.
        plugin: String,
        /// Why not.
        #[source]
        source: SealError,
    },
}

/// Why a change of settings was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {key}: {reason}")]
pub struct InvalidSetting {
    /// The first invalid setting.
    pub key: String,
    /// What is wrong.
    pub reason: String,
}

/// Why the state of a plugin forbids a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not installed.
    #[error("the plugin is not installed")]
    NotInstalled,
    /// It came from another source, which alone may update it.
    #[error("the plugin came from the source {0}; only that one updates it")]
    OtherSource(String),
    /// It is pinned.
    #[error("the plugin is pinned to its version")]
    Pinned,
    /// Nothing waits for consent.
    #[error("the plugin asks for nothing")]
    NothingPending,
    /// The consent is for other permissions than are asked for now.
    #[error("what the plugin asks for has changed; look again")]
    OtherPermissions,
    /// There is no previous version.
    #[error("there is no version to go back to")]
    NoPrevious,
}

/// Why a command was refused. What was installed before still works.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The archive is not a package.
    #[error(transparent)]
    Package(#[from] InvalidPackage),
    /// The manifest is wrong.
    #[error(transparent)]
    Manifest(#[from] InvalidManifest),
    /// The code does not load.
    #[error("the plugin's code is not accepted")]
    Load(#[from] LoadError),
    /// The code's exports differ from the manifest.
    #[error("plugin.json /capabilities: {0}")]
    Exports(String),
    /// A fixture fails.
    #[error("fixture {name:?}: {reason}")]
    Fixture {
        /// Which one.
        name: String,
        /// What differs.
        reason: String,
    },
    /// The package is another plugin than the requested one.
    #[error("the package holds {found}, not {asked}")]
    OtherPlugin {
        /// What was asked for.
        asked: Identity,
        /// What it is.
        found: Identity,
    },
    /// The package is signed with another key than it should be, or a file of it was changed.
    #[error(transparent)]
    Signature(#[from] market::PackageError),
    /// The package differs from its entry in the source's index.
    #[error("the {0} of the package is not as its source says")]
    NotAsListed(&'static str),
    /// The source was removed meanwhile.
    #[error("the source {0} was removed")]
    SourceGone(market::SourceId),
    /// The version to return to is revoked.
    #[error("version {version} is malicious: {reason}")]
    Revoked {
        /// Which version.
        version: semver::Version,
        /// Why.
        reason: String,
    },
    /// A folder of an author cannot be read.
    #[error("cannot read {}", path.display())]
    Folder {
        /// Which file of it.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The plugin's present state does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A setting is unknown or its value does not fit.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The plugin does not ask for this host.
    #[error("the plugin does not ask for {0}")]
    UnknownHost(String),
    /// The limit of host choices is reached.
    #[error("more was chosen about hosts than is kept for a plugin; install it anew to forget that")]
    TooManyHosts,
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The database failed.
    #[error(transparent)]
    Write(#[from] store::WriteError),
    /// The work panicked or the process is shutting down.
    #[error("plugins are shutting down")]
    Closed,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plugin {plugin}: {reason}")]
pub struct CallError {
    /// The plugin.
    pub plugin: Identity,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// The call, if it was made.
    pub call: Option<CallId>,
    /// Why.
    pub reason: CallFailure,
    /// Hosts that were denied in the call and that the user could allow.
    pub grantable: Vec<String>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// The call was made and failed.
    #[error(transparent)]
    Fault(#[from] PluginFault),
    /// The plugin's breaker is open.
    #[error("it failed several times; it is tried again in {} s", .0.as_secs())]
    Resting(std::time::Duration),
    /// The user switched it off.
    #[error("it is disabled")]
    Disabled,
    /// It was disabled because it kept failing.
    #[error("it is disabled because it kept failing")]
    Tripped,
    /// Its source has revoked it as malicious.
    #[error("it was stopped because it is malicious: {0}")]
    Revoked(String),
    /// The user has not yet agreed to what it may do.
    #[error("it waits for your consent")]
    ConsentPending,
    /// Its code is still being loaded.
    #[error("it is still being loaded; try again in a moment")]
    Loading,
    /// It does not load.
    #[error("it does not load: {0}")]
    NotLoaded(String),
    /// It does not have the requested function.
    #[error("it cannot do that")]
    Incapable,
    /// There is no such plugin.
    #[error("it is not installed")]
    NotInstalled,
    /// Plugins are shutting down.
    #[error("plugins are shutting down")]
    Closed,
}

impl CallFailure {
    /// Its name in interfaces; never changes.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.code(),
            Self::Resting(_) | Self::Closed | Self::Loading => "overloaded",
            Self::Disabled | Self::Tripped => "disabled",
            Self::Revoked(_) => "revoked",
            Self::ConsentPending => "consentPending",
            Self::NotLoaded(_) => "notLoaded",
            Self::Incapable => "unsupported",
            Self::NotInstalled => "notInstalled",
        }
    }

    /// Whether and when the call is worth repeating.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Fault(fault) => fault.retry(),
            Self::Resting(pause) => Retry::Backoff(Some(*pause)),
            Self::Closed | Self::Loading => Retry::Backoff(None),
            Self::ConsentPending => Retry::AfterUser,
            Self::Disabled
            | Self::Tripped
            | Self::Revoked(_)
            | Self::NotLoaded(_)
            | Self::Incapable
            | Self::NotInstalled => Retry::Never,
        }
    }
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
