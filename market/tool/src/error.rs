//! Why a command of the market's tool was refused. Nothing was published then.

use std::{io, path::PathBuf};

use market::{
    PackageError,
    fetch::{DownloadError, Failures, PlaceError, RefreshError},
};
use plugin_package::InvalidPackage;

/// Why a command was refused.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A file or folder cannot be used.
    #[error("cannot {act} {}", path.display())]
    Io {
        /// What was to be done.
        act: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A key file that is none, or a wrong passphrase.
    #[error("cannot use the key {}: {reason}", path.display())]
    Key {
        /// Which.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// No passphrase came.
    #[error("cannot ask for a passphrase")]
    Passphrase(#[source] io::Error),
    /// A file of the source is damaged or missing.
    #[error("{place} of the source: {reason}")]
    Source {
        /// Which.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The archive is no package.
    #[error("the package cannot be used: {0}")]
    Archive(String),
    /// Hosts would refuse to install the archive.
    #[error("the package cannot be used: {0}")]
    Unpack(#[from] InvalidPackage),
    /// The package's signature or its list of files is wrong.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// What was asked for would not be right.
    #[error("{0}")]
    Refused(String),
    /// No place of a source can be believed.
    #[error("the source cannot be believed{}", reasons(.0))]
    Refresh(Failures),
    /// A package is missing or wrong.
    #[error("the source does not hold what it promises{}", places(.0))]
    Download(DownloadError),
    /// Nothing can listen there.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: std::net::SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The answer cannot be printed.
    #[error("cannot print")]
    Print(#[source] io::Error),
}

/// What kind of end an error is, for exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command cannot be carried out as given.
    Usage,
    /// Something is not signed, not whole or not believed.
    Untrusted,
    /// A file cannot be read or written.
    Disk,
    /// A server does not give what is asked for.
    Network,
}

impl ToolError {
    pub(crate) fn io(act: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { act, path, source }
    }

    pub(crate) fn source(place: impl Into<String>, reason: &impl ToString) -> Self {
        Self::Source {
            place: place.into(),
            reason: reason.to_string(),
        }
    }

    /// What kind of end it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Refused(_) | Self::Archive(_) | Self::Unpack(_) | Self::Key { .. } | Self::Passphrase(_) => {
                Kind::Usage
            }
            Self::Package(_) | Self::Source { .. } => Kind::Untrusted,
            Self::Refresh(failures) if failures.0.iter().any(|error| !is_absence(error)) => Kind::Untrusted,
            Self::Download(error) if error.0.iter().any(|(_, error)| is_wrong(error)) => Kind::Untrusted,
            Self::Io { .. } | Self::Print(_) => Kind::Disk,
            Self::Refresh(_) | Self::Download(_) | Self::Listen { .. } => Kind::Network,
        }
    }
}

/// Whether nothing came, rather than something wrong.
fn is_absence(error: &RefreshError) -> bool {
    matches!(error, RefreshError::Origin { .. })
}

fn is_wrong(error: &PlaceError) -> bool {
    matches!(error, PlaceError::Package(_))
}

/// The reasons of every place, each with its causes.
fn reasons(failures: &Failures) -> String {
    failures
        .0
        .iter()
        .fold(String::new(), |text, error| text + ": " + &chain(error))
}

fn places(error: &DownloadError) -> String {
    let places = error.0.iter();
    places.fold(String::new(), |text, (place, error)| {
        text + "; " + place + ": " + &chain(error)
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
