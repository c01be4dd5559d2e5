//! What a plugin says about itself.

use plugin_host::LogLevel;

use crate::capability::{bindings::svc::plugin::log, state::CallState};

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        if self.has_line_left() {
            self.context.log.write(level.into(), &message);
        }
        Ok(())
    }

    fn progress(&mut self, done: u32, total: Option<u32>, note: String) -> wasmtime::Result<()> {
        if self.has_line_left() {
            self.context.log.progress(done, total, &note);
        }
        Ok(())
    }
}

impl CallState {
    fn has_line_left(&mut self) -> bool {
        self.log_lines = self.log_lines.saturating_add(1);
        self.log_lines <= self.limits.log_lines
    }
}

impl From<log::Level> for LogLevel {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Trace => Self::Trace,
            log::Level::Debug => Self::Debug,
            log::Level::Info => Self::Info,
            log::Level::Warn => Self::Warn,
            log::Level::Error => Self::Error,
        }
    }
}
