//! Small values that a plugin keeps between calls, in the user's database. Not for secrets.

use std::time::Duration;

use crate::{Error, Result, host::storage as host};

/// The value of `key`.
///
/// ```
/// use svc_plugin::storage;
///
/// let host = svc_plugin::test::Host::new();
/// host.run(|| storage::set("token", b"abc", None)).unwrap();
/// assert_eq!(host.run(|| storage::get("token")), Some(b"abc".to_vec()));
/// ```
pub fn get(key: &str) -> Option<Vec<u8>> {
    host::get(key)
}

/// Stores a value, without end or for a time. Fails with [`Error::Internal`] if the plugin's quota is used up.
pub fn set(key: &str, value: &[u8], lifetime: Option<Duration>) -> Result<()> {
    let seconds = lifetime.map(|lifetime| u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX));
    host::set(key, value, seconds).map_err(Error::Internal)
}

/// Deletes a value; a missing one is no error.
pub fn remove(key: &str) {
    host::remove(key);
}

/// The keys that begin with `prefix`, in order.
pub fn keys(prefix: &str) -> Vec<String> {
    host::keys(prefix)
}
