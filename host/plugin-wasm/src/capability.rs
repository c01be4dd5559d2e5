//! The functions that plugins import, one file for each capability.

mod env;
mod http;
pub(crate) mod later;
pub(crate) mod listing;
mod log;
mod storage;
mod text;
mod vault;

use crate::{bindings::svc::plugin::types, state::CallState};

/// Optional behaviour that a plugin can ask for with `env.has-feature`.
const FEATURES: &[&str] = &[];

impl types::Host for CallState {}
