//! A plugin that can be called. Every call gets a fresh instance, which is thrown away afterwards, however it ended.

use std::{fmt, sync::Arc};

use plugin_host::{
    Exceeded, Link, Listing, PluginFault,
    runtime::{Called, Interface, Report},
};
use wasmtime::{
    Store, UpdateDeadline,
    component::{Instance, InstancePre, Resource},
};

use crate::{
    bindings::{
        exports::svc::plugin::{previewer, resolver},
        svc::plugin::types::PluginError,
    },
    cache::ContentHash,
    call::CallContext,
    capability::listing::ListingHandle,
    limits::Limits,
    meter::TICK,
    outcome,
    runtime::{LoadError, Runtime},
    state::CallState,
};

/// A loaded plugin. Clones share everything; a call keeps what it needs alive, so that unloading never waits for calls.
#[derive(Debug, Clone)]
pub struct Loaded(Arc<Inner>);

struct Inner {
    runtime: Runtime,
    guest: Guest,
    hash: ContentHash,
    interface: Interface,
}

/// The linked component and the functions that are called.
pub(crate) struct Guest {
    pub(crate) pre: InstancePre<CallState>,
    pub(crate) resolver: Option<resolver::GuestIndices>,
    pub(crate) previewer: Option<previewer::GuestIndices>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded")
            .field("hash", &self.hash)
            .finish_non_exhaustive()
    }
}

/// What the guest answered: what it gave, or its error.
type Answer<T> = Result<T, PluginError>;

/// The file of a listing that a link is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The URL that was resolved.
    pub url: &'a str,
    /// The entry of its listing.
    pub entry_id: &'a str,
    /// The variant of the entry.
    pub variant_id: Option<&'a str>,
}

impl Loaded {
    pub(crate) fn new(runtime: Runtime, guest: Guest, hash: ContentHash, interface: Interface) -> Self {
        Self(Arc::new(Inner {
            runtime,
            guest,
            hash,
            interface,
        }))
    }

    /// Makes an instance and looks at the types of its functions, which nothing else does before the first call.
    pub(crate) async fn try_out(&self) -> Result<(), LoadError> {
        let guest = &self.0.guest;
        let (types, _, _) = self
            .call(CallContext::isolated(), Limits::preview(), async |store, instance| {
                let resolver = guest
                    .resolver
                    .as_ref()
                    .map(|it| it.load(&mut *store, &instance).map(drop));
                let previewer = guest
                    .previewer
                    .as_ref()
                    .map(|it| it.load(&mut *store, &instance).map(drop));
                Ok(Ok([("resolver", resolver), ("previewer", previewer)]))
            })
            .await;
        for (interface, types) in types? {
            types
                .unwrap_or(Ok(()))
                .map_err(|error| LoadError::abi(Some(interface.to_owned()), &error))?;
        }
        Ok(())
    }

    /// Names the plugin by its bytes.
    pub fn hash(&self) -> ContentHash {
        self.0.hash
    }

    /// What it has, and every function that it can call.
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
        let Some(resolver) = &self.0.guest.resolver else {
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
        let Some(resolver) = &self.0.guest.resolver else {
            return not_exported("resolver");
        };
        self.list(context, limits, async |store, instance, out| {
            let guest = resolver.load(&mut *store, &instance)?;
            guest.call_more(store, url, token, out).await
        })
        .await
    }

    /// A quick look at what is behind `url`.
    pub async fn preview(&self, url: &str, context: CallContext, limits: Limits) -> Called<Listing> {
        let Some(previewer) = &self.0.guest.previewer else {
            return not_exported("previewer");
        };
        self.list(context, limits, async |store, instance, out| {
            let guest = previewer.load(&mut *store, &instance)?;
            guest.call_preview(store, url, out).await
        })
        .await
    }

    /// Where the bytes of a file are.
    pub async fn link(&self, wanted: Wanted<'_>, context: CallContext, limits: Limits) -> Called<Link> {
        let Some(resolver) = &self.0.guest.resolver else {
            return not_exported("resolver");
        };
        let (result, _, report) = self
            .call(context, limits, async |store, instance| {
                let guest = resolver.load(&mut *store, &instance)?;
                let asked = guest.call_link_for(&mut *store, wanted.url, wanted.entry_id, wanted.variant_id);
                Ok(match asked.await? {
                    Ok(link) => Ok(store.data_mut().table.delete(link)?),
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

    /// Runs `work` on a fresh instance within `limits`.
    async fn call<T>(
        &self,
        context: CallContext,
        limits: Limits,
        work: impl AsyncFnOnce(&mut Store<CallState>, Instance) -> wasmtime::Result<Answer<T>>,
    ) -> (Result<T, PluginFault>, CallState, Report) {
        let _ticking = self.0.runtime.0.ticker.run();
        let mut store = self.store(context, limits);
        let wall = store.data().limits.wall;
        let run = async {
            let instance = self.0.guest.pre.instantiate_async(&mut store).await?;
            work(&mut store, instance).await
        };
        let ended = tokio::time::timeout(wall, run).await;
        let state = store.into_data();
        let result = match ended {
            Ok(Ok(answer)) => answer.map_err(|error| PluginFault::Answer(error.into())),
            Ok(Err(error)) => Err(outcome::fault(&error, &state.meter, &state.limits)),
            Err(_) => Err(PluginFault::Limit(Exceeded::Wall(wall))),
        };
        let report = state.report();
        (result, state, report)
    }

    fn store(&self, context: CallContext, limits: Limits) -> Store<CallState> {
        let host_call_bytes = limits.host_call_bytes;
        let shared = &self.0.runtime.0;
        let state = CallState::new(context, limits, shared.host.clone());
        let mut store = Store::new(&shared.engine, state);
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

fn not_exported<T>(interface: &'static str) -> Called<T> {
    Called {
        result: Err(PluginFault::NotExported(interface)),
        report: Report::default(),
    }
}
