//! Errors of the market.

use market::{
    Identity, InvalidLink, OriginError, SourceId, VerifyError,
    choice::Unfit,
    fetch::{DownloadError, Failures, PlaceError, RefreshError},
};
use semver::Version;

use crate::error::{CommandError, chain};

/// Why a command to the market was refused. What was installed before still works.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    #[error("no source has the plugin {0}")]
    NotInMarket(Identity),
    #[error("there is no source {0}")]
    UnknownSource(String),
    #[error("several sources have the plugin {plugin}: {}; say which", sources.join(", "))]
    Ambiguous { plugin: Identity, sources: Vec<String> },
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("the newest version is {newest}, not {asked}")]
    VersionChanged {
        /// What the user was shown.
        asked: Version,
        newest: Version,
    },
    #[error("version {offered} is older than what is installed; name it to go back to it")]
    Older { offered: Version },
    #[error("nothing is installed from the source {id}: what is known of it is out of date{}", trouble.as_ref().map(|trouble| format!(" ({trouble})")).unwrap_or_default())]
    Stale { id: SourceId, trouble: Option<Trouble> },
    #[error(transparent)]
    Refresh(#[from] Trouble),
    #[error("the package was not downloaded: {}", mirror_errors(.0))]
    Download(#[source] DownloadError),
    #[error("the package was not downloaded within {} s", .0.as_secs())]
    TooSlow(std::time::Duration),
    #[error(transparent)]
    Link(#[from] InvalidLink),
    #[error("the key of the link has another fingerprint: {0}")]
    Fingerprint(String),
    #[error("the source {0} is there already")]
    SourceExists(String),
    #[error("a source with the id {0} cannot be added: the id is reserved")]
    ReservedSource(SourceId),
    #[error("there are {0} sources, which is the most")]
    TooManySources(usize),
    #[error("plugins came from the source {source_name}: {}; uninstall them first", plugins.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    SourceInUse {
        source_name: String,
        plugins: Vec<Identity>,
    },
    #[error("the bundled source is part of the service")]
    BundledSource,
    #[error(transparent)]
    Plugin(#[from] CommandError),
}

impl From<store::WriteError> for MarketError {
    fn from(error: store::WriteError) -> Self {
        Self::Plugin(error.into())
    }
}

/// The errors of all mirrors, without their long URLs.
fn mirror_errors(error: &DownloadError) -> String {
    let mut reasons: Vec<_> = error.0.iter().map(|(_, error)| error.to_string()).collect();
    reasons.dedup();
    reasons.join("; ")
}

impl MarketError {
    /// Whether mirrors sent more bytes than the index says.
    pub fn is_too_large(&self) -> bool {
        self.is_of_places(|error| matches!(error, PlaceError::Origin(OriginError::TooLarge(_))))
    }

    /// Whether mirrors sent other bytes than the index says.
    pub fn is_other_package(&self) -> bool {
        self.is_of_places(|error| matches!(error, PlaceError::Package(_)))
    }

    fn is_of_places(&self, is_it: fn(&PlaceError) -> bool) -> bool {
        matches!(self, Self::Download(DownloadError(places)) if places.iter().any(|(_, error)| is_it(error)))
    }
}

/// Why a refresh of a source failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    pub kind: TroubleKind,
    /// For the user.
    pub message: String,
}

/// The kinds of trouble with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum TroubleKind {
    /// It does not answer, or not in time.
    Unreachable,
    Invalid,
    /// Its index is older than one seen before.
    Rollback,
}

impl Trouble {
    pub(crate) fn new(kind: TroubleKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl From<Failures> for Trouble {
    /// A source has one URL, so there is one failure.
    fn from(Failures(failures): Failures) -> Self {
        let Some(failure) = failures.first() else {
            return Self::new(TroubleKind::Unreachable, "the source is at no place");
        };
        let kind = match failure {
            RefreshError::Origin {
                source: OriginError::TooLarge(_),
                ..
            } => TroubleKind::Invalid,
            RefreshError::Origin { .. } => TroubleKind::Unreachable,
            RefreshError::Verify(VerifyError::Rollback { .. } | VerifyError::TwoFaced(..)) => TroubleKind::Rollback,
            RefreshError::Verify(_) | RefreshError::NoNumber => TroubleKind::Invalid,
        };
        Self::new(kind, chain(failure))
    }
}
