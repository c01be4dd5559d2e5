//! Failures of calls, and their consequences (retries, breaker, site health), which depend on types, never on messages.

use std::{fmt, time::Duration};

use transfer::ByteCount;

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PluginFault {
    #[error(transparent)]
    Answer(#[from] GuestError),
    #[error("the plugin went over its limit: {0}")]
    Limit(Exceeded),
    #[error("the plugin crashed: {kind}")]
    Trap {
        kind: String,
        /// The guest's functions, innermost first, as far as they have names.
        frames: Vec<String>,
    },
    #[error("the plugin gave an unusable {field}: {reason}")]
    InvalidOutput { field: &'static str, reason: String },
    #[error("this host does not offer {0} to plugins")]
    Unsupported(&'static str),
    #[error("the plugin does not export {0}")]
    NotExported(&'static str),
    #[error("too many plugins are busy")]
    Overloaded,
    /// A program of the user that the call needs has no place for another run.
    #[error("{0}; try again later")]
    ToolBusy(String),
    /// The plugin's calls together want more of a site than the host asks of it.
    #[error(
        "it had no turn at {site} for {} s: a plugin sends a site {per_second} requests a second, {at_once} at once; \
         try again later",
        .waited.as_secs()
    )]
    NoTurn {
        /// The origin of the site.
        site: String,
        per_second: u32,
        at_once: usize,
        waited: Duration,
    },
}

/// A limit that a call ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    Cpu(Duration),
    /// It took too long, waiting for sites included, but not waiting for its turn at one.
    Wall(Duration),
    Memory(usize),
    Table(usize),
    Stack,
    Output(&'static str, usize),
    Handles(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu(budget) => write!(f, "{} ms of computing", budget.as_millis()),
            Self::Wall(budget) => write!(f, "{} ms from start to end", budget.as_millis()),
            Self::Memory(bytes) => write!(f, "{} of memory", ByteCount(*bytes as u64)),
            Self::Table(elements) => write!(f, "{elements} elements of a table"),
            Self::Stack => f.write_str("the depth of the stack"),
            Self::Output(what, count) => write!(f, "{count} {what}"),
            Self::Handles(count) => write!(f, "{count} host objects at once"),
        }
    }
}

/// An error that a plugin returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuestError {
    #[error("the plugin does not know this URL")]
    NotMatched,
    #[error("{0}")]
    InvalidInput(String),
    /// An account slot must log in first.
    #[error("a login is required")]
    LoginRequired(Option<String>),
    /// The user must visit a page first.
    #[error("the site wants proof that a person is there")]
    CaptchaRequired(String),
    #[error("not found: {0}")]
    NotFound(String),
    #[error("gone: {0}")]
    Gone(String),
    /// Access is denied: by region, without a premium account, with a wrong password.
    #[error("forbidden: {0}")]
    Forbidden(String),
    #[error("the site limits requests")]
    RateLimited(Option<Duration>),
    #[error("the site answered with status {0}")]
    Upstream(u16),
    #[error("the site cannot be reached: {0}")]
    Network(String),
    #[error("not granted: {0}")]
    Denied(String),
    #[error("the site has changed: {0}")]
    Parse(String),
    #[error("not supported by the plugin: {0}")]
    Unsupported(String),
    #[error("the plugin failed: {0}")]
    Internal(String),
}

/// What to do with a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The same call will fail again.
    Never,
    /// Retry once; a second failure is final.
    Once,
    /// Retry with back-off, and not before the stated time.
    Backoff(Option<Duration>),
    /// Retry once the user has acted: logged in, solved a captcha.
    AfterUser,
    /// Call the next plugin that claims the URL.
    NextPlugin,
}

impl PluginFault {
    /// The name of the fault for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answer(answer) => answer.code(),
            Self::Limit(Exceeded::Cpu(_)) => "cpuLimit",
            Self::Limit(Exceeded::Wall(_)) => "wallLimit",
            Self::Limit(Exceeded::Memory(_) | Exceeded::Table(_)) => "memoryLimit",
            Self::Limit(Exceeded::Stack) => "stackLimit",
            Self::Limit(Exceeded::Output(..)) => "outputLimit",
            Self::Limit(Exceeded::Handles(_)) => "hostcallLimit",
            Self::Trap { .. } => "trap",
            Self::InvalidOutput { .. } => "invalidOutput",
            Self::Unsupported(_) | Self::NotExported(_) => "abi",
            Self::Overloaded | Self::ToolBusy(_) => "overloaded",
            // As if the site had said so: its limit is the host's.
            Self::NoTurn { .. } => "rateLimited",
        }
    }

    /// Whether and when the call is worth repeating.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Answer(answer) => answer.retry(),
            Self::Limit(_) | Self::Trap { .. } => Retry::Once,
            Self::InvalidOutput { .. } | Self::Unsupported(_) | Self::NotExported(_) => Retry::Never,
            Self::Overloaded | Self::ToolBusy(_) | Self::NoTurn { .. } => Retry::Backoff(None),
        }
    }

    /// Whether the plugin itself is to blame, so that a breaker counts it.
    pub fn counts_against_plugin(&self) -> bool {
        matches!(self, Self::Limit(_) | Self::Trap { .. } | Self::InvalidOutput { .. })
    }

    /// Whether it is a sign that the site has changed.
    pub fn counts_against_site(&self) -> bool {
        matches!(self, Self::Answer(GuestError::Parse(_)))
    }
}

impl GuestError {
    fn code(&self) -> &'static str {
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

    fn retry(&self) -> Retry {
        match self {
            Self::NotMatched => Retry::NextPlugin,
            Self::LoginRequired(_) | Self::CaptchaRequired(_) | Self::Denied(_) => Retry::AfterUser,
            Self::RateLimited(pause) => Retry::Backoff(*pause),
            Self::Upstream(_) | Self::Network(_) => Retry::Backoff(None),
            Self::InvalidInput(_)
            | Self::NotFound(_)
            | Self::Gone(_)
            | Self::Forbidden(_)
            | Self::Parse(_)
            | Self::Unsupported(_)
            | Self::Internal(_) => Retry::Never,
        }
    }
}
