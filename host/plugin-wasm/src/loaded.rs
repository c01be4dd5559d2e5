//! A plugin that can be called. Every call gets a fresh instance, which is always discarded afterwards.

use std::{fmt, sync::Arc};

use plugin_host::{
    Exceeded, Feed, FeedRequest, Link, Listing, LogLevel, PluginFault,
    runtime::{Called, HookAnswer, HookEvent, HookInput, Interface, Report, TimedOut},
};
use rustix::mm::{Advice, madvise};
use wasmtime::{
    Store, UpdateDeadline,
    component::{Instance, InstancePre, Resource},
};

use crate::{
    call::CallContext,
    capability::{
        bindings::{
            exports::svc::{
                plugin::{feed_handler, hook_handler, login, post_processor, previewer, resolver},
                script::script as scripting,
            },
            svc::plugin::types::PluginError,
        },
        state::CallState,
        workspace::DirHandle,
    },
    code::cache::ContentHash,
    engine::Machine,
    error::{LoadError, ScriptError},
    feed::SinkHandle,
    limits::{
        Limits,
        meter::{Share, TICK},
    },
    listing::ListingHandle,
};

pub(crate) mod login_session;
mod outcome;
pub(crate) mod script;

use outcome::not_exported;
use script::Script;

/// A loaded plugin. Clones share everything; a call keeps what it needs alive, so that unloading never waits for calls.
#[derive(Debug, Clone)]
pub struct Loaded(Arc<Inner>);

struct Inner {
    machine: Machine,
    guest: Arc<Guest>,
    /// The script, if the guest is the script engine.
    script: Option<Script>,
    hash: ContentHash,
    interface: Interface,
    /// Memory limit of its calls together.
    memory: Arc<Share>,
}

/// Linear memory of all calls of one plugin: enough for eight calls at their limit, or fifty small ones.
const PLUGIN_MEMORY_BYTES: usize = 512 * 1024 * 1024;

/// A linked component and the functions that are called.
pub(crate) struct Guest {
    pub(crate) pre: InstancePre<CallState>,
    pub(crate) resolver: Option<resolver::GuestIndices>,
    pub(crate) previewer: Option<previewer::GuestIndices>,
    pub(crate) feed: Option<feed_handler::GuestIndices>,
    pub(crate) hook: Option<hook_handler::GuestIndices>,
    pub(crate) post: Option<post_processor::GuestIndices>,
    pub(crate) login: Option<login::GuestIndices>,
    pub(crate) script: Option<scripting::GuestIndices>,
    pub(crate) hash: ContentHash,
    pub(crate) interface: Interface,
    /// Whether its code is mapped from a file instead of copied.
    pub(crate) is_mapped: bool,
}

