//! The vocabulary: what a task, a queue, a group, a site and the settings are, and which values are legal. Nothing here
//! does anything by itself, except `file`, which removes and renames a task's files.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod id;
pub(crate) mod proxy;
pub(crate) mod queue;
pub(crate) mod resolution;
pub(crate) mod settings;
pub(crate) mod site;
pub mod spec;
pub(crate) mod task;
