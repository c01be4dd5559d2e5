//! Runs plugins: WebAssembly components that may do only what they import, to hosts they were granted, within limits.
//!
//! *Owns* the engine, the compiler's process, the cache of compiled code, the limits of a call, the functions that
//! plugins import and the checks on what they hand out.
//!
//! *Never* decides policy: which plugin runs for which URL, what it is granted, whether it is to be trusted. Nor does
//! anything of the engine show outside, so that it can be exchanged.
//!
//! Start reading at [`Runtime`], which loads, and [`Loaded`], which calls; [`LazyRuntime`] is what `plugin-host` knows of
//! them. `capability` has what a guest can ask for; `meter`, `listing` and `http::session` are the pure parts where the
//! rules are.

mod adapter;
mod bindings;
mod cache;
mod call;
mod capability;
mod compile;
mod engine;
mod http;
mod interface;
mod limits;
mod listing;
mod loaded;
mod meter;
mod outcome;
mod recording;
mod runtime;
mod screen;
mod script;
mod state;

pub use adapter::{LazyConfig, LazyRuntime};
pub use cache::ContentHash;
pub use call::{Ambient, CallContext, LogSink, Pending, Storage, TaskSite, Vault};
pub use compile::{CompileError, CompilerCommand, compile_child_main};
pub use http::{Answer, Exchange, Exchanged, Internet, InternetConfig, InternetError, Network, NetworkError, Profile};
pub use limits::{HttpLimits, Limits, OutputLimits};
pub use loaded::{Loaded, Wanted};
pub use runtime::{LoadError, Runtime, RuntimeConfig, StartError, componentise};
pub use screen::{MAX_PLUGIN_BYTES, ScreenError};
pub use script::{MAX_SCRIPT_BYTES, ScriptError};
