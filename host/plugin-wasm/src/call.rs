//! What the host tells a call.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use plugin_host::{BoundSecret, Grants, LogLevel, Proxies, RequestLine};
use transfer::Secret;
use url::Url;

use crate::{
    http::{
        Exchange, Exchanged, Network, NetworkError, Profile, TaskSite,
        session::{Access, Session},
    },
    limits::HttpLimits,
    outside::{LogSink, Pending, Storage, Vault},
};

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

    /// The requests of a call with all this around it.
    pub(crate) fn session(&self, limits: HttpLimits) -> Session {
        let access = Access {
            network: self.network.clone(),
            grants: self.grants.clone(),
            task: self.task.clone(),
            proxies: self.proxies.clone(),
            vault: self.vault.clone(),
            profile: self.profile.clone(),
            log: self.log.clone(),
        };
        Session::new(access, limits)
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
