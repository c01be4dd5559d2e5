//! The errors of this crate, in one module below those that return them, so that commands can carry all of them.

use std::path::PathBuf;

use ::store::SealError;
use market::Identity;
use plugin_package::{InvalidManifest, InvalidPackage};
use private_files::FileError;

use crate::{
    policy::fault::{PluginFault, Retry},
    runtime::{CallId, LoadError},
};

/// Why plugins do not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot read the plugins")]
    Read(#[from] store::ReadError),
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// Why a package could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} is missing or damaged; install the plugin again", .0.display())]
    Damaged(PathBuf),
}

/// Why a row cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error("the row of plugin {plugin} cannot be read: {reason}")]
    Content { plugin: String, reason: String },
    #[error("the row of the market's source {id} cannot be read: {reason}")]
    Source { id: String, reason: String },
    #[error("the secrets of plugin {plugin} do not open")]
    Sealed {
        plugin: String,
        #[source]
        source: SealError,
    },
}

/// Why a change of settings was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {key}: {reason}")]
pub struct InvalidSetting {
    pub key: String,
    pub reason: String,
}

/// Why the state of a plugin forbids a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the plugin is not installed")]
    NotInstalled,
    #[error("the plugin came from the source {0}; only that one updates it")]
    OtherSource(String),
    #[error("the plugin is pinned to its version")]
    Pinned,
    #[error("the plugin asks for nothing")]
    NothingPending,
    #[error("the permissions that the plugin requests have changed; review them again")]
    OtherPermissions,
    #[error("there is no version to go back to")]
    NoPrevious,
    #[error(
        "the plugin is not signed, so nobody could tell which plugin gets its accounts back; uninstall it with its accounts"
    )]
    NoAuthor,
}

/// Why a command was refused. What was installed before still works.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Package(#[from] InvalidPackage),
    #[error(transparent)]
    Manifest(#[from] InvalidManifest),
    #[error("the plugin's code is not accepted")]
    Load(#[from] LoadError),
    #[error("plugin.json /capabilities: {0}")]
    Exports(String),
    #[error("fixture {name:?}: {reason}")]
    Fixture { name: String, reason: String },
    #[error("the package holds {found}, not {asked}")]
    OtherPlugin { asked: Identity, found: Identity },
    /// The package is signed with another key than it should be, or a file of it was changed.
    #[error(transparent)]
    Signature(#[from] market::PackageError),
    #[error("the {0} of the package is not as its source says")]
    NotAsListed(&'static str),
    #[error("the source {0} was removed")]
    SourceGone(market::SourceId),
    #[error("version {version} is malicious: {reason}")]
    Revoked { version: semver::Version, reason: String },
    /// A file in the folder of an author.
    #[error(transparent)]
    Folder(FileError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    #[error("the plugin does not ask for {0}")]
    UnknownHost(String),
    #[error("more was chosen about hosts than is kept for a plugin; install it anew to forget that")]
    TooManyHosts,
    #[error(transparent)]
    Disk(#[from] DiskError),
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
    pub plugin: Identity,
    pub version: Option<String>,
    /// The call, if it was made.
    pub call: Option<CallId>,
    pub reason: CallFailure,
    /// Hosts that were denied in the call and that the user could allow.
    pub grantable: Vec<String>,
}

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    #[error(transparent)]
    Fault(#[from] PluginFault),
    #[error("it failed several times; it is tried again in {} s", .0.as_secs())]
    Resting(std::time::Duration),
    #[error("it is disabled")]
    Disabled,
    #[error("it is disabled because it kept failing")]
    Tripped,
    #[error("it was stopped because it is malicious: {0}")]
    Revoked(String),
    #[error("it waits for your consent")]
    ConsentPending,
    #[error("it is still being loaded; try again in a moment")]
    Loading,
    #[error("it does not load: {0}")]
    NotLoaded(String),
    #[error("it cannot do that")]
    Incapable,
    #[error("it is not installed")]
    NotInstalled,
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
