//! The management API, the page, and files for browsers.

pub(crate) mod docs;
pub(crate) mod group;
pub(crate) mod market;
pub(crate) mod metrics;
pub(crate) mod page;
pub(crate) mod plugin;
pub(crate) mod queue;
pub(crate) mod setup;
pub(crate) mod site;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod web;
