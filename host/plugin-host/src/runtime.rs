//! How guest code is run: the trait that a runtime implements, and the records that cross it. The policy stays on this
//! side; the runtime is told what a call may do and says what it did.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use market::Identity;
pub use plugin_package::Language;
use transfer::Secret;

use crate::{
    policy::{fault::PluginFault, grant::Given, host::Grants},
    secret::Secrets,
};

mod ask;
mod journal;
mod listing;
mod report;
mod storage;
mod world;

pub use crate::policy::{Interface, MAX_CALLS, PLUGIN_CALLS};
pub(crate) use ask::{Ask, preview};
pub(crate) use journal::now_ms;
pub use journal::{CallLog, Entry as JournalEntry, Event, Journal, Line, LogLevel, RequestLine, Sent, Totals};
pub use listing::{Entry, Facts, FileKind, Link, Listing, Variant};
pub use report::{CallId, Report};
pub use storage::{Storage, StorageError};
pub use world::{Gap, Moment, Replay, Watch, World};

/// Runs guest code.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Screens and compiles `code`, and tries out whether it starts: what it does then is within the limits of a call
    /// that reaches, remembers and is told nothing.
    fn load(&self, code: Code) -> BoxFuture<'_, Result<Arc<dyn Guest>, LoadError>>;
}

/// Code that is ready to be called. Each call runs in an instance of its own, which is thrown away after it, also when
/// the call's future is dropped.
pub trait Guest: Send + Sync + 'static {
    /// What the code says about itself.
    fn interface(&self) -> &Interface;

    /// Lists what the URL holds; `password` opens a share, if the user gave one.
    fn resolve(&self, call: Call, password: Option<Secret>) -> BoxFuture<'_, Called<Listing>>;

    /// The page of a list that `token` of an earlier one names.
    fn more(&self, call: Call, token: String) -> BoxFuture<'_, Called<Listing>>;

    /// Where the bytes of an entry, or of a variant of it, are now.
    fn link_for(&self, call: Call, entry: String, variant: Option<String>) -> BoxFuture<'_, Called<Link>>;

    /// As [`Guest::resolve`], quick and without links.
    fn preview(&self, call: Call) -> BoxFuture<'_, Called<Listing>>;
}

/// What the runtime is to load.
#[derive(Debug, Clone)]
pub struct Code {
    /// Whose it is, for messages.
    pub plugin: Identity,
    /// What `bytes` are.
    pub language: Language,
    /// The code.
    pub bytes: Bytes,
    /// How much memory an instance may use.
    pub memory_bytes: u64,
}

/// Why code is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is no WebAssembly, or of a kind that is not accepted.
    #[error("{check}: {reason}")]
    Refused {
        /// Which check: `size`, `features`, `complexity`.
        check: &'static str,
        /// What it found and what the limit is.
        reason: String,
    },
    /// It asks for an interface that this host does not have.
    #[error("interface {interface}: {reason}")]
    Abi {
        /// Which one.
        interface: String,
        /// What does not fit.
        reason: String,
    },
    /// Compiling it took more than it may.
    #[error("compiling took more than {0}")]
    CompileLimit(String),
    /// The runtime failed, which is not the plugin's fault.
    #[error("{0}")]
    Failed(String),
}

/// One call: who is called, on whose behalf, and what it may do.
#[derive(Debug, Clone)]
pub struct Call {
    /// Tells calls apart, in messages and logs.
    pub id: CallId,
    /// Who is called.
    pub plugin: Identity,
    /// The URL that it is about.
    pub given: Given,
    /// Which hosts it may talk to.
    pub hosts: Grants,
    /// The values of its settings, without the secret ones.
    pub settings: Arc<BTreeMap<String, String>>,
    /// What it may use and not read, for requests to the hosts that each is bound to.
    pub secrets: Secrets,
    /// What it remembers between calls.
    pub storage: Storage,
    /// Where what it says is written down.
    pub log: CallLog,
    /// What it sees of the world.
    pub world: World,
    /// How long it may take, with waiting. The runtime ends it then, as it sees to every other limit; the caller only
    /// gives up on a runtime that does not.
    pub wall: Duration,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Called<T> {
    /// What it gave, or why it gave nothing.
    pub result: Result<T, PluginFault>,
    /// What it took.
    pub report: Report,
}
