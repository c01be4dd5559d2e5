//! What the host tells a call.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use data_encoding::BASE64;
use plugin_host::{BoundSecret, Grants, LogLevel, Proxies, RequestLine};
use transfer::{RequestOptions, Secret};
use url::Url;

use crate::http::{Exchange, Exchanged, Network, NetworkError, Profile, header};

/// Everything around one call that is not its argument.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Settings of the plugin that it may read; secret ones are not among them.
    pub settings: BTreeMap<String, String>,
    /// The user's language (BCP 47).
    pub locale: String,
    /// What it may reach.
    pub grants: Grants,
    /// What the user gave for the site of the task that the call is about.
    pub task: Option<TaskSite>,
    /// Through which proxies it is reached.
    pub proxies: Proxies,
    /// What it may send and not read.
    pub vault: Arc<dyn Vault>,
    /// Its cookies and kept responses.
    pub profile: Arc<Profile>,
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
            task: None,
            proxies: Proxies::none(),
            vault: Arc::new(Nowhere),
            profile: Arc::default(),
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

impl Vault for Nowhere {
    fn find(&self, _: String) -> Pending<'_, Option<BoundSecret>> {
        Box::pin(async { None })
    }

    fn capture(&self, _: String, _: Secret, _: Url) -> Pending<'_, Result<(), String>> {
        Box::pin(async { Err("nothing is kept".to_owned()) })
    }

    fn forget(&self, _: String) -> Pending<'_, ()> {
        Box::pin(async {})
    }

    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async { None })
    }

    fn keep_cookies(&self, _: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async {})
    }
}

impl LogSink for Nowhere {
    fn write(&self, _: LogLevel, _: &str) {}

    fn progress(&self, _: u32, _: Option<u32>, _: &str) {}

    fn exchanged(&self, _: RequestLine) {}
}

/// What the user gave for a task's own site. It goes there, and the plugin never sees it.
#[derive(Debug, Clone)]
pub struct TaskSite {
    url: Url,
    request: RequestOptions,
}

impl TaskSite {
    /// What goes along with requests to the site of `url`; nothing, if the user gave nothing.
    pub fn new(url: Url, request: RequestOptions) -> Self {
        Self { url, request }
    }

    /// The cookies and fields for a request to `url`: nothing unless that is on the task's own host, over a connection
    /// no less safe.
    pub(crate) fn fields_for(&self, url: &Url) -> (Option<&str>, Vec<(String, String)>) {
        let is_upgrade = url.scheme() == "https"
            && self.url.scheme() == "http"
            && url.host() == self.url.host()
            && url.port().is_none()
            && self.url.port().is_none();
        if url.origin() != self.url.origin() && !is_upgrade {
            return (None, Vec::new());
        }
        let given = self.request.headers.iter();
        let given = given.filter(|(name, value)| header::guest_may_send(name) && header::is_value(value.expose()));
        let mut fields: Vec<_> = given
            .map(|(name, value)| (name.to_ascii_lowercase(), value.expose().to_owned()))
            .collect();
        if let Some(login) = &self.request.credentials {
            fields.retain(|(name, _)| name != "authorization");
            let pair = BASE64.encode(format!("{}:{}", login.user, login.password.expose()).as_bytes());
            fields.push(("authorization".to_owned(), format!("Basic {pair}")));
        }
        let known = [
            ("referer", &self.request.referrer),
            ("user-agent", &self.request.user_agent),
        ];
        let known = known
            .into_iter()
            .filter(|(_, value)| !value.is_empty() && header::is_value(value));
        fields.extend(known.map(|(name, value)| (name.to_owned(), value.clone())));
        let cookies = self.request.cookies.expose();
        (
            Some(cookies).filter(|cookies| !cookies.is_empty() && header::is_value(cookies)),
            fields,
        )
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

/// The secrets and cookies of a plugin, which the host uses for it.
pub trait Vault: Send + Sync + fmt::Debug {
    /// The secret of this name, and where it may go.
    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>>;
    /// Keeps a value that was in a response from `url`; tells why it cannot.
    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>>;
    /// Forgets a captured value.
    fn forget(&self, name: String) -> Pending<'_, ()>;
    /// The cookies that were kept last.
    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>>;
    /// Keeps cookies instead of those before.
    fn keep_cookies(&self, cookies: Vec<u8>) -> Pending<'_, ()>;
}

/// Where a plugin's messages go. It is called often and must not wait.
pub trait LogSink: Send + Sync + fmt::Debug {
    /// A line as the plugin wrote it, whatever is in it.
    fn write(&self, level: LogLevel, message: &str);
    /// How far the call has come.
    fn progress(&self, done: u32, total: Option<u32>, note: &str);
    /// A request that it sent, for the user to read.
    fn exchanged(&self, line: RequestLine);
}
