//! Write a plugin for Svc: implement a trait, name it in [`plugin!`], build for `wasm32-unknown-unknown`.
//!
//! ```
//! use svc_plugin::prelude::*;
//!
//! struct Example;
//!
//! impl Resolver for Example {
//!     fn resolve(call: &Call, out: &Listing<'_>) -> Result<()> {
//!         let page = http::get(call.url()).send()?;
//!         for link in page.select("a.file")? {
//!             let target = link.attribute("href").ok_or_else(|| Error::Parse("a link without target".to_owned()))?;
//!             let target = call.url().join(target)?;
//!             out.add(target.as_str(), &link.text).link(Link::new(&target));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! svc_plugin::plugin!(Example: Resolver);
//!
//! // The rest is its test: an ordinary one, no sandbox needed.
//! let host = test::Host::new().page("https://example.org/", test::Page::html("<a class=file href=/a.zip>a.zip</a>"));
//! let listing = host.resolve::<Example>("https://example.org/").unwrap();
//! assert_eq!(listing.entries[0].link.as_ref().unwrap().url, "https://example.org/a.zip");
//! ```
//!
//! *Owns* the interface for authors: the traits in [`capability`], requests in [`http`], results in [`listing`] and
//! [`feed`], the screens of [`login`], the environment of a call in [`mod@env`], and [`mod@test`], a host for tests that
//! answers from pages given by the test.
//!
//! *Never* offers what the contract in `wit/` does not: that contract is all that it shares with the host.
//!
//! # Layers
//!
//! - `prelude`: what plugins import
//! - `test`: runs plugins outside the sandbox
//! - `export`: what a component exports
//! - `capability`: the traits that plugins implement
//! - `http`, `listing`, `feed`, `hook`, `post`, `login`, `vault`: requests, results, events, finished files, screens, sealed
//!   values
//! - `env`, `log`, `storage`, `text`, `tools`: the call's environment, log lines, stored values, searching, programs of the
//!   user
//! - `settings`: the settings as one value
//! - `json`
//! - `error`
//! - `native`, `bindings`: the other side of the contract, natively and in the sandbox
//! - `world`: the state and the records of the host for tests
//!
//! Start reading at [`Resolver`]. What a plugin imports decides what its users are asked to allow: functions that are
//! not called are not imported.

#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod bindings;
pub mod capability;
pub mod env;
mod error;
#[cfg(target_family = "wasm")]
#[doc(hidden)]
pub mod export;
pub mod feed;
pub mod hook;
pub mod http;
mod json;
pub mod listing;
pub mod log;
pub mod login;
#[cfg(not(target_family = "wasm"))]
mod native;
pub mod post;
pub mod settings;
pub mod storage;
#[cfg(not(target_family = "wasm"))]
pub mod test;
pub mod text;
#[cfg(feature = "serde")]
pub mod tools;
pub mod vault;
#[cfg(not(target_family = "wasm"))]
mod world;

/// The other side of the contract: the real host in the sandbox, the test host everywhere else.
#[cfg(target_family = "wasm")]
use bindings::svc::plugin as host;
#[cfg(not(target_family = "wasm"))]
use native as host;

pub use capability::{Call, FeedHandler, HookHandler, Login, PostProcessor, Preview, Resolver};
pub use error::{Error, Result};
pub use feed::{Feed, FeedCall, Item};
pub use hook::{HookEvent, HookKind};
pub use listing::{Entry, FileKind, LeftOut, Link, Listing};
pub use login::{Answers, Mode, Screen};
pub use post::{PostCall, Work};
pub use settings::Settings;

/// What most plugins use.
pub mod prelude {
    #[cfg(not(target_family = "wasm"))]
    pub use crate::test;
    pub use crate::{
        Answers, Call, Entry, Error, Feed, FeedCall, FeedHandler, FileKind, HookEvent, HookHandler, HookKind, Item,
        LeftOut, Link, Listing, Login, Mode, PostCall, PostProcessor, Preview, Resolver, Result, Screen, Settings,
        Work, env, http, log, storage, text, vault,
    };
}

/// Makes a type the plugin: `plugin!(Acme: Resolver, Preview)`.
#[macro_export]
macro_rules! plugin {
    ($plugin:ty: $($capability:ident),+ $(,)?) => {
        $crate::__plugin!($plugin: $($capability),+);
    };
}

/// Outside the sandbox, a plugin can be tested by what it is.
#[doc(hidden)]
#[macro_export]
#[cfg(not(target_family = "wasm"))]
macro_rules! __plugin {
    ($plugin:ty: $($capability:ident),+) => {
        impl $crate::test::Plugin for $plugin {
            fn capabilities() -> $crate::test::Capabilities {
                let capabilities = $crate::test::Capabilities::default();
                $(let capabilities = $crate::__capability!(capabilities, $plugin, $capability);)+
                capabilities
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
#[cfg(not(target_family = "wasm"))]
macro_rules! __capability {
    ($capabilities:ident, $plugin:ty, Resolver) => {
        $capabilities.with_resolver::<$plugin>()
    };
    ($capabilities:ident, $plugin:ty, Preview) => {
        $capabilities.with_preview::<$plugin>()
    };
    ($capabilities:ident, $plugin:ty, FeedHandler) => {
        $capabilities.with_feed::<$plugin>()
    };
    ($capabilities:ident, $plugin:ty, HookHandler) => {
        $capabilities.with_hooks::<$plugin>()
    };
    ($capabilities:ident, $plugin:ty, PostProcessor) => {
        $capabilities.with_post::<$plugin>()
    };
    ($capabilities:ident, $plugin:ty, Login) => {
        $capabilities.with_login::<$plugin>()
    };
}

/// In the sandbox, it is what it exports.
#[doc(hidden)]
#[macro_export]
#[cfg(target_family = "wasm")]
macro_rules! __plugin {
    ($plugin:ty: $($capability:ident),+) => {
        $($crate::__export!($plugin, $capability);)+
    };
}

/// Exports one capability.
#[doc(hidden)]
#[macro_export]
#[cfg(target_family = "wasm")]
macro_rules! __export {
    ($plugin:ty, Resolver) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::resolver::export_resolver!(Exported with_types_in $crate::bindings::resolver);
        };
    };
    ($plugin:ty, Preview) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::previewer::export_previewer!(Exported with_types_in $crate::bindings::previewer);
        };
    };
    ($plugin:ty, FeedHandler) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::feed_handler::export_feed_handler!(Exported with_types_in $crate::bindings::feed_handler);
        };
    };
    ($plugin:ty, HookHandler) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::hook_handler::export_hook_handler!(Exported with_types_in $crate::bindings::hook_handler);
        };
    };
    ($plugin:ty, PostProcessor) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::post_processor::export_post_processor!(Exported with_types_in $crate::bindings::post_processor);
        };
    };
    ($plugin:ty, Login) => {
        const _: () = {
            type Exported = $crate::export::Exported<$plugin>;
    $crate::bindings::login::export_login!(Exported with_types_in $crate::bindings::login);
        };
    };
}
