//! Taking downloads over from aria2, and giving them to it.

pub(crate) mod export;
pub(crate) mod import;
