//! The only module that calls plugins: selects the plugin for a URL, checks that a call is allowed, prepares it, and
//! draws the consequences of its result (breaker, site health, rollback).

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use accounts::Secrets;
use futures_util::{FutureExt as _, future::BoxFuture};
use market::Identity;
use plugin_package::{Manifest, manifest::Capabilities};
use tokio::time::Instant;
use transfer::Secret;
use url::Url;

use crate::{
    call::capture::Capture,
    error::{CallError, CallFailure},
    fixture::watch,
    install::{Plugins, Shared},
    lifecycle::{Input, Source, Switch, registry::Loaded},
    policy::{
        breaker::Change,
        fault::{Exceeded, GuestError, PluginFault},
        grant::CallTarget,
        health::{Capability, Verdict},
    },
    runtime::{
        Ask, Call, CallClock, CallId, CallTools, Called, Event, Guest, Link, Listing, Report, Storage, TimedOut, World,
        now_ms, preview,
    },
};

mod capture;
mod cookies;
mod feed;
mod hook;
mod login;
mod post;
mod resolver;
mod sizes;

pub use feed::FeedRefusal;
pub use login::{LoginError, LoginRequest, LoginView, SlotSummary};

/// How much longer than the call's limit a runtime may take to end a call and report.
const GRACE: Duration = Duration::from_secs(1);

/// A new version is on probation for this time or number of calls, whichever ends first.
const PROBATION: Duration = Duration::from_hours(24);
const PROBATION_CALLS: u32 = 20;

/// A listing, and the plugin that it is from.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The plugin, which also resolves the listing's links.
    pub plugin: Identity,
    pub listing: Listing,
}

/// The result of a preview.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "one at a time, taken apart where it arrives")]
pub enum Previewed {
    List(Resolved),
    /// A plugin claims it but lists no files: it is one file.
    File(Identity),
    /// No plugin claims it.
    Unclaimed,
}

impl Plugins {
    /// The first plugin that claims the URL.
    pub fn claim(&self, url: &Url) -> Option<Identity> {
        self.0.registry.snapshot().claims(url).into_iter().next()
    }

    /// The plugin that would claim the URL once the user consents to its permissions.
    pub fn awaiting_consent(&self, url: &Url) -> Option<Identity> {
        self.0.registry.snapshot().awaiting_consent(url)
    }

    /// Why a plugin cannot be called now, if so.
    pub(crate) fn unavailable(&self, plugin: &Identity) -> Option<CallError> {
        let loaded = self.0.registry.get(plugin).ok_or(CallFailure::NotInstalled);
        let reason = loaded.and_then(|loaded| loaded.callable().map(drop)).err()?;
        Some(CallError {
            plugin: plugin.clone(),
            version: None,
            call: None,
            reason,
            grantable: Vec::new(),
        })
    }

    /// Lists the files of a URL. `None` if no plugin claims it. After an error the URL must not be downloaded as it is:
    /// a plugin claims it.
    pub async fn resolve(&self, given: CallTarget, password: Option<Secret>) -> Result<Option<Resolved>, CallError> {
        self.first_of(&given, |plugin| {
            let (ask, password) = (Ask::Resolve(password.clone()), password.clone());
            let call = move |guest: Arc<dyn Guest>, call| {
                let password = password.clone();
                async move { guest.resolve(call, password).await }.boxed()
            };
            self.0.call(plugin, ask, &given, call).boxed()
        })
        .await
    }

    /// The next page of a listing of `plugin`.
    pub async fn more(&self, plugin: &Identity, given: CallTarget, token: String) -> Result<Listing, CallError> {
        let ask = Ask::More(token.clone());
        let call = |guest: Arc<dyn Guest>, call| {
            let token = token.clone();
            async move { guest.more(call, token).await }.boxed()
        };
        self.0.call(plugin.clone(), ask, &given, call).await
    }

