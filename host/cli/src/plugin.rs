//! Commands about plugins and their sources.

mod accounts;
mod find;
pub(crate) mod installed;
mod login;
pub(crate) mod market;
mod preview;
