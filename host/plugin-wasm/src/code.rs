//! From the bytes of a plugin to code that the engine runs: screened, compiled in a process of its own, and kept.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod interface;
pub(crate) mod screen;
