//! What a plugin answers when it cannot do what it was asked. `?` makes one of everything that can fail.

use crate::host::http::HttpError;

/// The result of a plugin's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a plugin cannot do what it was asked. The host decides by the variant whether it tries again, asks the user or
/// supposes that the site has changed, so the right one matters more than its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is not one of this plugin's after all; another may try.
    #[error("not a URL of this plugin")]
    NotMatched,
    /// The user gave something unusable.
    #[error("{0}")]
    InvalidInput(String),
    /// An account must log in first; the slot, if there is more than one.
    #[error("a login is required")]
    LoginRequired(Option<String>),
    /// The user must visit this page first.
    #[error("the site wants proof that a person is there")]
    CaptchaRequired(String),
    /// There is nothing.
    #[error("not found: {0}")]
    NotFound(String),
    /// It was deleted, has expired or was taken down.
    #[error("gone: {0}")]
    Gone(String),
    /// It may not be seen: region, premium, wrong password.
    #[error("forbidden: {0}")]
    Forbidden(String),
    /// The site wants a pause of so many seconds, if it said.
    #[error("the site limits requests")]
    RateLimited(Option<u32>),
    /// The site answered with another status.
    #[error("the site answered with status {0}")]
    Upstream(u16),
    /// The site could not be reached.
    #[error("the site cannot be reached: {0}")]
    Network(String),
    /// A host that the plugin was not granted.
    #[error("not granted: {0}")]
    Denied(String),
    /// The site looks different from what the plugin knows. The host counts these and says that an update is needed.
    #[error("the site has changed: {0}")]
    Parse(String),
    /// The plugin cannot do this.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// Something else.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Its name in fixtures and in what users see.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NotMatched => "notMatched",
            Self::InvalidInput(_) => "invalidInput",
            Self::LoginRequired(_) => "loginRequired",
            Self::CaptchaRequired(_) => "captchaRequired",
            Self::NotFound(_) => "notFound",
            Self::Gone(_) => "gone",
            Self::Forbidden(_) => "forbidden",
            Self::RateLimited(_) => "rateLimited",
            Self::Upstream(_) => "upstream",
            Self::Network(_) => "network",
            Self::Denied(_) => "denied",
            Self::Parse(_) => "parse",
            Self::Unsupported(_) => "unsupported",
            Self::Internal(_) => "internal",
        }
    }

    /// What a status that is no success means.
    pub(crate) fn of_status(status: u16, retry_after: Option<u32>) -> Self {
        match status {
            401 => Self::LoginRequired(None),
            403 => Self::Forbidden("the site refuses access".to_owned()),
            404 => Self::NotFound("the site does not have it".to_owned()),
            410 | 451 => Self::Gone("the site no longer has it".to_owned()),
            429 => Self::RateLimited(retry_after),
            status => Self::Upstream(status),
        }
    }
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Denied(host) => Self::Denied(host),
            HttpError::BlockedAddress => Self::Denied("an address that is not public".to_owned()),
            HttpError::Timeout => Self::Network("it took too long".to_owned()),
            HttpError::Tls(reason) | HttpError::Network(reason) => Self::Network(reason),
            HttpError::TooLarge(limit) => Self::Internal(format!("more than {limit} bytes")),
            HttpError::TooManyRequests => Self::Internal("too many requests in one call".to_owned()),
            HttpError::Invalid(reason) => Self::Internal(reason),
        }
    }
}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::Parse(error.to_string())
    }
}

#[cfg(feature = "serde")]
impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Parse(error.to_string())
    }
}
