//! How guest code is run: the trait that a runtime implements, and its records. Policy stays on this side: the runtime
//! receives the permissions of a call and reports what it did.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

pub use accounts::{Screen, Secrets, Step};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use market::Identity;
pub use plugin_package::{Language, manifest::LoginMode};
use transfer::Secret;
use url::Url;

use crate::policy::{fault::PluginFault, grant::CallTarget, host::Grants};

mod ask;
mod clock;
mod feed;
mod hook;
mod journal;
mod listing;
mod report;
mod storage;
mod tools;
mod workspace;
mod world;

pub use crate::policy::{Interface, MAX_CALLS, PLUGIN_CALLS};
pub(crate) use ask::{Ask, LOGIN_WALL, preview};
pub use clock::{CallClock, MAX_WAIT, TimedOut, Wait};
pub use feed::{Feed, FeedEnclosure, FeedItem, FeedRequest};
pub use hook::HookAnswer;
pub(crate) use hook::HookCall;
pub(crate) use journal::now_ms;
pub use journal::{CallLog, Event, Journal, JournalEntry, Line, LogLevel, RequestLine, Sent, Totals};
pub use listing::{Entry, Facts, FileKind, Link, Listing, Variant};
pub use report::{CallId, Report};
pub use storage::{Storage, StorageError};
pub use svc_plugin_fixture::{HookEvent, HookInput};
pub use tools::{CallTools, Page, ToolError, Tools};
pub(crate) use workspace::InMemory;
pub use workspace::{CallWorkspace, Workspace};
pub use world::{Gap, RecordedClock, Replay, Watch, World, cookie_values};

/// Runs guest code.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Screens and compiles `code`, and tries out whether it starts: the trial run has the limits of a call, without
    /// network, storage and settings.
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>>;
}

/// Code that is ready to be called. Each call runs in a fresh instance, which is discarded afterwards, also when the
/// call's future is dropped.
pub trait Guest: Send + Sync + 'static {
    /// The interface of the code.
    fn interface(&self) -> &Interface;

    /// Lists the files of the URL; `password` opens a share, if the user gave one.
    fn resolve(&self, call: Call, password: Option<Secret>) -> BoxFuture<'_, Called<Listing>>;

    /// The page of a listing identified by the `token` of an earlier page.
    fn more(&self, call: Call, token: String) -> BoxFuture<'_, Called<Listing>>;

    /// The present link of an entry or a variant of it.
    fn link_for(&self, call: Call, entry: String, variant: Option<String>) -> BoxFuture<'_, Called<Link>>;

    /// As [`Guest::resolve`], quick and without links.
    fn preview(&self, call: Call) -> BoxFuture<'_, Called<Listing>>;

    /// The feed of the URL. The fields of its source are among the settings of the call.
    fn feed(&self, call: Call, request: FeedRequest) -> BoxFuture<'_, Called<Feed>>;

    /// Tells a hook what became of a download of the call's URL.
    fn hook(&self, _: Call, _: HookInput) -> BoxFuture<'_, Called<HookAnswer>> {
        Box::pin(async {
            Called {
                result: Err(PluginFault::NotExported("hook-handler")),
                report: Report::default(),
            }
        })
    }

    /// Works on the files of the finished download of the call's URL, which is about the file `main`.
    fn post_process(&self, _: Call, _main: String, _: CallWorkspace) -> BoxFuture<'_, Called<()>> {
        Box::pin(async {
            Called {
                result: Err(PluginFault::NotExported("post-processor")),
                report: Report::default(),
            }
        })
    }

    /// Begins a login to the account of a slot. Nothing of the plugin has run when it returns.
    fn begin_login(&self, call: Call, slot: String, mode: LoginMode) -> Box<dyn LoginSession>;

    /// Whether the site still accepts the session of an account.
    fn check_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<bool>>;

    /// Renews the session of an account; the screen says when it ends again.
    fn renew_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<Screen>>;

    /// Ends the session of an account at its site.
    fn log_out(&self, call: Call, slot: String) -> BoxFuture<'_, Called<()>>;

    /// Forgets what is in memory of an account (cookies, responses), because another login or a logout replaced it.
    fn forget_account(&self, slot: &str);

    /// The cookies of the account of `secrets` for a request to `url`, each as `name=value`.
    fn cookies_for(&self, secrets: Secrets, url: Url) -> BoxFuture<'_, Vec<String>>;

    /// The sizes of files as their servers tell them, in the order of `links`, within the time and permissions of the
    /// call. It runs no code of the plugin.
    fn sizes(&self, call: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>>;
}

/// A login that a plugin drives: its instance stays between the steps, because it knows what it asked the site.
pub trait LoginSession: Send + 'static {
    /// Takes a step and returns the screen that it shows. After a fault or when its future was dropped, no further step
    /// succeeds.
    fn step(&mut self, step: Step) -> BoxFuture<'_, Called<Screen>>;

    /// Takes cookies of a browser into the account, each with a URL that it is for, as a `Set-Cookie` field; returns how
    /// many are for sites that the plugin may contact.
    fn take_cookies(&mut self, cookies: Vec<(Url, String)>) -> BoxFuture<'_, usize>;
}

/// Code to load.
#[derive(Debug, Clone)]
pub struct Code {
    pub plugin: Identity,
    pub language: Language,
    pub bytes: Bytes,
    pub memory_bytes: u64,
}

/// Why code is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error("{check}: {reason}")]
    Refused {
        /// Which check: `size`, `features`, `complexity`.
        check: &'static str,
        /// What it found and what the limit is.
        reason: String,
    },
    #[error("interface {interface}: {reason}")]
    Abi { interface: String, reason: String },
    #[error("compiling took more than {0}")]
    CompileLimit(String),
    /// The runtime failed, which is not the plugin's fault.
    #[error("{0}")]
    Failed(String),
}

/// One call: the plugin, the user's URL, and what the call may do.
#[derive(Debug, Clone)]
pub struct Call {
    /// Identifies the call in messages and logs.
    pub id: CallId,
    pub plugin: Identity,
    pub given: CallTarget,
    pub hosts: Grants,
    /// The values of its settings, without the secret ones.
    pub settings: Arc<BTreeMap<String, String>>,
    /// Secrets that it may use but not read, each bound to hosts.
    pub secrets: Secrets,
    pub storage: Storage,
    /// Programs of the user; none if there are none, or the user did not agree.
    pub tools: Option<CallTools>,
    pub log: CallLog,
    /// Network and clock, live or recorded.
    pub world: World,
    /// Time limit, waiting for sites included. The runtime enforces it like every other limit; the caller only has a
    /// fallback.
    pub wall: Duration,
    /// The clock of that limit.
    pub clock: CallClock,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Called<T> {
    pub result: Result<T, PluginFault>,
    pub report: Report,
}
