//! What the store of one call holds. It lives exactly as long as the call.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

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
    engine::Host,
    http::session::Session,
    limits::{
        Limits,
        meter::{Meter, Share, Taken},
    },
    listing::ListingBuilder,
};

/// Searches through texts up to this size are done on the spot; going to another thread would take longer.
const SHORT_TEXT_BYTES: usize = 8 * 1024;

/// How much a search on the spot may cost: some milliseconds. One that costs more is begun again on another thread.
const SHORT_SEARCH_STEPS: u64 = 200_000;

/// How long a search computes before others have their turn.
const TURN: Duration = Duration::from_millis(20);

/// Host functions work on this.
pub(crate) struct CallState {
    pub(crate) context: CallContext,
    pub(crate) host: Arc<Host>,
    pub(crate) limits: Limits,
    pub(crate) meter: Meter,
    memory: Taken,
    pub(crate) table: ResourceTable,
    pub(crate) http: Session,
    pub(crate) listing: ListingBuilder,
    pub(crate) started: Instant,
    /// How long making the instance took.
    pub(crate) instantiated: Duration,
    pub(crate) log_lines: u32,
    pub(crate) random_blocks: u64,
    wasi: WasiCtx,
}

/// Tells a search whose call has ended, in whatever way, that nobody waits for it.
struct GiveUp(Arc<AtomicBool>);

impl Drop for GiveUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The turns of a search that takes long: after each it stands at the end of the queue, so that a short search waits for
/// a turn of those before it and not for their end.
struct Turns {
    permit: Option<OwnedSemaphorePermit>,
    searches: Arc<Semaphore>,
    runtime: Handle,
    since: Instant,
    /// How long the turns before took.
    before: Duration,
}

impl Turns {
    fn new(first: OwnedSemaphorePermit, searches: Arc<Semaphore>, runtime: Handle) -> Self {
        Self {
            permit: Some(first),
            searches,
            runtime,
            since: Instant::now(),
            before: Duration::ZERO,
        }
    }

    /// How long it has computed. Waiting for a turn is not counted.
    fn spent(&self) -> Duration {
        self.before + self.since.elapsed()
    }

    /// Whether there is another turn; the one that is not over goes on.
    fn next(&mut self) -> bool {
        let turn = self.since.elapsed();
        if turn < TURN {
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
    /// What a call of a plugin begins with whose calls together have `memory`.
    pub(crate) fn new(context: CallContext, limits: Limits, host: Arc<Host>, memory: Arc<Share>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let http = context.session(limits.http.clone());
        Self {
            meter: Meter::new(limits.cpu, limits.memory_bytes, limits.table_elements),
            memory: Taken::nothing([memory, host.memory.clone()]),
            listing: ListingBuilder::new(limits.output.clone()),
            table,
            http,
            context,
            host,
            limits,
            started: Instant::now(),
            instantiated: Duration::ZERO,
            log_lines: 0,
            random_blocks: 0,
            // No arguments, environment, files or sockets; what is written goes nowhere.
            wasi: WasiCtx::builder()
                .allow_tcp(false)
                .allow_udp(false)
                .allow_ip_name_lookup(false)
                .build(),
        }
    }

    /// Does the host's part of a search through `len` bytes and counts it as the plugin's own computing. It ends when
    /// the plugin has no time left or its call is given up; until then it takes turns with the searches of others.
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
        let _giving_up = GiveUp(Arc::clone(&given_up));
        let budget = self.meter.cpu_left().min(self.time_left());
        let searches = self.host.searches.clone();
        let first = searches.clone().acquire_owned().await?;
        let runtime = Handle::current();
        let searching = tokio::task::spawn_blocking(move || {
            let mut turns = Turns::new(first, searches, runtime);
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
        self.limits.wall.saturating_sub(self.started.elapsed())
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
        // The call may have it, but others do: that is not the plugin's fault, and another time it gets it.
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