    /// The present link of an entry of a listing of `plugin`.
    pub async fn link_for(
        &self,
        plugin: &Identity,
        given: CallTarget,
        entry: String,
        variant: Option<String>,
    ) -> Result<Link, CallError> {
        let ask = Ask::LinkFor(entry.clone(), variant.clone());
        let call = |guest: Arc<dyn Guest>, call| {
            let (entry, variant) = (entry.clone(), variant.clone());
            async move { guest.link_for(call, entry, variant).await }.boxed()
        };
        self.0.call(plugin.clone(), ask, &given, call).await
    }

    /// Previews a URL. Without a preview of its own, a plugin lists what it would resolve: all pages, all folders. Sizes
    /// that it does not tell are asked from the servers.
    pub async fn preview(&self, given: CallTarget) -> Result<Previewed, CallError> {
        let Some(plugin) = self.claim(&given.url) else {
            return Ok(Previewed::Unclaimed);
        };
        let gives_lists = self.is_capable(&plugin, |capabilities| {
            let resolver = capabilities.resolver.as_ref();
            capabilities.preview || resolver.is_some_and(|resolver| resolver.gives_lists)
        });
        if !gives_lists {
            return Ok(Previewed::File(plugin));
        }
        let listed = self.first_of(&given, |plugin| {
            let call = |guest, call| preview(guest, call).boxed();
            self.0.call(plugin, Ask::Preview, &given, call).boxed()
        });
        let Some(mut resolved) = listed.await? else {
            return Ok(Previewed::Unclaimed);
        };
        if !self.is_capable(&resolved.plugin, |capabilities| capabilities.preview) {
            self.add_pages(&mut resolved, given.clone()).await?;
        }
        self.add_sizes(&mut resolved, &given).await;
        Ok(Previewed::List(resolved))
    }

    fn is_capable(&self, plugin: &Identity, is_so: impl FnOnce(&Capabilities) -> bool) -> bool {
        let manifest = self.0.registry.get(plugin).and_then(|loaded| loaded.manifest.clone());
        manifest.is_some_and(|manifest| is_so(&manifest.capabilities))
    }

