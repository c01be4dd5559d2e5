//! The service: agent and daemon as processes, and everybody who talks to them.

mod author;
mod foreign;
mod groups;
pub(crate) mod guest;
mod hls;
mod hung_disk;
mod kill_loop;
mod log_format;
pub(crate) mod market;
mod metalink;
mod pick;
mod plugin_kill_loop;
mod plugin_previews;
pub(crate) mod plugin_sites;
pub(crate) mod plugins;
mod preview_sizes;
mod restart;
mod rss;
mod rss_kill_loop;
mod rss_plugins;
mod secrets;
mod setup;
mod start;
mod stop;
