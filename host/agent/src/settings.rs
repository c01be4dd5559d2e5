//! What an agent is started with ([`config`]), what its user changes while it runs ([`switches`]), and where that is kept
//! ([`vault`]).

pub(crate) mod config;
mod import;
pub(crate) mod switches;
pub(crate) mod vault;
