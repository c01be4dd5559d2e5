//! What the host tells a call.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use plugin_host::{Grants, LogLevel};
use transfer::Secret;
use url::Url;

use crate::http::{Exchange, Exchanged, Network, NetworkError};

/// Everything around one call that is not its argument.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Settings of the plugin that it may read; secret ones are not among them.
    pub settings: BTreeMap<String, String>,
    /// The user's language (BCP 47).
    pub locale: String,
    /// What it may reach.
    pub grants: Grants,
    /// Cookies of the task that the call is about.
    pub task_cookies: Option<TaskCookies>,
    /// Its clock and randomness.
    pub ambient: Ambient,
    /// What it reaches.
    pub network: Arc<dyn Network>,
    /// What it remembers between calls.
    pub storage: Arc<dyn Storage>,
    /// Where it says what it does.
    pub log: Arc<dyn LogSink>,
}

impl CallContext {
    /// A context in which nothing is granted, remembered or heard: to try a plugin out, or to fill in.
    pub fn isolated() -> Self {
        Self {
            settings: BTreeMap::new(),
            locale: "en".to_owned(),
            grants: Grants::default(),
            task_cookies: None,
            ambient: Ambient::Fixed { now_ms: 0, seed: 0 },
            network: Arc::new(Nowhere),
            storage: Arc::new(Nowhere),
            log: Arc::new(Nowhere),
        }
    }
}

/// Reaches nothing, keeps nothing, listens to nothing.
#[derive(Debug)]
struct Nowhere;

impl Network for Nowhere {
    fn exchange(&self, _: Exchange) -> Exchanged<'_> {
        Box::pin(async { Err(NetworkError::Failed("there is no network".to_owned())) })
    }
}

impl Storage for Nowhere {
    fn get(&self, _: String) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async { None })
    }

    fn set(&self, _: String, _: Vec<u8>, _: Option<Duration>) -> Pending<'_, Result<(), String>> {
        Box::pin(async { Err("nothing is kept".to_owned()) })
    }

    fn remove(&self, _: String) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn keys(&self, _: String) -> Pending<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }
}

impl LogSink for Nowhere {
    fn write(&self, _: LogLevel, _: &str) {}

    fn progress(&self, _: u32, _: Option<u32>, _: &str) {}
}

/// Cookies that the user gave for a task. They go to the task's own site, and the plugin never sees them.
#[derive(Debug, Clone)]
pub struct TaskCookies {
    site: Url,
    value: Secret,
}

impl TaskCookies {
    /// Cookies, as the `Cookie` field has them, for the site of `task_url`.
    pub fn new(task_url: Url, value: Secret) -> Self {
        Self { site: task_url, value }
    }

    pub(crate) fn belong_to(&self, url: &Url) -> bool {
        url.origin() == self.site.origin()
    }

    pub(crate) fn value(&self) -> &str {
        self.value.expose()
    }
}

/// Where a plugin's time and randomness come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambient {
    /// The machine's.
    System,
    /// Always the same, so that a recorded call can be repeated.
    Fixed {
        /// Milliseconds of the Unix epoch.
        now_ms: u64,
        /// Decides all random bytes.
        seed: u64,
    },
}

/// An answer to come.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a plugin remembers between calls: its own values and nobody else's, within limits of its own.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The value of `key`, unless it has expired.
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>>;
    /// Sets a value, for ever or for a time; tells why it cannot.
    fn set(&self, key: String, value: Vec<u8>, lifetime: Option<Duration>) -> Pending<'_, Result<(), String>>;
    /// Forgets a value.
    fn remove(&self, key: String) -> Pending<'_, ()>;
    /// The keys that begin with `prefix`, in order.
    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>>;
}

/// Where a plugin's messages go. It is called often and must not wait.
pub trait LogSink: Send + Sync + fmt::Debug {
    /// A line as the plugin wrote it, whatever is in it.
    fn write(&self, level: LogLevel, message: &str);
    /// How far the call has come.
    fn progress(&self, done: u32, total: Option<u32>, note: &str);
}
