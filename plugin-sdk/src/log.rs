//! What a plugin says about its work. Its users see it when something goes wrong.

use crate::host::log as host;

/// Says how far the work has come.
pub fn progress(done: u32, total: Option<u32>, note: &str) {
    host::progress(done, total, note);
}

/// Says what only the author wants to know.
pub fn debug(message: impl AsRef<str>) {
    host::write(host::Level::Debug, message.as_ref());
}

/// Says what happened.
pub fn info(message: impl AsRef<str>) {
    host::write(host::Level::Info, message.as_ref());
}

/// Says what looks wrong.
pub fn warn(message: impl AsRef<str>) {
    host::write(host::Level::Warn, message.as_ref());
}

/// Says what went wrong.
pub fn error(message: impl AsRef<str>) {
    host::write(host::Level::Error, message.as_ref());
}
