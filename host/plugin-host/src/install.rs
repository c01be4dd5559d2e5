//! Changes of what is installed, requested by users, sources or authors' folders.
//!
//! `shared` is the state, `change` the only way to change an installation, `command` and `delivery` the requests of
//! users and sources, `loading` and `development` the background work, `author` plugins that are tried out without
//! installation.

pub mod author;
pub(crate) mod change;
pub(crate) mod command;
pub(crate) mod delivery;
pub(crate) mod development;
pub(crate) mod loading;
pub(crate) mod shared;

pub use command::Installed;
pub use delivery::imports_digest;
pub use shared::Plugins;
pub(crate) use shared::{Machine, Shared};
