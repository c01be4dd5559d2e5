//! Adapts a loaded plugin to the `Guest` trait of `plugin-host`: translates calls, and forwards storage, secrets and
//! log.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use plugin_host::{
    BoundSecret, CallLog, Feed, FeedRequest, Link, Listing, LogLevel, RequestLine, SecretError, Secrets, StorageError,
    runtime::{self as policy, Call, Called, Interface},
};
use transfer::Secret;
use url::Url;

use crate::{
    call::CallContext,
    code::compile::CompileError,
    error::LoadError,
    http::{Network, Profile, TaskSite},
    limits::{HttpLimits, Limits},
    loaded::{Loaded, Wanted},
    outside::{LogSink, Pending, Storage, Vault},
};

mod recording;

impl From<LoadError> for policy::LoadError {
    fn from(error: LoadError) -> Self {
        let refused = |check, error: &dyn fmt::Display| Self::Refused {
            check,
            reason: error.to_string(),
        };
        match error {
            LoadError::Screen(error) => refused("screen", &error),
            LoadError::NotComponent(_) => refused("kind", &error),
            LoadError::Script(error) => refused("script", &error),
            LoadError::Compile(CompileError::Limit(limit)) => Self::CompileLimit(limit),
            LoadError::Compile(CompileError::Refused(reason)) => refused("compiler", &reason),
            LoadError::Compile(CompileError::Run { program, source }) => {
                Self::Failed(format!("cannot run the compiler {}: {source}", program.display()))
            }
            LoadError::Abi { interface, reason } => Self::Abi {
                interface: interface.unwrap_or_else(|| "svc:plugin".to_owned()),
                reason,
            },
            LoadError::TryOut(fault) => refused("start", &fault),
            LoadError::Host(error) => Self::Failed(error.to_string()),
        }
    }
}

/// A loaded plugin, and the state that its calls share.
pub(crate) struct Guest {
    pub(crate) loaded: Loaded,
    pub(crate) memory_bytes: usize,
    pub(crate) locale: String,
    pub(crate) network: Arc<dyn Network>,
    pub(crate) profile: Arc<Profile>,
}

impl Guest {
    /// Translates `call`, with `limits` for its kind.
    fn prepare(&self, call: Call, limits: Limits) -> (String, CallContext, Limits) {
        let (network, ambient) = recording::around(call.world, Arc::clone(&self.network), &self.profile);
        let context = CallContext {
            settings: Arc::unwrap_or_clone(call.settings),
            locale: self.locale.clone(),
            grants: call.hosts,
            task: Some(TaskSite::new(call.given.url.clone(), call.given.request)),
            proxies: call.given.proxies,
            vault: Arc::new(call.secrets),
            profile: Arc::clone(&self.profile),
            ambient,
            network,
            storage: Arc::new(call.storage),
            log: Arc::new(call.log),
            clock: call.clock,
        };
        let limits = Limits {
            wall: call.wall,
            memory_bytes: self.memory_bytes,
            ..limits
        };
        (call.given.url.into(), context, limits)
    }
}

impl policy::Guest for Guest {
    fn interface(&self) -> &Interface {
        self.loaded.interface()
    }

    fn resolve(&self, call: Call, password: Option<Secret>) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::resolve());
        Box::pin(async move {
            let password = password.as_ref().map(Secret::expose);
            self.loaded.resolve(&url, password, context, limits).await
        })
    }

    fn more(&self, call: Call, token: String) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::resolve());
        Box::pin(async move { self.loaded.more(&url, &token, context, limits).await })
    }

    fn link_for(&self, call: Call, entry: String, variant: Option<String>) -> BoxFuture<'_, Called<Link>> {
        let (url, context, limits) = self.prepare(call, Limits::link());
        Box::pin(async move {
            let wanted = Wanted {
                url: &url,
                entry_id: &entry,
                variant_id: variant.as_deref(),
            };
            self.loaded.link(wanted, context, limits).await
        })
    }

    fn preview(&self, call: Call) -> BoxFuture<'_, Called<Listing>> {
        let (url, context, limits) = self.prepare(call, Limits::preview());
        Box::pin(async move { self.loaded.preview(&url, context, limits).await })
    }

    fn feed(&self, call: Call, request: FeedRequest) -> BoxFuture<'_, Called<Feed>> {
        let (url, context, limits) = self.prepare(call, Limits::feed());
        Box::pin(async move { self.loaded.feed(&url, &request, context, limits).await })
    }

    fn sizes(&self, call: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        let (_, context, limits) = self.prepare(call, Limits::preview());
        Box::pin(async move {
            context.profile.load(&*context.vault).await;
            let http = context.http(HttpLimits::of_sizes());
            http.sizes(&links, limits.wall).await
        })
    }
}

/// A plugin whose secrets cannot be read now sees none.
impl Vault for Secrets {
    fn find(&self, name: String) -> Pending<'_, Option<BoundSecret>> {
        Box::pin(async move { or_none(self.find(&name).await) })
    }

    fn capture(&self, name: String, value: Secret, url: Url) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            self.capture(&name, &value, &url)
                .await
                .map_err(|error| error.to_string())
        })
    }

    fn forget(&self, name: String) -> Pending<'_, ()> {
        Box::pin(async move { or_none(self.forget(&name).await) })
    }

    fn cookies(&self) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async move { or_none(self.cookies().await) })
    }

    fn keep_cookies(&self, cookies: Vec<u8>) -> Pending<'_, ()> {
        Box::pin(async move { or_none(self.keep_cookies(&cookies).await) })
    }
}

fn or_none<T: Default>(found: Result<T, SecretError>) -> T {
    found.unwrap_or_else(|error| {
        tracing::warn!(%error, "the secrets of a plugin cannot be used");
        T::default()
    })
}

/// If storage cannot be read, the plugin sees it empty, which it must handle anyway.
impl Storage for plugin_host::Storage {
    fn get(&self, key: String) -> Pending<'_, Option<Vec<u8>>> {
        Box::pin(async move { or_nothing(self.get(&key).await) })
    }

    fn set(&self, key: String, value: Vec<u8>, lifetime: Option<Duration>) -> Pending<'_, Result<(), String>> {
        Box::pin(async move {
            let set = self.set(&key, value, lifetime).await;
            set.map_err(|error| match error {
                StorageError::Key(_) | StorageError::Value(_) | StorageError::Full { .. } => error.to_string(),
                StorageError::Write(_) | StorageError::Read(_) => {
                    tracing::warn!(%error, "a plugin's memory cannot be written");
                    "the host cannot keep it now".to_owned()
                }
            })
        })
    }

    fn remove(&self, key: String) -> Pending<'_, ()> {
        Box::pin(async move { or_nothing(self.remove(&key).await) })
    }

    fn keys(&self, prefix: String) -> Pending<'_, Vec<String>> {
        Box::pin(async move { or_nothing(self.keys(&prefix).await) })
    }
}

fn or_nothing<T: Default>(remembered: Result<T, StorageError>) -> T {
    remembered.unwrap_or_else(|error| {
        tracing::warn!(%error, "a plugin's memory cannot be read");
        T::default()
    })
}

impl LogSink for CallLog {
    fn write(&self, level: LogLevel, message: &str) {
        self.write(level, message);
    }

    fn progress(&self, done: u32, total: Option<u32>, note: &str) {
        let total = total.map(|total| format!("/{total}")).unwrap_or_default();
        self.write(LogLevel::Debug, &format!("{done}{total} {note}"));
    }

    fn exchanged(&self, line: RequestLine) {
        self.sent(line);
    }
}