impl Guest {
    /// Gives the memory of its code back. What a call runs is read from the file again.
    #[expect(unsafe_code, reason = "the kernel is told to forget pages of a mapping")]
    fn evict_code(&self) {
        if !self.is_mapped {
            return;
        }
        let code = self.pre.component().image_range();
        let bytes = code.end.addr() - code.start.addr();
        // SAFETY: the pages are mapped from the file and never written (the engine accepts no code that needs
        // relocation), so a later access reads them from the file again.
        let advised = unsafe { madvise(code.start.cast_mut().cast(), bytes, Advice::LinuxDontNeed) };
        advised.unwrap_or_else(|error| tracing::debug!(%error, "loaded code stays in memory"));
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// The guest's result or error.
type Answer<T> = Result<T, PluginError>;

/// The file of a listing to link.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub url: &'a str,
    pub entry_id: &'a str,
    pub variant_id: Option<&'a str>,
}

impl Loaded {
    /// Creates a plugin from a component. A trial instance checks the types of its functions, which nothing else does
    /// before the first call.
    pub(crate) async fn of_component(machine: Machine, guest: Arc<Guest>) -> Result<Self, LoadError> {
        let inner = Inner {
            machine,
            script: None,
            hash: guest.hash,
            interface: guest.interface.clone(),
            memory: Share::of(PLUGIN_MEMORY_BYTES),
            guest: Arc::clone(&guest),
        };
        let (types, _, _) = inner
            .run(CallContext::isolated(), Limits::preview(), async |store, instance| {
                let resolver = guest
                    .resolver
                    .as_ref()
                    .map(|it| it.load(&mut *store, &instance).map(drop));
                let previewer = guest
                    .previewer
                    .as_ref()
                    .map(|it| it.load(&mut *store, &instance).map(drop));
                let feed = guest.feed.as_ref().map(|it| it.load(&mut *store, &instance).map(drop));
                let hook = guest.hook.as_ref().map(|it| it.load(&mut *store, &instance).map(drop));
                let post = guest.post.as_ref().map(|it| it.load(&mut *store, &instance).map(drop));
                let login = guest.login.as_ref().map(|it| it.load(&mut *store, &instance).map(drop));
                Ok(Ok([
                    ("resolver", resolver),
                    ("previewer", previewer),
                    ("feed-handler", feed),
                    ("hook-handler", hook),
                    ("post-processor", post),
                    ("login", login),
                ]))
            })
            .await;
        for (interface, types) in types? {
            types
                .unwrap_or(Ok(()))
                .map_err(|error| LoadError::abi(Some(interface.to_owned()), &error))?;
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Creates a plugin from a script. Running its top level shows whether it is valid and which functions it has. Its
    /// imports are those of the engine, because a script's calls cannot be analysed.
    pub(crate) async fn of_script(machine: Machine, engine: Arc<Guest>, script: Script) -> Result<Self, LoadError> {
        let mut inner = Inner {
            machine,
            hash: ContentHash::of(script.text().as_bytes()),
            interface: engine.interface.clone(),
            memory: Share::of(PLUGIN_MEMORY_BYTES),
            script: Some(script),
            guest: engine,
        };
        let limits = Limits::preview().of_script();
        let (functions, _, _) = inner
            .run(CallContext::isolated(), limits, async |store, instance| {
                Ok(Ok(inner.hand_over(store, &instance).await?))
            })
            .await;
        inner.interface.exports = script::exports(&functions??);
        Ok(Self(Arc::new(inner)))
    }

    /// Gives back the memory of the code that the trial run needed: an idle plugin keeps none.
    pub(crate) fn evict_code(&self) {
        self.0.guest.evict_code();
    }

    /// Names the plugin by its bytes.
    pub fn hash(&self) -> ContentHash {
        self.0.hash
    }

    /// Its exports, and every function that it can call.
    pub fn interface(&self) -> &Interface {
        &self.0.interface
    }

    /// The files behind `url`.
    pub async fn resolve(
        &self,
        url: &str,
        password: Option<&str>,
        context: CallContext,
        limits: Limits,
    ) -> Called<Listing> {
        let Some(resolver) = self.0.exported("resolver", self.0.guest.resolver.as_ref()) else {
            return not_exported("resolver");
        };
        self.list(context, limits, async |store, instance, out| {
            let guest = resolver.load(&mut *store, &instance)?;
            guest.call_resolve(store, url, password, out).await
        })
        .await
    }

    /// More files behind `url`, from the page that `token` of an earlier listing names.
    pub async fn more(&self, url: &str, token: &str, context: CallContext, limits: Limits) -> Called<Listing> {
        let Some(resolver) = self.0.exported("resolver", self.0.guest.resolver.as_ref()) else {
            return not_exported("resolver");
        };
        self.list(context, limits, async |store, instance, out| {
            let guest = resolver.load(&mut *store, &instance)?;
            guest.call_more(store, url, token, out).await
        })
        .await
    }

    /// Previews `url`.
    pub async fn preview(&self, url: &str, context: CallContext, limits: Limits) -> Called<Listing> {
        let Some(previewer) = self.0.exported("previewer", self.0.guest.previewer.as_ref()) else {
            return not_exported("previewer");
        };
        self.list(context, limits, async |store, instance, out| {
            let guest = previewer.load(&mut *store, &instance)?;
            guest.call_preview(store, url, out).await
        })
        .await
    }

    /// The feed of `url`.
    pub async fn feed(&self, url: &str, request: &FeedRequest, context: CallContext, limits: Limits) -> Called<Feed> {
        let Some(handler) = self.0.exported("feed-handler", self.0.guest.feed.as_ref()) else {
            return not_exported("feed-handler");
        };
        let (result, state, report) = self
            .call(context, limits, async |store, instance| {
                let sink = store.data_mut().table.push(SinkHandle)?;
                let lent = Resource::new_borrow(sink.rep());
                let guest = handler.load(&mut *store, &instance)?;
                guest
                    .call_fetch(store, url, request.since_ms, request.etag.as_deref(), lent)
                    .await
            })
            .await;
        let feed = state.feed.finish();
        Called {
            result: result.map(|()| feed),
            report,
        }
    }

    /// Tells what became of a download of `url`.
    pub async fn hook(&self, url: String, told: HookInput, context: CallContext, limits: Limits) -> Called<HookAnswer> {
        let Some(handler) = self.0.exported("hook-handler", self.0.guest.hook.as_ref()) else {
            return not_exported("hook-handler");
        };
        let event = hook_handler::HookEvent {
            kind: match told.event {
                HookEvent::Start => hook_handler::HookKind::Start,
                HookEvent::MetaProbed => hook_handler::HookKind::MetaProbed,
                HookEvent::Done => hook_handler::HookKind::Done,
                HookEvent::Error => hook_handler::HookKind::Error,
            },
            task_id: told.task_id,
            url,
            file_name: told.file_name,
            total_bytes: told.total_bytes,
            error_kind: told.error_kind,
            message: told.message,
            attempts: told.attempts,
        };
        let (result, _, report) = self
            .call(context, limits, async |store, instance| {
                let guest = handler.load(&mut *store, &instance)?;
                guest.call_handle(store, &event).await
            })
            .await;
        let answer = |retry: Option<hook_handler::Retry>| HookAnswer {
            retry_after_ms: retry.map(|retry| retry.after_ms),
        };
        Called {
            result: result.map(answer),
            report,
        }
    }

    /// Has it work on the files of the context, which are those of a finished download of `url`.
    pub async fn post_process(&self, url: &str, main: &str, context: CallContext, limits: Limits) -> Called<()> {
        let Some(processor) = self.0.exported("post-processor", self.0.guest.post.as_ref()) else {
            return not_exported("post-processor");
        };
        let (result, _, report) = self
            .call(context, limits, async |store, instance| {
                let dir = store.data_mut().table.push(DirHandle)?;
                let lent = Resource::new_borrow(dir.rep());
                let guest = processor.load(&mut *store, &instance)?;
                guest.call_done(store, url, main, lent).await
            })
            .await;
        Called { result, report }
    }

    /// The link of a file.
    pub async fn link(&self, wanted: Wanted<'_>, context: CallContext, limits: Limits) -> Called<Link> {
        let Some(resolver) = self.0.exported("resolver", self.0.guest.resolver.as_ref()) else {
            return not_exported("resolver");
        };
        let (result, _, report) = self
            .call(context, limits, async |store, instance| {
                let guest = resolver.load(&mut *store, &instance)?;
                let asked = guest.call_link_for(&mut *store, wanted.url, wanted.entry_id, wanted.variant_id);
                Ok(match asked.await? {
                    Ok(link) => Ok(store.data_mut().table.delete(link)?.finish()),
                    Err(error) => Err(error),
                })
            })
            .await;
        Called { result, report }
    }

    /// A call that fills a listing.
    async fn list(
        &self,
        context: CallContext,
        limits: Limits,
        work: impl AsyncFnOnce(&mut Store<CallState>, Instance, Resource<ListingHandle>) -> wasmtime::Result<Answer<()>>,
    ) -> Called<Listing> {
        let (result, state, report) = self
            .call(context, limits, async |store, instance| {
                let listing = store.data_mut().table.push(ListingHandle)?;
                let lent = Resource::new_borrow(listing.rep());
                work(store, instance, lent).await
            })
            .await;
        let listing = state.listing.finish();
        Called {
            result: result.map(|()| listing),
            report,
        }
    }

    /// Runs `work` on a fresh instance within `limits`, after loading the script if the plugin is one.
    async fn call<T>(
        &self,
        context: CallContext,
        limits: Limits,
        work: impl AsyncFnOnce(&mut Store<CallState>, Instance) -> wasmtime::Result<Answer<T>>,
    ) -> (Result<T, PluginFault>, CallState, Report) {
        if self.0.script.is_none() {
            return self.0.run(context, limits, work).await;
        }
        let with_script =
            async |store: &mut Store<CallState>, instance| match self.0.hand_over(store, &instance).await? {
                Ok(_) => work(store, instance).await,
                Err(error) => Ok(Err(PluginError::Internal(error.to_string()))),
            };
        self.0.run(context, limits.of_script(), with_script).await
    }
}

impl Inner {
    /// The functions of an interface, if the plugin has it: the script engine exports more than most scripts.
    fn exported<T>(&self, interface: &str, functions: Option<T>) -> Option<T> {
        let is_exported = self.interface.exports.iter().any(|export| export == interface);
        functions.filter(|_| is_exported)
    }

    /// Loads the script into a fresh instance; returns its functions.
    async fn hand_over(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
    ) -> wasmtime::Result<Result<Vec<String>, ScriptError>> {
        let (Some(script), Some(engine)) = (&self.script, &self.guest.script) else {
            return Err(wasmtime::format_err!("the engine of scripts takes no script"));
        };
        script.hand_over(engine, store, instance).await
    }

    /// Runs `work` on a fresh instance within `limits`.
    async fn run<T>(
        &self,
        context: CallContext,
        limits: Limits,
        work: impl AsyncFnOnce(&mut Store<CallState>, Instance) -> wasmtime::Result<Answer<T>>,
    ) -> (Result<T, PluginFault>, CallState, Report) {
        let _ticking = self.machine.ticker.run();
        let mut store = self.store(context, limits);
        store.data().http.load_cookies().await;
        let wall = store.data().limits.wall;
        let clock = store.data().context.clock.clone();
        let run = async {
            let instance = self.guest.pre.instantiate_async(&mut store).await?;
            let state = store.data_mut();
            state.instantiated = state.started.elapsed();
            work(&mut store, instance).await
        };
        let ended = clock.timeout(wall, run).await;
        let state = store.into_data();
        state.http.save_cookies().await;
        let result = match ended {
            Ok(Ok(answer)) => answer.map_err(|error| PluginFault::Answer(error.into())),
            Ok(Err(error)) => {
                let fault = outcome::fault(&error, &state.meter, &state.limits);
                if let PluginFault::Trap { kind, frames } = &fault {
                    let crash = format!("it crashed: {kind}, in {}", frames.join(" of "));
                    state.context.log.write(LogLevel::Error, &crash);
                }
                Err(fault)
            }
            Err(TimedOut) => Err(PluginFault::Limit(Exceeded::Wall(wall))),
        };
        let report = state.report();
        (result, state, report)
    }

    fn store(&self, context: CallContext, limits: Limits) -> Store<CallState> {
        let host_call_bytes = limits.host_call_bytes;
        let machine = &self.machine;
        let state = CallState::new(context, limits, machine.shared.clone(), self.memory.clone());
        let mut store = Store::new(&machine.engine, state);
        store.limiter(|state| state);
        store.set_hostcall_fuel(host_call_bytes);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|mut store| {
            store.data_mut().charge(TICK)?;
            Ok(UpdateDeadline::Yield(1))
        });
        store
    }
}
