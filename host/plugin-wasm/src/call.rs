//! The environment of one call.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use accounts::BoundSecret;
use plugin_host::{
    Grants, LogLevel, Proxies, RequestLine,
    runtime::{CallClock, CallTools, CallWorkspace},
};
use transfer::Secret;
use url::Url;

use crate::{
    http::{
        Exchange, Exchanged, Network, NetworkError, Profile, Profiles, TaskSite,
        account::CallAccounts,
        call_http::{Access, CallHttp},
    },
    limits::HttpLimits,
    outside::{LogSink, Pending, Storage, Vault},
};

/// The environment of one call: everything but its arguments.
#[derive(Debug, Clone)]
pub struct CallContext {
    /// Settings of the plugin that it may read; secret ones are not among them.
    pub settings: BTreeMap<String, String>,
    /// The user's language (BCP 47).
    pub locale: String,
    pub grants: Grants,
    /// The user's cookies and headers for the task's own site.
    pub task: Option<TaskSite>,
    pub proxies: Proxies,
    /// Secrets that it may send but not read.
    pub vault: Arc<dyn Vault>,
    pub profiles: Arc<Profiles>,
    /// The slot of the login or renewal that this is, and its cookies, which are not those of the account yet.
    pub login: Option<(String, Arc<Profile>)>,
    pub ambient: Ambient,
    pub network: Arc<dyn Network>,
    pub storage: Arc<dyn Storage>,
    /// Programs of the user; `None` if the call may use none.
    pub tools: Option<CallTools>,
    /// The files that the call works on, if it is about a finished download.
    pub work: Option<CallWorkspace>,
    pub log: Arc<dyn LogSink>,
    /// The clock of its time limit.
    pub clock: CallClock,
}

impl CallContext {
    /// A context without grants, storage and log: for trial runs, and as a default in tests.
    pub fn isolated() -> Self {
        Self {
            settings: BTreeMap::new(),
            locale: "en".to_owned(),
            grants: Grants::default(),
            task: None,
            proxies: Proxies::none(),
            vault: Arc::new(Nowhere),
            profiles: Arc::default(),
            login: None,
            ambient: Ambient::Fixed { now_ms: 0, seed: 0 },
            network: Arc::new(Nowhere),
            storage: Arc::new(Nowhere),
            tools: None,
            work: None,
            log: Arc::new(Nowhere),
            clock: CallClock::default(),
        }
    }

    /// The HTTP client of a call with this context.
    pub(crate) fn http(&self, limits: HttpLimits) -> CallHttp {
        let access = Access {
            network: self.network.clone(),
            grants: self.grants.clone(),
            task: self.task.clone(),
            proxies: self.proxies.clone(),
            accounts: Arc::new(CallAccounts::new(
                self.vault.clone(),
                self.profiles.clone(),
                self.login.clone(),
            )),
            log: self.log.clone(),
            clock: self.clock.clone(),
        };
        CallHttp::new(access, limits)
    }
}

/// A network, storage, vault and log that do nothing.
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
    fn of_account(&self, _: String) -> Pending<'_, Option<Arc<dyn Vault>>> {
        Box::pin(async { None })
    }

    fn slots(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async { Vec::new() })
    }

    fn all(&self) -> Pending<'_, Vec<(String, BoundSecret)>> {
        Box::pin(async { Vec::new() })
    }

    fn find(&self, _: String) -> Pending<'_, Option<BoundSecret>> {
        Box::pin(async { None })
    }

    fn capture(&self, _: String, _: Secret, _: Url) -> Pending<'_, Result<(), String>> {
        Box::pin(async { Err("nothing is kept".to_owned()) })
    }

    fn keep_derived(&self, _: String, _: BoundSecret) -> Result<(), String> {
        Err("nothing is kept".to_owned())
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

/// Where a plugin's time and randomness come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ambient {
    System,
    /// Fixed, so that a recorded call can be replayed.
    Fixed {
        /// Milliseconds of the Unix epoch.
        now_ms: u64,
        /// Decides all random bytes.
        seed: u64,
    },
}
