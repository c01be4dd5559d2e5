//! A mirror of the daemon's state, from which reads are answered: [`tasks`] is the state, kept current by events;
//! [`hub`] is what clients read and follow, [`feed`] delivers changes to subscribers within the process.

mod deliveries;
pub(crate) mod feed;
pub(crate) mod hub;
mod packed;
pub(crate) mod task_list;
pub(crate) mod tasks;
