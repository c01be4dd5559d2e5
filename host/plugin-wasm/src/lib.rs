//! Runs plugins: WebAssembly components that may do only what they import, to hosts they were granted, within limits.
//!
//! *Owns* the engine, the compiler's process, the cache of compiled code, the limits of a call, the functions that
//! plugins import and the checks on what they hand out.
//!
//! *Never* decides policy: which plugin runs for which URL, what it is granted, whether it is to be trusted. Nor does
//! anything of the engine show outside, so that it can be exchanged.
//!
//! Start reading at [`Runtime`], which loads, and [`Loaded`], which calls; [`LazyRuntime`] is what `plugin-host` knows of
//! them. `capability` has what a guest can ask for; `limits::meter`, `listing` and `http::session` are the pure parts where
//! the rules are.
//!
//! # Layers
//! - `lazy`: the runtime that starts with the first plugin
//! - `guest`: a loaded plugin as `plugin-host` calls it
//! - `runtime`: plugins are loaded: screened, compiled, linked
//! - `loaded`: one call on a fresh instance
//! - `capability`: the functions that guests import, and the state that they work on
//! - `call`: everything around one call that is not its argument
//! - `listing`: the checks of what a guest hands out
//! - `http`: requests, to granted hosts only
//! - `error`: why plugins are not loaded
//! - `code`: from the bytes of a plugin to what the engine runs
//! - `engine`: how guests are compiled and where they run
//! - `limits`, `outside`: what a call may use; what outlives it

mod call;
mod capability;
mod code;
mod engine;
mod error;
mod guest;
mod http;
mod lazy;
mod limits;
mod listing;
mod loaded;
mod outside;
mod runtime;

pub use call::{Ambient, CallContext};
pub use code::cache::ContentHash;
pub use code::compile::{CompileError, CompilerCommand, compile_child_main};
pub use code::screen::{MAX_PLUGIN_BYTES, ScreenError};
pub use error::{LoadError, MAX_SCRIPT_BYTES, ScriptError, StartError};
pub use http::{
    Answer, Exchange, Exchanged, Internet, InternetConfig, InternetError, Network, NetworkError, Profile, TaskSite,
};
pub use lazy::{LazyConfig, LazyRuntime};
pub use limits::{HttpLimits, Limits, OutputLimits};
pub use loaded::{Loaded, Wanted};
pub use outside::{LogSink, Pending, Storage, Vault};
pub use runtime::{Runtime, RuntimeConfig, componentise};
