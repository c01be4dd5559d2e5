//! What the store of one call holds. It lives exactly as long as the call.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use plugin_host::{PluginFault, runtime::Report};
use tokio::sync::Semaphore;
use wasmtime::{ResourceLimiter, component::ResourceTable};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    call::CallContext,
    http::session::Session,
    limits::Limits,
    listing::ListingBuilder,
    meter::{Meter, Share, Taken},
};

/// Searches through texts up to this size are done on the spot; going to another thread would take longer.
const SHORT_TEXT_BYTES: usize = 8 * 1024;

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

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) version: String,
    /// Linear memory of all calls.
    pub(crate) memory: Arc<Share>,
    /// Threads that search long texts for plugins: a search cannot be interrupted, so there are few at once.
    pub(crate) searches: Arc<Semaphore>,
}

impl CallState {
    /// What a call of a plugin begins with whose calls together have `memory`.
    pub(crate) fn new(context: CallContext, limits: Limits, host: Arc<Host>, memory: Arc<Share>) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let http = Session::new(&context, limits.http.clone());
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

    /// Does the host's part of a search through `len` bytes and counts it as the plugin's own computing.
    pub(crate) async fn search<T: Send + 'static>(
        &mut self,
        len: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        let timed = move || {
            let started = Instant::now();
            (work(), started.elapsed())
        };
        let (found, spent) = if len <= SHORT_TEXT_BYTES {
            timed()
        } else {
            let permit = self.host.searches.clone().acquire_owned().await?;
            // The permit goes along: a call that is given up must not make room for more before its search has ended.
            let search = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                timed()
            });
            search.await?
        };
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
