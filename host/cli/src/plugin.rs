//! Commands about the plugins of a service, and about where they come from.

pub(crate) mod installed;
pub(crate) mod market;
mod preview;
