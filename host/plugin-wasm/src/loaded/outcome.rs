//! Maps errors of the engine and of guests to faults.

use std::time::Duration;

use plugin_host::{
    Exceeded, GuestError, PluginFault,
    runtime::{Called, Report},
};
use wasmtime::{Trap, WasmBacktrace, component::ResourceTableError};

use crate::{
    capability::bindings::svc::plugin::types::PluginError,
    limits::{Limits, meter::Meter},
};

/// The longest text of an error that is kept.
const MAX_TEXT_BYTES: usize = 4096;

/// The recorded frames of a crash.
const MAX_FRAMES: usize = 16;

/// Maps an error of the engine.
pub(crate) fn fault(error: &wasmtime::Error, meter: &Meter, limits: &Limits) -> PluginFault {
    if let Some(fault) = error.downcast_ref::<PluginFault>() {
        return fault.clone();
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return PluginFault::Limit(Exceeded::Handles(limits.handles));
    }
    if let Some(Trap::StackOverflow) = error.downcast_ref() {
        return PluginFault::Limit(Exceeded::Stack);
    }
    // A guest that is refused memory traps like one that panics.
    if let Some(refused) = meter.refused() {
        return PluginFault::Limit(refused);
    }
    PluginFault::Trap {
        kind: clipped(error.root_cause().to_string()),
        frames: frames(error),
    }
}

fn frames(error: &wasmtime::Error) -> Vec<String> {
    let backtrace = error.downcast_ref::<WasmBacktrace>();
    let frames = backtrace.map_or(&[][..], WasmBacktrace::frames).iter();
    frames
        .take(MAX_FRAMES)
        .map(|frame| frame.func_name().unwrap_or("?").to_owned())
        .collect()
}

/// Truncates a guest's text for display and storage.
pub(crate) fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

impl From<PluginError> for GuestError {
    fn from(error: PluginError) -> Self {
        match error {
            PluginError::NotMatched => Self::NotMatched,
            PluginError::InvalidInput(text) => Self::InvalidInput(clipped(text)),
            PluginError::LoginRequired(slot) => Self::LoginRequired(slot.map(clipped)),
            PluginError::CaptchaRequired(page) => Self::CaptchaRequired(clipped(page)),
            PluginError::NotFound(text) => Self::NotFound(clipped(text)),
            PluginError::Gone(text) => Self::Gone(clipped(text)),
            PluginError::Forbidden(text) => Self::Forbidden(clipped(text)),
            PluginError::RateLimited(seconds) => {
                Self::RateLimited(seconds.map(|seconds| Duration::from_secs(seconds.into())))
            }
            PluginError::Upstream(status) => Self::Upstream(status),
            PluginError::Network(text) => Self::Network(clipped(text)),
            PluginError::Denied(text) => Self::Denied(clipped(text)),
            PluginError::Parse(text) => Self::Parse(clipped(text)),
            PluginError::Unsupported(text) => Self::Unsupported(clipped(text)),
            PluginError::Internal(text) => Self::Internal(clipped(text)),
        }
    }
}

pub(super) fn not_exported<T>(interface: &'static str) -> Called<T> {
    Called {
        result: Err(PluginFault::NotExported(interface)),
        report: Report::default(),
    }
}
