//! Adapts a loaded plugin to the `Guest` trait of `plugin-host`: translates calls, and forwards storage, secrets and
//! log.

use std::{fmt, sync::Arc, time::Duration};

use accounts::{BoundSecret, LoginId, Screen, SecretError, Secrets, Step};
use futures_util::future::BoxFuture;
use plugin_host::{
    CallLog, Feed, FeedRequest, Grants, Link, Listing, LogLevel, RequestLine, StorageError,
    runtime::{self as policy, Call, CallWorkspace, Called, HookAnswer, HookInput, Interface, LoginMode},
};
use transfer::Secret;
use url::Url;

use crate::{
    call::CallContext,
    code::compile::CompileError,
    error::LoadError,
    http::{Network, Profile, Profiles, TaskSite},
    limits::{HttpLimits, Limits},
    loaded::{Loaded, Wanted, login_session::LoginSession},
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
    pub(crate) profiles: Arc<Profiles>,
}

impl Guest {
    /// Translates `call`, with `limits` for its kind.
    fn prepare(&self, call: Call, limits: Limits) -> (String, CallContext, Limits) {
        let (network, ambient) = recording::around(call.world, Arc::clone(&self.network), &self.profiles.own());
        let context = CallContext {
            settings: Arc::unwrap_or_clone(call.settings),
            locale: self.locale.clone(),
            grants: call.hosts,
            task: Some(TaskSite::new(call.given.url.clone(), call.given.request)),
            proxies: call.given.proxies,
            vault: Arc::new(call.secrets),
            profiles: Arc::clone(&self.profiles),
            login: None,
            ambient,
            network,
            storage: Arc::new(call.storage),
            tools: call.tools,
            work: None,
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

impl Guest {
    /// As [`Guest::prepare`], for a login or a renewal: the cookies of the account are apart until it succeeds.
    fn prepare_login(&self, call: Call, slot: &str) -> (CallContext, Arc<Profile>, Limits) {
        let (_, mut context, limits) = self.prepare(call, Limits::login());
        let profile = Arc::<Profile>::default();
        context.login = Some((slot.to_owned(), Arc::clone(&profile)));
        (context, profile, limits)
    }
}

/// A login as `plugin-host` drives it.
struct Login {
    session: LoginSession,
    secrets: Secrets,
    slot: String,
    profile: Arc<Profile>,
    hosts: Grants,
}

impl policy::LoginSession for Login {
    fn step(&mut self, step: Step) -> BoxFuture<'_, Called<Screen>> {
        Box::pin(self.session.step(step))
    }

    fn take_cookies(&mut self, cookies: Vec<(Url, String)>) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            let mut taken = 0;
            for (url, cookie) in cookies {
                if self.hosts.check(&url).is_ok() {
                    self.profile.set_cookie(&cookie, &url);
                    taken += 1;
                }
            }
            if let Some(vault) = or_none(self.secrets.of_account(&self.slot).await) {
                self.profile.save_of_account(&vault).await;
            }
            taken
        })
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

    fn hook(&self, call: Call, told: HookInput) -> BoxFuture<'_, Called<HookAnswer>> {
        let hook = Limits::hook();
        let most = hook.memory_bytes;
        let (url, context, limits) = self.prepare(call, hook);
        let limits = Limits {
            memory_bytes: limits.memory_bytes.min(most),
            ..limits
        };
        Box::pin(async move { self.loaded.hook(url, told, context, limits).await })
    }

    fn post_process(&self, call: Call, main: String, work: CallWorkspace) -> BoxFuture<'_, Called<()>> {
        let post = Limits::post();
        let most = post.memory_bytes;
        let (url, mut context, limits) = self.prepare(call, post);
        context.work = Some(work);
        let limits = Limits {
            memory_bytes: limits.memory_bytes.min(most),
            ..limits
        };
        Box::pin(async move { self.loaded.post_process(&url, &main, context, limits).await })
    }

    fn begin_login(&self, call: Call, slot: String, mode: LoginMode) -> Box<dyn policy::LoginSession> {
        let secrets = call.secrets.clone();
        let (context, profile, limits) = self.prepare_login(call, &slot);
        let hosts = context.grants.clone();
        let session = self.loaded.begin_login(slot.clone(), mode.name(), context, limits);
        Box::new(Login {
            session,
            secrets,
            slot,
            profile,
            hosts,
        })
    }

    fn check_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<bool>> {
        let (context, _, limits) = self.prepare_login(call, &slot);
        Box::pin(async move { self.loaded.check_account(&slot, context, limits).await })
    }

    fn renew_account(&self, call: Call, slot: String) -> BoxFuture<'_, Called<Screen>> {
        let (context, _, limits) = self.prepare_login(call, &slot);
        Box::pin(async move { self.loaded.renew_account(&slot, context, limits).await })
    }

    fn log_out(&self, call: Call, slot: String) -> BoxFuture<'_, Called<()>> {
        let (context, _, limits) = self.prepare_login(call, &slot);
        Box::pin(async move { self.loaded.log_out(&slot, context, limits).await })
    }

    fn forget_account(&self, slot: &str) {
        self.profiles.forget(slot);
    }

    fn cookies_for(&self, secrets: Secrets, url: Url) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let profile = self.profiles.of_account(secrets.account(), secrets.login_id().cloned());
            profile.load(&secrets).await;
            profile.cookies_for(&url)
        })
    }

    fn sizes(&self, call: Call, links: Vec<Link>) -> BoxFuture<'_, Vec<Option<u64>>> {
        let (_, context, limits) = self.prepare(call, Limits::preview());
        Box::pin(async move {
            let http = context.http(HttpLimits::of_sizes());
            http.load_cookies().await;
            http.sizes(&links, limits.wall).await
        })
    }
}

/// A plugin whose secrets cannot be read now sees none.
impl Vault for Secrets {
    fn session(&self) -> Option<LoginId> {
        self.login_id().cloned()
    }

    fn of_account(&self, slot: String) -> Pending<'_, Option<Arc<dyn Vault>>> {
        Box::pin(async move {
            let secrets = or_none(self.of_account(&slot).await)?;
            secrets.register_all().await;
            Some(Arc::new(secrets) as Arc<dyn Vault>)
        })
    }

    fn slots(&self) -> Pending<'_, Vec<String>> {
        Box::pin(async move { or_none(self.slots().await) })
    }

    fn all(&self) -> Pending<'_, Vec<(String, BoundSecret)>> {
        Box::pin(async move { or_none(self.all().await) })
    }

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

    fn keep_derived(&self, name: String, secret: BoundSecret) -> Result<(), String> {
        self.keep_derived(&name, secret).map_err(|error| error.to_string())
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
