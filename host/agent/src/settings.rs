//! Configuration at start ([`config`]), settings that the user changes at run time ([`switches`]), and their storage
//! ([`vault`]).

pub(crate) mod config;
mod import;
pub(crate) mod switches;
pub(crate) mod vault;
