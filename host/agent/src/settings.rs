//! Configuration at start ([`config`]), settings that the user changes at run time ([`switches`], [`preference`]), and
//! their storage ([`mod@file`]).

pub(crate) mod config;
pub(crate) mod file;
mod import;
pub(crate) mod preference;
pub(crate) mod schema;
pub(crate) mod switches;
