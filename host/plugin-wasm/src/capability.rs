//! The functions that plugins import, one file for each capability.

pub(crate) mod bindings;
mod env;
mod feed;
mod http;
mod listing;
mod log;
pub(crate) mod login;
pub(crate) mod state;
mod storage;
mod text;
mod tools;
mod vault;
pub(crate) mod workspace;

use crate::capability::{bindings::svc::plugin::types, state::CallState};

/// Optional behaviour that a plugin can ask for with `env.has-feature`.
const FEATURES: &[&str] = &[];

impl types::Host for CallState {}
