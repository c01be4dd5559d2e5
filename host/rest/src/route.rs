//! The handlers: the management API, the web interface, the set-up, and files for browsers. Doc comments of handlers and of their records
//! become the `OpenAPI` description.

pub(crate) mod cookies;
pub(crate) mod docs;
pub(crate) mod group;
pub(crate) mod market;
pub(crate) mod page;
pub(crate) mod plugin;
pub(crate) mod post;
pub(crate) mod queue;
pub(crate) mod rss;
pub(crate) mod setup;
pub(crate) mod site;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod torrent;
pub(crate) mod web;
