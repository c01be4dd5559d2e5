//! What is known of the daemon without asking it: [`tasks`] is its state, kept current by its events; [`hub`] is what
//! clients read and follow, [`feed`] carries changes to subscribers within the process.

pub(crate) mod feed;
pub(crate) mod hub;
mod packed;
pub(crate) mod task_list;
pub(crate) mod tasks;
