//! The environment of a call: clock, randomness, language, settings. `std::time` does not work in the sandbox.

use std::{str::FromStr, time::Duration};

use crate::{Result, host::env as host, settings};

/// The present time in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    host::now_ms()
}

/// Random bytes. The `getrandom` crate gets its own from here, too.
pub fn random(len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        let piece = (len - bytes.len()).min(PIECE_BYTES);
        bytes.extend(host::random(u32::try_from(piece).unwrap_or(0)));
    }
    bytes
}

/// The most random bytes that the host gives at once.
const PIECE_BYTES: usize = 1024;

/// The user's language (BCP 47).
pub fn locale() -> String {
    host::locale()
}

/// The version of the host, for display; to find out what the host can do, use [`has_feature`].
pub fn host_version() -> String {
    host::host_version()
}

/// Whether the host implements an optional feature.
pub fn has_feature(name: &str) -> bool {
    host::has_feature(name)
}

/// The time that is left of the call's limit, waiting for sites included.
pub fn time_left() -> Duration {
    Duration::from_millis(host::time_left_ms().into())
}

/// A setting of the plugin as text. Secret settings cannot be read.
pub fn setting(key: &str) -> Option<String> {
    host::setting(key)
}

/// A setting, parsed; `default` if the user has not set it. A value that does not parse is
/// [`Error::InvalidInput`](crate::Error::InvalidInput).
///
/// ```
/// let host = svc_plugin::test::Host::new().setting("depth", "3");
/// assert_eq!(host.run(|| svc_plugin::env::setting_or("depth", 5)), Ok(3));
/// assert_eq!(host.run(|| svc_plugin::env::setting_or("hidden", false)), Ok(false));
/// ```
pub fn setting_or<T: FromStr>(key: &str, default: T) -> Result<T> {
    Ok(settings::optional(key)?.unwrap_or(default))
}
