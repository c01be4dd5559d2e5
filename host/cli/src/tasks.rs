//! Commands about tasks and queues.

pub(crate) mod add;
pub(crate) mod capture;
mod find;
pub(crate) mod list;
pub(crate) mod queue;
pub(crate) mod watch;
