//! Import of downloads from aria2, and export to it.

pub(crate) mod export;
pub(crate) mod import;
