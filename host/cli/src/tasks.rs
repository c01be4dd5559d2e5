//! Commands about tasks, their queues and groups.

pub(crate) mod add;
pub(crate) mod capture;
pub(crate) mod change;
pub(crate) mod find;
pub(crate) mod group;
pub(crate) mod list;
pub(crate) mod queue;
pub(crate) mod torrent_file;
pub(crate) mod watch;
