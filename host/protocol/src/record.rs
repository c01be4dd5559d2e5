//! Params and results, by subject.

pub(crate) mod auth;
pub(crate) mod capture;
pub(crate) mod config;
pub(crate) mod group;
pub(crate) mod left_out;
pub(crate) mod link;
pub(crate) mod market;
pub(crate) mod plugin;
pub(crate) mod post;
pub(crate) mod queue;
pub(crate) mod rss;
pub(crate) mod runtime;
pub(crate) mod selection;
pub(crate) mod site;
pub(crate) mod task;
pub(crate) mod thunder;
pub(crate) mod torrent;
pub(crate) mod webhook;
