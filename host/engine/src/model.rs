//! The data model: tasks, queues, groups, sites and settings, and which values are legal. No module here has side
//! effects, except `file`, which removes and renames a task's files.

pub(crate) mod account;
pub(crate) mod error;
pub(crate) mod fate;
pub(crate) mod file;
pub(crate) mod group;
pub(crate) mod id;
pub(crate) mod proxy;
pub(crate) mod queue;
pub(crate) mod resolution;
pub(crate) mod seeding;
pub(crate) mod settings;
pub(crate) mod site;
pub mod spec;
pub(crate) mod speed;
pub(crate) mod task;
