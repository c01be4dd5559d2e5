//! The errors of the commands. After an error, nothing was published.

use std::{io, path::PathBuf};

use market::{
    PackageError,
    fetch::{DownloadError, Failures, PlaceError, RefreshError},
};
use private_files::FileError;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// A file or folder cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is not a key file, or the passphrase is wrong.
    #[error("cannot use the key {}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The passphrase could not be read.
    #[error("cannot ask for a passphrase")]
    Passphrase(#[source] io::Error),
    /// A file of the source is damaged or missing.
    #[error("{place} of the source: {reason}")]
    Source {
        /// The path of the file in the source.
        place: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The package is damaged or incomplete, or hosts would refuse to install it.
    #[error("the package cannot be used: {0}")]
    Archive(String),
    /// The package's signature or its list of files is wrong.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// The command contradicts the state of the source or of the package.
    #[error("{0}")]
    Refused(String),
    /// The verification of a source failed.
    #[error("the source cannot be verified{}", reasons(.0))]
    Refresh(Failures),
    /// A package of the index is missing or wrong.
    #[error("a package of the source is missing or wrong{}", places(.0))]
    Download(DownloadError),
    /// The address cannot be bound.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The output cannot be written.
    #[error("cannot print")]
    Print(#[source] io::Error),
}

/// The kind of an error, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command cannot be executed as given.
    Usage,
    /// Something is unsigned, damaged or fails verification.
    Untrusted,
    /// A file cannot be read or written.
    Disk,
    /// A server cannot be reached or refuses.
    Network,
}

impl ToolError {
    pub(crate) fn archive(reason: &impl ToString) -> Self {
        Self::Archive(reason.to_string())
    }

    pub(crate) fn source(place: impl Into<String>, reason: &impl ToString) -> Self {
        Self::Source {
            place: place.into(),
            reason: reason.to_string(),
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Refused(_) | Self::Archive(_) | Self::Key { .. } | Self::Passphrase(_) => Kind::Usage,
            Self::Package(_) | Self::Source { .. } => Kind::Untrusted,
            Self::Refresh(failures) if failures.0.iter().any(|error| !is_absence(error)) => Kind::Untrusted,
            Self::Download(error) if error.0.iter().any(|(_, error)| is_wrong(error)) => Kind::Untrusted,
            Self::File(_) | Self::Print(_) => Kind::Disk,
            Self::Refresh(_) | Self::Download(_) | Self::Listen { .. } => Kind::Network,
        }
    }
}

/// Whether a file was missing, rather than wrong.
fn is_absence(error: &RefreshError) -> bool {
    matches!(error, RefreshError::Origin { .. })
}

fn is_wrong(error: &PlaceError) -> bool {
    matches!(error, PlaceError::Package(_))
}

/// The error of every mirror, each with its causes.
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
