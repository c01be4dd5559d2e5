//! Log lines and progress of a call, for users when something goes wrong. The host keeps the newest lines of each plugin,
//! at most 200 of a call and 4 KiB of a line.

use crate::host::log as host;

/// Reports progress: `done` of `total` units, if their number is known, and a note for the user.
pub fn progress(done: u32, total: Option<u32>, note: &str) {
    host::progress(done, total, note);
}

/// Writes a line for the plugin's author.
pub fn debug(message: impl AsRef<str>) {
    host::write(host::Level::Debug, message.as_ref());
}

/// Writes a line about what happened, for the user.
pub fn info(message: impl AsRef<str>) {
    host::write(host::Level::Info, message.as_ref());
}

/// Writes a line about something that looks wrong but does not fail the call.
pub fn warn(message: impl AsRef<str>) {
    host::write(host::Level::Warn, message.as_ref());
}

/// Writes a line about a failure.
pub fn error(message: impl AsRef<str>) {
    host::write(host::Level::Error, message.as_ref());
}
