//! Commands about plugins and their sources.

pub(crate) mod installed;
pub(crate) mod market;
mod preview;
