//! The state of one call, on which the host functions work. It lives exactly as long as the call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use accounts::Screen;
use plugin_host::{PluginFault, runtime::Report};
use svc_plugin_text::{TextError, Work};
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
};
use wasmtime::{ResourceLimiter, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    call::CallContext,
    engine::SharedState,
    feed::FeedBuilder,
    http::{Response, call_http::CallHttp},
    limits::{
        Limits,
        meter::{Meter, Share, Taken},
    },
    listing::ListingBuilder,
};

/// Searches of texts up to this size run inline, because another thread would take longer.
const SHORT_TEXT_BYTES: usize = 8 * 1024;

/// Limit of an inline search, some milliseconds. Beyond it the search is restarted on another thread.
const SHORT_SEARCH_STEPS: u64 = 200_000;

/// Time slice of a search.
const TIME_SLICE: Duration = Duration::from_millis(20);

/// What the functions that guests import work on: one per call.
pub(crate) struct CallState {
    pub(crate) context: CallContext,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) limits: Limits,
    pub(crate) meter: Meter,
    memory: Taken,
    pub(crate) table: ResourceTable,
    pub(crate) http: CallHttp,
    pub(crate) listing: ListingBuilder,
    pub(crate) feed: FeedBuilder,
    pub(crate) screen: Screen,
    pub(crate) started: Instant,
    pub(crate) instantiated: Duration,
    pub(crate) log_lines: u32,
    pub(crate) random_blocks: u64,
    wasi: WasiCtx,
}

/// Cancels a search when its call ends in any way.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time slices of a long search: after each it queues again, so that a short search waits for one slice of those
/// before it, not for their end.
struct TimeSlices {
    permit: Option<OwnedSemaphorePermit>,
    searches: Arc<Semaphore>,
    runtime: Handle,
    since: Instant,
    /// Duration of the earlier slices.
    before: Duration,
}

impl TimeSlices {
    fn new(first: OwnedSemaphorePermit, searches: Arc<Semaphore>, runtime: Handle) -> Self {
        Self {
            permit: Some(first),
            searches,
            runtime,
            since: Instant::now(),
            before: Duration::ZERO,
        }
    }

    /// The computing time. Waiting for a slice does not count.
    fn spent(&self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// Whether the search may continue; queues for the next slice if the present one is over.
    fn next(&mut self) -> bool {
        let turn = self.since.elapsed();
        if turn < TIME_SLICE {
            return true;
        }
        self.before += turn;
        self.permit = None;
        let queued = self.searches.clone().acquire_owned();
        self.permit = self.runtime.block_on(queued).ok();
        self.since = Instant::now();
        self.permit.is_some()
    }
}

impl CallState {
    /// The initial state of a call; `memory` is shared by all calls of the plugin.
    pub(crate) fn new(context: CallContext, limits: Limits, shared: Arc<SharedState>, memory: Arc<Share>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let http = context.http(limits.http.clone());
        Self {
            meter: Meter::new(limits.cpu, limits.memory_bytes, limits.table_elements),
            memory: Taken::nothing([memory, shared.memory.clone()]),
            listing: ListingBuilder::new(limits.output.clone()),
            feed: FeedBuilder::new(limits.output.clone()),
            screen: Screen::default(),
            table,
            http,
            context,
            shared,
            limits,
            started: Instant::now(),
            instantiated: Duration::ZERO,
            log_lines: 0,
            random_blocks: 0,
            // No arguments, environment, files or sockets; output is discarded.
            wasi: WasiCtx::builder()
                .allow_tcp(false)
                .allow_udp(false)
                .allow_ip_name_lookup(false)
                .build(),
        }
    }

    /// Begins another call on the same instance: its limits count anew. What it holds stays, except the responses: each call
    /// may receive as many bytes as one may, and all of them together would be too many.
    pub(crate) fn begin_again(&mut self) {
        for resource in self.table.iter_mut() {
            if let Some(response) = resource.downcast_mut::<Response>() {
                response.empty();
            }
        }
        self.meter.begin_again();
        self.http = self.context.http(self.limits.http.clone());
        self.screen = Screen::default();
        self.started = Instant::now();
        self.instantiated = Duration::ZERO;
        self.log_lines = 0;
    }

    /// Runs a search through `len` bytes and charges it to the plugin's computing time. It ends when that is used up or
    /// the call is dropped, and shares the searching threads with other calls.
    pub(crate) async fn search<T: Send + 'static>(
        &mut self,
        len: usize,
        search: impl Fn(&mut Work<'_>) -> Result<T, TextError> + Send + 'static,
    ) -> wasmtime::Result<Result<T, TextError>> {
        if len <= SHORT_TEXT_BYTES {
            let started = Instant::now();
            let found = search(&mut Work::of_steps(SHORT_SEARCH_STEPS));
            self.charge(started.elapsed())?;
            if found.as_ref().err() != Some(&TextError::TooMuchWork) {
                return Ok(found);
            }
        }
        let given_up = Arc::new(AtomicBool::new(false));
        let _giving_up = CancelOnDrop(Arc::clone(&given_up));
        let budget = self.meter.cpu_left().min(self.time_left());
        let searches = self.shared.searches.clone();
        let first = searches.clone().acquire_owned().await?;
        let runtime = Handle::current();
        let searching = tokio::task::spawn_blocking(move || {
            let mut turns = TimeSlices::new(first, searches, runtime);
            let mut may_go_on = || turns.next() && turns.spent() <= budget && !given_up.load(Ordering::Relaxed);
            let found = search(&mut Work::while_true(&mut may_go_on));
            (found, turns.spent())
        });
        let (found, spent) = searching.await?;
        self.charge(spent)?;
        Ok(found)
    }

    pub(crate) fn charge(&mut self, spent: Duration) -> Result<(), PluginFault> {
        self.meter.charge(spent).map_err(PluginFault::Limit)
    }

    pub(crate) fn time_left(&self) -> Duration {
        let counted = self.started.elapsed().saturating_sub(self.context.clock.waited());
        self.limits.wall.saturating_sub(counted)
    }

    pub(crate) fn report(&self) -> Report {
        let traffic = self.http.traffic();
        Report {
            wall: self.started.elapsed(),
            instantiate: self.instantiated,
            cpu: self.meter.cpu_used(),
            peak_memory_bytes: self.meter.peak_memory(),
            requests: traffic.requests,
            received_bytes: traffic.bytes,
            denied: traffic.denied,
            lost_log_lines: self.log_lines.saturating_sub(self.limits.log_lines),
        }
    }
}

impl ResourceLimiter for CallState {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if !self.meter.may_grow_memory(desired) {
            return Ok(false);
        }
        // Within the call's own limit, but other calls use the memory: not the plugin's fault, and a retry may succeed.
        if !self.memory.take(desired.saturating_sub(current)) {
            return Err(PluginFault::Overloaded.into());
        }
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(self.meter.may_grow_table(desired))
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView {
            ctx: &mut self.wasi,
            table: &mut self.table,
        }
    }
}
