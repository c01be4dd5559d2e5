//! Runs plugins: WebAssembly components that may do only what they import, on granted hosts, within limits.
//!
//! *Owns* the engine, the compiler's process, the cache of compiled code, the limits of a call, the functions that
//! plugins import and the validation of their results.
//!
//! *Never* decides policy: which plugin runs for which URL, what it is granted, whether it is trusted. The engine does
//! not show in the public interface, so that it can be replaced.
//!
//! Start reading at [`Runtime`], which loads, and [`Loaded`], which calls; [`LazyRuntime`] implements the traits of
//! `plugin-host`. `capability` has the functions that guests import; `limits::meter`, `listing` and `http::call_http`
//! are the pure parts where the rules are.
//!
//! # Layers
//! - `lazy`: the runtime that starts with the first plugin
//! - `guest`: a loaded plugin as `plugin-host` calls it
//! - `runtime`: loads plugins: screens, compiles, links
//! - `loaded`: one call on a fresh instance
//! - `capability`: the functions that guests import, and the state that they work on
//! - `call`: the environment of one call
//! - `feed`: validation of the feeds of guests
//! - `listing`: validation of their listings
//! - `http`: requests, to granted hosts only
//! - `error`: why plugins are not loaded
//! - `code`: from the bytes of a plugin to executable code
//! - `engine`: configuration of the engine, and shared resources
//! - `limits`, `outside`: the limits of a call; the storage, secrets and log that outlive it

#![expect(
    missing_docs,
    reason = "fields and variants whose names or messages say what they are have no comment"
)]

mod call;
mod capability;
mod code;
mod engine;
mod error;
mod feed;
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
pub use code::compile::{CompileError, compile_child_main};
pub use code::screen::{MAX_PLUGIN_BYTES, ScreenError};
/// How to start the compiler: this executable, with an argument that makes it run [`compile_child_main`].
pub use confined::OwnCommand as CompilerCommand;
pub use error::{LoadError, MAX_SCRIPT_BYTES, ScriptError, StartError};
pub use http::{
    Answer, Exchange, Exchanged, Internet, InternetConfig, InternetError, Network, NetworkError, Profile, Profiles,
    TaskSite,
};
pub use lazy::{LazyConfig, LazyRuntime};
pub use limits::{HttpLimits, Limits, OutputLimits};
pub use loaded::{Loaded, Wanted, login_session::LoginSession};
pub use outside::{LogSink, Pending, Storage, Vault};
pub use runtime::{Runtime, RuntimeConfig, componentise};
