//! The state that the calls of all connections share.

pub(crate) mod access;
pub(crate) mod blobs;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Instant,
};

use chains::Jobs;
use engine::{Engine, Proxies, ProxyChoice, SystemProxy};
use hooks::Hooks;
use plugin_host::Plugins;
use rss::Subscriptions;
use store::{SealedColumn, Store, Vault};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tools::Tools;
use transfer_torrent::Torrents;

use crate::{
    configuration::Configuration,
    hub::Hub,
    rows,
    selection::Selections,
    service::{access::Access, blobs::Blobs},
};

/// How many connections each host was found to allow, if a transport exposes it. Without an implementation, the methods
/// for them answer with an error.
pub trait LearnedLimits: Send + Sync + std::fmt::Debug {
    /// Hosts whose limit is known.
    fn hosts(&self) -> u64;
    /// Forgets them all.
    fn forget(&self);
}

/// The names and the last bytes of log files.
pub type LogEnds = Vec<(String, Vec<u8>)>;

/// The log files of this service, and how their ends are read.
#[derive(Debug, Clone)]
pub struct Logs {
    /// Their directory.
    pub directory: PathBuf,
    /// Reads those of a directory, at most so many bytes of each.
    pub read: fn(&Path, u64) -> io::Result<LogEnds>,
}

#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) engine: Engine,
    /// None if this daemon runs no guest code.
    pub(crate) plugins: Option<Plugins>,
    /// None if this daemon starts no programs.
    pub(crate) tools: Option<Tools>,
    pub(crate) rss: Subscriptions,
    pub(crate) hooks: Hooks,
    pub(crate) jobs: Jobs,
    /// None if this daemon downloads no torrents.
    pub(crate) torrents: Option<Torrents>,
    pub(crate) selections: Selections,
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) hub: Hub,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) access: Arc<Access>,
    /// Bodies of `POST /blobs/{kind}`, each until a call uses it by its id.
    pub(crate) blobs: Blobs,
    /// Diagnostic exports, each until the client that made it fetches it with `GET /exports/{id}`.
    pub(crate) exports: Blobs,
    pub(crate) learned_limits: Option<Arc<dyn LearnedLimits>>,
    pub(crate) system_proxy: Arc<SystemProxy>,
    pub(crate) default_dir: PathBuf,
    pub(crate) logs: Option<Logs>,
    pub(crate) version: &'static str,
    pub(crate) started_at: Instant,
    pub(crate) connections: AtomicU64,
    /// Cancelled to end all connections.
    pub(crate) stop: CancellationToken,
    /// A client called `system.shutdown`.
    pub(crate) was_asked_to_stop: AtomicBool,
    pub(crate) asked_to_stop: Notify,
}

/// All columns of sealed values.
pub(crate) fn sealed_columns() -> impl Iterator<Item = SealedColumn> {
    let columns = engine::SEALED.into_iter().chain(rss::SEALED);
    columns
        .chain(plugin_host::SEALED)
        .chain(chains::SEALED)
        .chain(rows::SEALED)
}

impl Service {
    /// The proxies for requests that belong to no task: previews, and plugin sources with their updates.
    pub(crate) fn proxies(&self) -> Proxies {
        let settings = self.engine.settings().settings;
        Proxies::new(ProxyChoice::Settings, settings, Arc::clone(&self.system_proxy))
    }

    pub(crate) fn ask_to_stop(&self) {
        self.was_asked_to_stop.store(true, std::sync::atomic::Ordering::Release);
        self.asked_to_stop.notify_waiters();
    }
}
