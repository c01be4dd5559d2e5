//! Configuration of wasmtime's engine, and the resources that all calls share.

use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::{self, JoinHandle},
    time::Instant,
};

use tokio::sync::Semaphore;
use wasmtime::{
    Config, Engine, EngineWeak, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmFeatures,
};

use crate::limits::meter::{Share, TICK};

/// Concurrent instances: the calls that the caller admits, and one trial run.
#[expect(clippy::cast_possible_truncation, reason = "it is below a hundred")]
const MAX_INSTANCES: u32 = plugin_host::runtime::MAX_CALLS as u32 + 1;

/// The stack of a guest. Recursion ends here. An interpreter, as scripts need one, takes more than compiled code.
const WASM_STACK_BYTES: usize = 1024 * 1024;

/// The stack that guest and host functions share.
const STACK_BYTES: usize = 2 * 1024 * 1024;

/// The address space of each memory. With 4 GiB, bounds checks are done by the hardware.
const MEMORY_RESERVATION_BYTES: usize = 4 << 30;

/// Resident part of a pooled memory between calls, so that the next call needs fewer page faults.
const RESIDENT_MEMORY_BYTES: usize = 256 * 1024;

/// The same for tables.
const RESIDENT_TABLE_BYTES: usize = 16 * 1024;

/// Unused pool slots that stay assigned to the plugin that used them last. With more, every loaded plugin would keep
/// one with its resident memory.
const WARM_SLOTS: u32 = 4;

/// The largest table that a slot of the pool holds; a call's own limit is lower.
const MAX_TABLE_ELEMENTS: usize = 50_000;

/// An engine whose compiled code every engine of this build accepts.
pub(crate) fn compiler() -> wasmtime::Result<Engine> {
    Engine::new(&config())
}

/// An engine that runs guests, from a pool of memories if the machine has the address space for it.
pub(crate) fn runner() -> wasmtime::Result<Engine> {
    let mut pooled = config();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool()));
    Engine::new(&pooled).or_else(|error| {
        tracing::warn!(%error, "plugins run without a pool of memories; calls start a little slower");
        compiler()
    })
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .wasm_component_model(true)
        .epoch_interruption(true)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(WASM_STACK_BYTES)
        .async_stack_size(STACK_BYTES)
        .memory_reservation(MEMORY_RESERVATION_BYTES as u64)
        // Only for debuggers: crashes name functions without it. It would add an eighth to a plugin's memory.
        .generate_address_map(false)
        .native_unwind_info(false)
        .wasm_features(features_off(), false);
    config
}

/// Disabled features: a smaller attack surface, and the same behaviour on every machine.
pub(crate) fn features_off() -> WasmFeatures {
    WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::MEMORY64
        | WasmFeatures::MULTI_MEMORY
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::CUSTOM_PAGE_SIZES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::GC
}

/// A component has more tables and core instances than memories: its adapters bring their own.
fn pool() -> PoolingAllocationConfig {
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(MAX_INSTANCES)
        .total_core_instances(MAX_INSTANCES * 8)
        .total_memories(MAX_INSTANCES)
        .total_tables(MAX_INSTANCES * 4)
        .total_stacks(MAX_INSTANCES)
        .max_memories_per_component(1)
        .max_tables_per_component(4)
        .max_core_instances_per_component(8)
        .max_memory_size(MEMORY_RESERVATION_BYTES)
        .table_elements(MAX_TABLE_ELEMENTS)
        .max_unused_warm_slots(WARM_SLOTS)
        .linear_memory_keep_resident(RESIDENT_MEMORY_BYTES)
        .table_keep_resident(RESIDENT_TABLE_BYTES);
    pool
}

/// What all calls share: the host version that plugins see, and limits across calls.
#[derive(Debug)]
pub(crate) struct SharedState {
    pub(crate) version: String,
    /// Linear memory of all calls.
    pub(crate) memory: Arc<Share>,
    /// Threads that search long texts for plugins at once.
    pub(crate) searches: Arc<Semaphore>,
}

/// The resources of calls. Clones share them.
#[derive(Clone)]
pub(crate) struct Machine {
    pub(crate) engine: Engine,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) shared: Arc<SharedState>,
}

/// Interrupts running guests every [`TICK`], from a thread of its own, which sleeps while no call runs.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// A lock instead of a channel: calls begin and end often, and one thread waits for the first.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    calls: usize,
    is_over: bool,
}

/// The ticker runs while any of these exists.
#[derive(Debug)]
pub(crate) struct Ticking(Arc<Shared>);

impl Ticker {
    pub(crate) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = thread::Builder::new()
            .name("plugin-ticks".to_owned())
            .spawn(move || tick(&of_thread, &engine))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    pub(crate) fn run(&self) -> Ticking {
        self.shared.change(|state| state.calls += 1);
        Ticking(self.shared.clone())
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }
}

fn tick(shared: &Shared, engine: &EngineWeak) {
    let mut state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let mut next = Instant::now();
    loop {
        let idle = |state: &mut State| state.calls == 0 && !state.is_over;
        state = shared
            .changed
            .wait_while(state, idle)
            .unwrap_or_else(PoisonError::into_inner);
        // Charge by the clock, not by the number of ticks: each wake-up is a little late.
        let now = Instant::now();
        next += TICK;
        if next < now {
            next = now + TICK;
        }
        let waited = shared
            .changed
            .wait_timeout_while(state, next - now, |state| !state.is_over);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match engine.upgrade() {
            Some(engine) if !state.is_over => engine.increment_epoch(),
            _ => return,
        }
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.change(|state| state.calls -= 1);
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.change(|state| state.is_over = true);
        if let Some(thread) = self.thread.take() {
            // Nothing to do if it panicked.
            let _ = thread.join();
        }
    }
}
