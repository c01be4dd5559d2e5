//! Changes of what is installed, from the first byte to the last: what users, sources and authors' folders bring.
//!
//! `shared` is what all of it works on, `change` the one way in which something becomes another, `command` and `delivery`
//! what users and sources want, `loading` and `development` what happens by itself, `author` a plugin without any of that.

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