    /// The answer of the first plugin that does not decline the URL.
    async fn first_of<'a>(
        &self,
        given: &CallTarget,
        ask: impl Fn(Identity) -> BoxFuture<'a, Result<Listing, CallError>>,
    ) -> Result<Option<Resolved>, CallError> {
        for plugin in self.0.registry.snapshot().claims(&given.url) {
            match ask(plugin.clone()).await {
                Ok(listing) => return Ok(Some(Resolved { plugin, listing })),
                Err(error) if error.reason == CallFailure::Fault(GuestError::NotMatched.into()) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Shared {
    /// Calls a plugin. If the session of an account has expired, it is renewed, and the call made once more.
    async fn call<T>(
        self: &Arc<Self>,
        plugin: Identity,
        ask: Ask,
        given: &CallTarget,
        make: impl Fn(Arc<dyn Guest>, Call) -> BoxFuture<'static, Called<T>>,
    ) -> Result<T, CallError> {
        self.renew_due(&plugin, given).await;
        let since = Instant::now();
        let mut error = match self.call_once(&plugin, &ask, given, &make).await {
            Err(error) => error,
            found => return found,
        };
        let Some(slot) = self.account_of(&mut error) else {
            return Err(error);
        };
        match self.renew(&plugin, &slot, given, since).await {
            Ok(true) => {
                let again = self.call_once(&plugin, &ask, given, &make).await;
                again.map_err(|mut error| {
                    self.account_of(&mut error);
                    error
                })
            }
            Ok(false) => Err(error),
            Err(renewal) => Err(renewal),
        }
    }

    async fn call_once<T>(
        self: &Arc<Self>,
        plugin: &Identity,
        ask: &Ask,
        given: &CallTarget,
        make: impl Fn(Arc<dyn Guest>, Call) -> BoxFuture<'static, Called<T>>,
    ) -> Result<T, CallError> {
        let loaded = self.registry.get(plugin);
        let manifest = loaded.as_ref().and_then(|loaded| loaded.manifest.clone());
        let refused = |reason: CallFailure| CallError {
            plugin: plugin.clone(),
            version: manifest.as_ref().map(|manifest| manifest.version.to_string()),
            call: None,
            reason,
            grantable: Vec::new(),
        };
        let loaded = loaded.ok_or_else(|| refused(CallFailure::NotInstalled))?;
        let loaded = self.once_loaded(plugin, loaded, ask).await.map_err(refused)?;
        let (running, manifest) = loaded.callable().map_err(refused)?;
        let wall = ask.wall(manifest).ok_or_else(|| refused(CallFailure::Incapable))?;
        // Hooks and work on files have places of their own, so that none of them delays an interactive call.
        let _slot = if let Ask::Hook(_) | Ask::Post(_) = ask {
            None
        } else {
            let slot = self.stop.run_until_cancelled(self.slots.take(plugin)).await;
            let slot = slot.ok_or_else(|| refused(CallFailure::Closed))?;
            Some(slot.map_err(|_| refused(PluginFault::Overloaded.into()))?)
        };
        let admitted = self.health.admit(plugin, ask.capability());
        admitted.map_err(|pause| refused(CallFailure::Resting(pause)))?;
        let call = feed::with_source(self.prepare(plugin, &loaded, manifest, given, wall), manifest, ask);
        call.secrets.register_all().await;
        let (id, hosts, capture) = (call.id, call.hosts.clone(), Capture::of(&call));
        let clock = call.clock.clone();
        let calling = self.run_call(make(Arc::clone(&running.guest), call), wall, &clock);
        let called = tokio::select! {
            called = calling => called.ok_or_else(|| refused(CallFailure::Closed))?,
            Some(stopped) = self.registry.stopped(plugin) => return Err(refused(stopped.revoked())),
        };
        self.learn(
            plugin,
            ask.capability(),
            given,
            &running.guest,
            called.result.as_ref().err(),
        );
        self.record_call(plugin, id, ask.name(), &called);
        self.capture(&loaded, capture, ask, called.result.as_ref().err());
        let denied = called.report.denied.iter();
        let grantable: BTreeSet<_> = denied.filter_map(|denial| hosts.grantable_for(denial)).collect();
        called.result.map_err(|fault| CallError {
            call: Some(id),
            grantable: grantable.iter().map(ToString::to_string).collect(),
            ..refused(fault.into())
        })
    }

    fn next_call_id(&self) -> CallId {
        CallId(self.next_call.fetch_add(1, Ordering::Relaxed))
    }

    fn record_call<T>(&self, plugin: &Identity, call: CallId, action: &'static str, called: &Called<T>) {
        for denial in called.report.denied.iter().cloned() {
            self.journal.record(plugin, Event::Denied { call, denial });
        }
        let event = Event::Called {
            call,
            action,
            report: called.report.clone(),
            fault: called.result.as_ref().err().cloned(),
        };
        self.journal.record(plugin, event);
    }

    /// Waits for a call; `None` if it was cut short by the shutdown of plugins.
    async fn run_call<T>(
        &self,
        call: BoxFuture<'_, Called<T>>,
        wall: Duration,
        clock: &CallClock,
    ) -> Option<Called<T>> {
        let calling = clock.timeout(wall + GRACE, call);
        let called = self.stop.run_until_cancelled(calling).await?;
        Some(called.unwrap_or_else(|TimedOut| Called {
            result: Err(PluginFault::Limit(Exceeded::Wall(wall))),
            report: Report {
                wall: wall + GRACE,
                ..Report::default()
            },
        }))
    }

    fn prepare(
        &self,
        plugin: &Identity,
        loaded: &Loaded,
        manifest: &Manifest,
        given: &CallTarget,
        wall: Duration,
    ) -> Call {
        let id = self.next_call_id();
        let given = &given.clone().with_login_apart();
        let once = self.health.take_once(plugin);
        let hosts = loaded.grant().for_call(&manifest.permissions, &once, given);
        let tools = self.tools.get().filter(|_| loaded.grant().allows_tools());
        let storage_bytes = manifest.permissions.storage_bytes;
        // Authors need recordings of failed calls.
        let world = match &loaded.installation.source {
            Source::Development(_) => {
                let watch = watch();
                watch.redact_given(given);
                World::Watched(Arc::new(watch))
            }
            Source::File | Source::Bundled | Source::Market(_) => World::Live,
        };
        Call {
            id,
            plugin: plugin.clone(),
            given: given.clone(),
            log: self.journal.of_call(plugin.clone(), id),
            hosts,
            settings: Arc::new(loaded.values.effective(&manifest.settings)),
            secrets: self
                .secrets(plugin, loaded, manifest)
                .with_redactor(world.redactor().cloned()),
            storage: Storage::new(self.store.clone(), plugin.clone(), storage_bytes),
            tools: tools.map(|tools| CallTools::new(Arc::clone(tools), given)),
            world,
            wall,
            clock: CallClock::default(),
        }
    }

    /// The secrets that the plugin may use but not read, each bound to the hosts that the user allowed.
    fn secrets(&self, plugin: &Identity, loaded: &Loaded, manifest: &Manifest) -> Secrets {
        let bindings = loaded.grant().bindings(&manifest.permissions.secrets);
        let settings = loaded.values.secret.clone();
        Secrets::new(self.accounts.clone(), plugin.clone(), settings, bindings)
    }

    /// The secrets of a running plugin, to fill in the headers of its links.
    pub(crate) fn secrets_of(&self, plugin: &Identity) -> Option<Secrets> {
        let loaded = self.registry.get(plugin)?;
        let manifest = loaded.manifest.as_ref()?;
        Some(self.secrets(plugin, &loaded, manifest))
    }

    /// Updates breaker and site health after a call, and disables the plugin or rolls it back if they say so. Results
    /// of another version are ignored.
    fn learn(
        self: &Arc<Self>,
        plugin: &Identity,
        capability: Capability,
        given: &CallTarget,
        called: &Arc<dyn Guest>,
        fault: Option<&PluginFault>,
    ) {
        let Some(loaded) = self.registry.get(plugin) else {
            return;
        };
        if !loaded
            .running
            .as_ref()
            .is_ok_and(|running| Arc::ptr_eq(&running.guest, called))
        {
            return;
        }
        let verdict = self
            .health
            .record(plugin, capability, given.url.as_str(), fault, now_ms());
        if verdict.has_new_condition {
            self.registry.report_change();
        }
        let input = match verdict {
            Verdict {
                change: Change::None,
                is_worse: false,
                ..
            } => return,
            verdict
                if is_on_probation(&loaded, verdict.calls)
                    && self.check_previous(plugin, &loaded.installation).is_ok() =>
            {
                Input::RollBack { by_user: false }
            }
            Verdict {
                change: Change::Tripped,
                ..
            } => Input::Switch(Switch::Tripped),
            _ => return,
        };
        let (shared, plugin, called) = (Arc::clone(self), plugin.clone(), Arc::clone(called));
        self.tasks.spawn(async move {
            let _turn = shared.turn(&plugin).await;
            let running = shared
                .registry
                .get(&plugin)
                .and_then(|loaded| loaded.running.clone().ok());
            // Another call or the user may have changed the plugin already.
            if running.is_some_and(|running| Arc::ptr_eq(&running.guest, &called))
                && let Err(error) = shared.apply(&plugin, input).await
            {
                tracing::warn!(%plugin, %error, "a plugin that keeps failing could not be taken out of service");
            }
        });
    }
}

fn is_on_probation(loaded: &Loaded, calls: u32) -> bool {
    let installation = &loaded.installation;
    let is_new = installation.active.as_ref().is_some_and(|active| {
        let age = now_ms().saturating_sub(active.installed_ms);
        u128::try_from(age).is_ok_and(|age| age < PROBATION.as_millis())
    });
    // Secrets saved since then are meant for the present author only.
    let has_same_author = |previous| !installation.has_other_author(previous, &installation.source);
    let is_replaceable = !installation.is_pinned && !installation.is_development();
    let can_go_back = is_replaceable && installation.previous.as_ref().is_some_and(has_same_author);
    is_new && can_go_back && calls <= PROBATION_CALLS
}
