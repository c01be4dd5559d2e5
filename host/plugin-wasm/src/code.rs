//! From the bytes of a plugin to executable code: screened, compiled in a separate process, and cached.

pub(crate) mod cache;
pub(crate) mod compile;
pub(crate) mod interface;
pub(crate) mod screen;
